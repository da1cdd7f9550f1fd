"""`longpole table`: print one of the tables behind the answers."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import partial
from typing import Any

import click

from longpole.cli.answer.list_of_tables import (
    PATH_TABLES,
    TABLE,
    WHOLE_TABLES,
    list_of_tables,
    tables,
)
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.rows import sort_option
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, about_stretch, about_window, window_options

__all__ = ["table"]


class _Name(click.Choice[str]):
    """The name of a table; for one that is none, the table that may have been meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        meant = difflib.get_close_matches(value, self.choices, n=1)
        if meant:
            return f"{value!r} is not a table; did you mean `{meant[0]}`?"
        return super().get_invalid_choice_message(value, ctx)


@click.command()
@trace_argument
@click.argument("name", type=_Name(tuple(tables())), metavar="[NAME]", required=False)
@window_options
@click.option(
    "--where",
    metavar="CONDITION",
    help="Only what fulfils a condition as in SQL: \"name LIKE '%gemm%' AND stream = 7\".",
)
@sort_option
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many rows to print.  [default: 50 as text, md and html, else all]",
)
@click.option(
    "--capture-trace",
    "capture_traces",
    type=click.Path(dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Trace of the capture of CUDA graphs, for graph_kernels; may be given several times.",
)
@shared_options
def table(
    *,
    trace: str,
    name: str | None,
    window: Asked,
    where: str | None,
    sort: str | None,
    top: int | None,
    capture_traces: tuple[str, ...],
    options: Options,
) -> int:
    """Print one of the tables behind the answers; without NAME, list them.

    \b
    Examples:
      longpole table trace.json.gz
      longpole table trace.json.gz kernels --where "name LIKE '%gemm%'"
      longpole table trace.json.gz activities --sort inside_ns --top 10
      longpole table trace.json.gz slack --step 3 --format jsonl
      longpole table trace.json.gz graph_kernels --capture-trace capture.json.gz
    """
    from longpole.cli.answer.table import Shown, arguments_for, path_table, question_table

    if capture_traces and name != "graph_kernels":
        message = "only graph_kernels reads the trace of a capture"
        raise click.BadParameter(message, param_hint="--capture-trace")
    if name is None:
        return list_of_tables(trace, options.form, options.color)
    shown = Shown(name, where, top, sort)
    options = replace(options, capture_traces=capture_traces)
    if name in PATH_TABLES:
        answer = about_window(TABLE, window, partial(path_table, shown=shown))
        return answer_each([trace], options, TABLE, answer)
    question = partial(question_table, shown=shown)
    if name in WHOLE_TABLES and not window.is_any:
        whole = partial(question, window=None)
        return answer_each([trace], options, TABLE, whole, arguments=arguments_for(name))
    answer = about_stretch(TABLE, window, question)
    return answer_each([trace], options, TABLE, answer, arguments=arguments_for(name))
