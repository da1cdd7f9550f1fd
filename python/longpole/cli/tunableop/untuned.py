"""`longpole tunableop untuned`: merge recorded GEMMs without duplicates."""

from __future__ import annotations

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.wording import count

__all__ = ["untuned"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Untuned")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=OutputPath(), metavar="FILE", help="Write them to a file.")
@force_option
@answer_options
def untuned(*, files: tuple[str, ...], output: str | None, force: bool, options: Options) -> int:
    """Merge recorded GEMMs without duplicates, in a stable order.

    GEMMs of results files are included, to tune them again.

    \b
    Examples:
      longpole tunableop untuned tunableop_untuned*.csv -o all_untuned0.csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows
    from longpole.cli.answer.tunable_data import KeyRow, Untuned, UntunedRow
    from longpole.cli.answer.tunableop import MOST_ROWS, rows_answer
    from longpole.data import names_of

    sources = [tunableop.read(file) for file in files]
    require_rows(sources)
    found = tunableop.gather_untuned(sources)
    if output:
        found.write(output, force=force, inputs=files)
    rows = found.untuned.select(*names_of(UntunedRow))
    written = f"; written to {output}" if output else ""
    headline = f"{count(rows.height, 'GEMM')} in {count(len(files), 'file')}{written}"
    answer = rows_answer(
        "untuned",
        None,
        headline,
        Untuned(rows=rows),
        UntunedRow,
        *names_of(KeyRow),
        most=MOST_ROWS,
    )
    return options.emit(answer)
