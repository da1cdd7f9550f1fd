"""`longpole tunableop split`: split a file into parts of about the same cost."""

from __future__ import annotations

from pathlib import Path

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import MOST_DEVICES
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.files import check_free

__all__ = ["split"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Split")
@click.argument("file", metavar="FILE")
@click.option(
    "--parts",
    "gpus",
    type=click.IntRange(1, MOST_DEVICES),
    required=True,
    metavar="N",
    help="Number of parts.",
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    metavar="NAME",
    help="Name of the parts, to which the ordinal is added.",
)
@force_option
@answer_options
def split(*, file: str, gpus: int, output: str | None, force: bool, options: Options) -> int:
    """Split a file into parts of about the same cost, 2 m n k for each GEMM.

    Every part has the validators of the file. Without -o, the parts are named FILE_part0.csv
    and so on.

    \b
    Examples:
      longpole tunableop split tunableop_untuned0.csv --parts 4
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows
    from longpole.cli.answer.tunable_data import PartRow, Split
    from longpole.cli.answer.tunableop import rows_answer

    source = tunableop.read(file)
    require_rows([source])
    shares = tunableop.split(source, gpus)
    path = Path(file)
    name = output or str(path.with_name(f"{path.stem}_part%d{path.suffix}"))
    names = [tunableop.with_ordinal(name, number) for number in range(gpus)]
    for name in names:
        check_free(Path(name), force=force, inputs=[path])
    for part, share in zip(names, shares, strict=True):
        share.file.write(part, force=force)
    rows = [
        PartRow(file=part, gemms=share.n_rows, flops=share.flops)
        for part, share in zip(names, shares, strict=True)
    ]
    answer = rows_answer("split", file, f"{file} in {gpus} parts:", Split(rows=rows), PartRow)
    return options.emit(answer)
