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
@click.option(
    "--without",
    multiple=True,
    metavar="RESULTS",
    help="Leave out GEMMs that have a row in this results file.",
)
@click.option("-o", "--output", type=OutputPath(), metavar="FILE", help="Write them to a file.")
@force_option
@answer_options
def untuned(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    output: str | None,
    force: bool,
    options: Options,
) -> int:
    """Merge recorded GEMMs without duplicates, in a stable order.

    GEMMs of results files are included, to tune them again.

    \b
    Examples:
      longpole tunableop untuned tunableop_untuned*.csv -o all_untuned0.csv
      longpole tunableop untuned tunableop_untuned*.csv --without tuned0.csv -o new0.csv
    """
    import polars as pl

    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import check_rows, require_rows
    from longpole.cli.answer.tunable_data import KeyRow, Untuned, UntunedRow
    from longpole.cli.answer.tunableop import MOST_ROWS, rows_answer
    from longpole.data import names_of

    sources = [tunableop.read(file) for file in files]
    known = [tunableop.read(file) for file in without]
    require_rows(sources)
    check_rows(known)
    found = tunableop.gather_untuned(sources, without=known)
    if output:
        found.write(output, force=force, inputs=[*files, *without])
    columns = names_of(UntunedRow)
    rows = pl.concat(part.select(columns) for part in found.parts(columns))
    written = f"; written to {output}" if output else ""
    left = f" without a row in {', '.join(without)}" if without else ""
    headline = f"{count(rows.height, 'GEMM')} in {count(len(files), 'file')}{left}{written}"
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
