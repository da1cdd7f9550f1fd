"""`longpole tunableop show`: list the rows of a file with their typed columns."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options
from longpole.wording import count

__all__ = ["show"]


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--untuned", is_flag=True, help="List the untuned GEMMs, not the results.")
@answer_options
def show(*, file: str, untuned: bool, options: Options) -> int:
    """List the rows of a file with their typed columns.

    The text table shows M, N and K as torch counts them; JSON and CSV have every column.
    `check` lists the lines that cannot be parsed.

    \b
    Examples:
      longpole tunableop show tunableop_results0.csv
      longpole tunableop show tunableop_results0.csv --format csv
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import rows_answer

    found = tunableop.read(file)
    rows = (found.untuned if untuned else found.results).to_dicts()
    tied = ", ".join(f"{key} {value}" for key, value in found.validators.items())
    headline = f"{file}: {count(len(rows), 'GEMM')}, {tied or 'no validators'}"
    answer = rows_answer(
        "show",
        file,
        headline,
        rows,
        {
            "line": "number",
            "operation": "text",
            "dtype_a": "text",
            "transa": "text",
            "transb": "text",
            "matmul_m": "number",
            "matmul_n": "number",
            "k": "number",
            "batch": "number",
            "solution": "name",
            "time_ns": "duration",
            "status": "text",
        },
    )
    return options.emit(answer)
