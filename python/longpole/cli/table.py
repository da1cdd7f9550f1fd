"""`longpole table`: print one of the tables behind the answers."""

from __future__ import annotations

from functools import partial

import click

from longpole.cli.answer.table import TABLE, TABLES, table_answer
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, about_window, window_options

__all__ = ["table"]


@click.command()
@trace_argument
@click.argument("name", type=click.Choice(tuple(TABLES)), metavar="NAME")
@window_options
@shared_options
def table(*, trace: str, name: str, window: Asked, options: Options) -> int:
    """Print one of the tables behind the answers.

    NAME is `sync` (who waited for whom on a device), `segments` (the critical path),
    `slack` (how late each event may end, the least first) or `violations` (edges back in
    time).

    \b
    Examples:
      longpole table trace.json.gz sync --format csv
      longpole table trace.json.gz slack --step 3 --format jsonl
    """
    answer = about_window(TABLE, window, partial(table_answer, table=name))
    return answer_each([trace], options, TABLE, answer)
