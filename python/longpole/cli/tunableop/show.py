"""`longpole tunableop show`: list the rows of a file with their typed columns."""

from __future__ import annotations

from typing import Literal

import click

from longpole.cli.ask.options import Options, answer_options, answers

__all__ = ["show"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Shown")
@click.argument("file", metavar="FILE")
@click.option("--untuned", is_flag=True, help="List the untuned GEMMs, not the results.")
@answer_options
def show(*, file: str, untuned: bool, options: Options) -> int:
    """List the rows of a file with their typed columns.

    A file without results lists its untuned GEMMs. The text table shows the first 1,000 rows,
    with M, N and K as torch counts them. JSON and CSV have every row and column.
    `check` lists the lines that cannot be parsed.

    \b
    Examples:
      longpole tunableop show tunableop_results0.csv
      longpole tunableop show tunableop_results0.csv --format csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows
    from longpole.cli.answer.tunableop import shown_answer

    found = tunableop.read(file)
    require_rows([found])
    kind: Literal["result", "untuned"] = "result" if found.count("result") else "untuned"
    return options.emit(shown_answer(found, "untuned" if untuned else kind))
