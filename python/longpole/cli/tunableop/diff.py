"""`longpole tunableop diff`: compare the rows that torch takes from two files."""

from __future__ import annotations

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.wording import count

__all__ = ["diff"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Differences")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@answer_options
def diff(*, before: str, after: str, options: Options) -> int:
    """Compare the rows that torch takes from two files.

    The exit code is 1 if they differ. Rows that only differ in their time count as different.
    The text table shows the first 1,000 differences; JSON and CSV have all of them.

    \b
    Examples:
      longpole tunableop diff old/tunableop_results0.csv tunableop_results0.csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.difference import DiffRow
    from longpole.cli.answer.tunable_data import Differences
    from longpole.cli.answer.tunableop import MOST_SHOWN, rows_answer

    rows = tunableop.diff(before, after)
    code = exit_codes.OK if rows.is_empty() else exit_codes.FINDINGS
    headline = f"{count(rows.height, 'difference')} between {before} and {after}"
    answer = rows_answer(
        "diff",
        after,
        headline,
        Differences(rows=rows),
        DiffRow,
        *("change", "operator", "parameters", "solution_before", "solution_after"),
        *("time_ns_before", "time_ns_after"),
        exit_code=code,
        most=MOST_SHOWN,
    )
    return options.emit(answer)
