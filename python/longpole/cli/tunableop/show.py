"""`longpole tunableop show`: list the rows of a file with their typed columns."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options, answers
from longpole.wording import count

__all__ = ["show"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Shown")
@click.argument("file", metavar="FILE")
@click.option("--untuned", is_flag=True, help="List the untuned GEMMs, not the results.")
@answer_options
def show(*, file: str, untuned: bool, options: Options) -> int:
    """List the rows of a file with their typed columns.

    A file without results lists its untuned GEMMs. The text table shows M, N and K as torch
    counts them; JSON and CSV have every column.
    `check` lists the lines that cannot be parsed.

    \b
    Examples:
      longpole tunableop show tunableop_results0.csv
      longpole tunableop show tunableop_results0.csv --format csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import GemmRow, require_rows
    from longpole.cli.answer.tunable_data import Shown
    from longpole.cli.answer.tunableop import rows_answer

    found = tunableop.read(file)
    require_rows([found])
    untuned = untuned or not found.results.height
    rows = found.untuned if untuned else found.results
    tied = ", ".join(f"{key} {value}" for key, value in found.validators.items())
    what = count(rows.height, "untuned GEMM" if untuned else "GEMM")
    headline = f"{file}: {what}" if untuned else f"{file}: {what}, {tied or 'no validators'}"
    answer = rows_answer(
        "show",
        file,
        headline,
        Shown(rows=rows),
        GemmRow,
        *("line", "operation", "dtype_a", "transa", "transb", "matmul_m", "matmul_n", "k"),
        *("batch", "solution", "time_ns", "status"),
    )
    return options.emit(answer)
