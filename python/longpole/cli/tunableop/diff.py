"""`longpole tunableop diff`: compare the rows that torch takes from two files."""

from __future__ import annotations

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options
from longpole.wording import count

__all__ = ["diff"]


@click.command()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@answer_options
def diff(*, before: str, after: str, options: Options) -> int:
    """Compare the rows that torch takes from two files.

    The exit code is 1 if they differ. Rows that only differ in their time count as different.

    \b
    Examples:
      longpole tunableop diff old/tunableop_results0.csv tunableop_results0.csv
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import rows_answer

    rows = tunableop.diff(before, after).to_dicts()
    code = exit_codes.FINDINGS if rows else exit_codes.OK
    headline = f"{count(len(rows), 'difference')} between {before} and {after}"
    answer = rows_answer(
        "diff",
        after,
        headline,
        rows,
        {
            "change": "text",
            "operator": "name",
            "parameters": "name",
            "solution_before": "text",
            "solution_after": "text",
            "time_ns_before": "duration",
            "time_ns_after": "duration",
        },
        exit_code=code,
    )
    return options.emit(answer)
