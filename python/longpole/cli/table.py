"""`longpole table`: print a table of a trace, or list the tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.analyses.catalogue import (
    PATH_TABLES,
    arguments_of,
    choices_of,
    gives_frame,
    reads_memory_files,
)
from longpole.cli.answer.table import (
    TABLE,
    WHOLE_TABLES,
    Shown,
    listed_tables,
    memory_table,
    path_table,
    question_table,
    tables,
)
from longpole.cli.ask.numbers import COUNT, COUNT_OR_ZERO
from longpole.cli.ask.options import Options, answers, gather, shared_options
from longpole.cli.ask.suggestions import closest
from longpole.cli.ask.traces import answer_each, capture_option, given_memory_file
from longpole.cli.ask.windows import Asked, Recording, profiler_options, window_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer

__all__ = ["answer_memory", "table", "where_option"]


def _peaks(
    context: click.Context, option: click.Parameter, given: Sequence[str]
) -> dict[str, float]:
    """Parse `TYPE=TFLOPS`."""
    peaks: dict[str, float] = {}
    for text in given:
        dtype, _, number = text.partition("=")
        try:
            peaks[dtype.strip().lower()] = float(number)
        except ValueError as error:
            message = f"{text!r} is not TYPE=TFLOPS, such as bf16=800"
            raise click.BadParameter(message, context, option) from error
    return peaks


where_option: Final = click.option(
    "--where",
    metavar="CONDITION",
    help="Only what matches a condition, such as \"name LIKE '%gemm%' AND stream = 7\", with AND,"
    " OR, NOT, IN, BETWEEN, LIKE, ILIKE, REGEXP and IS NULL. Names are those recorded. In a table"
    " of totals, it chooses the events that are added up, not the rows.",
)


_CHOICES: Final = {
    "shapes": click.option(
        "--shapes",
        is_flag=True,
        default=None,
        help="operators: one row for each combination of input shapes.",
    ),
    "by": click.option(
        "--by",
        type=click.Choice(("layer", "path")),
        help="modules: combine modules whose paths differ only in numbers (layer), or not "
        "(path).  [default: layer]",
    ),
    "annotations": click.option(
        "--annotations",
        metavar="PATTERN",
        help="modules: regex for annotations that name modules.",
    ),
    "tflops": click.option(
        "--peak",
        "tflops",
        multiple=True,
        callback=_peaks,
        metavar="TYPE=TFLOPS",
        help="mfu, roofline: peak of a data type to use instead of the published one. Repeatable.",
    ),
    "around": click.option(
        "--around",
        type=COUNT_OR_ZERO,
        metavar="EVENT",
        help="events: what encloses an event, its neighbours, and what it launched.",
    ),
    "bandwidth": click.option(
        "--bandwidth",
        type=click.FloatRange(min=0, min_open=True),
        metavar="GB/S",
        help="roofline: memory bandwidth to use instead of the published one.",
    ),
}
"""Options that only some tables have, by function parameter."""


_AS_RECORDED: Final = ("activities", "events", "violations")
"""Tables of events that are shown as they are in the file."""


def _given(**choices: Any) -> dict[str, Any]:
    return {name: value for name, value in choices.items() if value not in (None, {})}


class _TraceOrTable(click.Path):
    """A file or the name of a table; shells complete table names that match."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        names = [name for name in tables() if name.startswith(incomplete)]
        found = [click.shell_completion.CompletionItem(name) for name in names]
        return (incomplete and found) or super().shell_complete(ctx, param, incomplete)


@click.command()
@answers("longpole.cli.answer.table:TableData")
@click.argument(
    "words",
    type=_TraceOrTable(allow_dash=True, readable=False),
    nargs=-1,
    metavar="[TRACE...] [NAME]",
)
@window_options()
@profiler_options
@where_option
@click.option(
    "--sort",
    metavar="COLUMN",
    help="Column to sort by, as printed or as in JSON: numbers descending, other values ascending.",
)
@click.option(
    "--top",
    type=COUNT,
    metavar="N",
    help="Number of rows to list.  [default: 20 or 50 as text, md and html, else all]",
)
@gather("choices", _CHOICES, _given)
@capture_option
@shared_options
def table(
    *,
    words: tuple[str, ...],
    window: Asked,
    recording: Recording,
    where: str | None,
    sort: str | None,
    top: int | None,
    choices: dict[str, Any],
    capture_traces: tuple[str, ...],
    options: Options,
) -> int:
    """Print a table of a trace; without NAME, list the tables.

    The list begins with the tables about what limits the trace. Times are those without the
    profiler, as in `longpole summary`; activities, events and violations are as recorded.

    The table `memory` can also be read from a raw memory timeline
    (export_memory_timeline("x.raw.json.gz")) or a memory snapshot as JSON.

    \b
    Examples:
      longpole table trace.json.gz
      longpole table trace.json.gz kernels --where "name REGEXP 'gemm|nvjet'"
      longpole table trace.json.gz operators --shapes --top 10
      longpole table trace.json.gz roofline --peak bf16=800 --step 3
      longpole table rank*.json.gz activities --sort inside_ns --format jsonl
      longpole table trace.json.gz events --around 4711
      longpole table trace.json.gz graph_kernels --capture-trace capture.json.gz
    """
    paths, name = _name_of(words)
    if capture_traces and name != "graph_kernels":
        message = "only the table graph_kernels uses it"
        raise click.BadParameter(message, param_hint="--capture-trace")
    if name is None:
        return _list(paths, recording, options)
    _check(name, choices)
    _check_rows(name, sort, top)
    shown = Shown(name, where, top, sort, choices)
    options = replace(options, capture_traces=capture_traces or None)
    return _answer(paths, window, recording, shown, options)


def _list(paths: Sequence[str], recording: Recording, options: Options) -> int:
    """List the tables of each file; those about what limits a trace come first."""
    if not paths:
        return options.emit(listed_tables(None))
    if all(map(given_memory_file, paths)):
        return options.emit_each(listed_tables(path, of_memory=True) for path in paths)
    traces = [path for path in paths if not given_memory_file(path)]
    return answer_each(traces, options, TABLE, listed_tables, recording=recording)


def _answer(
    paths: Sequence[str], window: Asked, recording: Recording, shown: Shown, options: Options
) -> int:
    name = shown.table
    if name in PATH_TABLES:
        answer = partial(path_table, shown=shown)
        return answer_each(
            paths, options, TABLE, answer, window=window, about="path", recording=recording
        )
    if reads_memory_files(name) and all(map(given_memory_file, paths)):
        return answer_memory(paths, window, options, shown)
    if name == "steps" and window.step_name is not None:
        shown = replace(shown, choices={**shown.choices, "step_name": window.step_name})
    if shown.choices.get("around") is not None:
        if window.is_any:
            message = "--around finds an event in the whole trace; leave out the window"
            raise click.UsageError(message)
        window = replace(window, whole=True)
    is_whole = name in WHOLE_TABLES and not replace(window, step_name=None).is_any
    return answer_each(
        paths,
        options,
        TABLE,
        partial(question_table, shown=shown),
        window=None if is_whole else window,
        recording=None if name in _AS_RECORDED else recording,
        arguments=arguments_of(name),
    )


def _name_of(words: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Split the name of a table from the paths before it, if there is one."""
    *paths, last = words or ("",)
    if not words:
        return (), None
    if paths and last in tables():
        return tuple(paths), last
    if paths and not Path(last).exists() and "." not in last:
        advice = closest(last, tables(), "`longpole table TRACE` lists them")
        message = f"{last!r} is not a table; {advice}"
        raise click.UsageError(message)
    return words, None


def _check(name: str, choices: dict[str, Any]) -> None:
    """Raise for options that a table does not have."""
    accepted = frozenset[str]() if name in PATH_TABLES else choices_of(name)
    for choice in choices:
        if choice not in accepted:
            having = [each for each in tables() if _has(each, choice)]
            parameters = click.get_current_context().command.params
            option = next(each.opts[0] for each in parameters if each.name == choice)
            message = f"{option} is an option of {', '.join(having)}, not of {name}"
            raise click.UsageError(message)


def _check_rows(name: str, sort: str | None, top: int | None) -> None:
    """Raise for sorting or limiting data that is not a plain table, unless it supports that."""
    if name in PATH_TABLES or gives_frame(name):
        return
    for option, value in {"sort": sort, "top": top}.items():
        if value is not None and option not in choices_of(name):
            message = f"--{option} does not apply to {name}; --format csv writes all of its rows"
            raise click.UsageError(message)


def _has(name: str, choice: str) -> bool:
    return name not in PATH_TABLES and choice in choices_of(name)


def answer_memory(
    paths: Sequence[str], window: Asked, options: Options, shown: Shown | None = None
) -> int:
    """Answer from memory timelines and snapshots: by default the whole table `memory`."""
    from longpole.allocations import read_memory

    if window.is_any and not window.whole:
        message = "leave out the window: memory timelines and snapshots are shown whole"
        raise click.UsageError(message)

    table = shown or Shown("memory", None, None)

    def one(path: str) -> Answer:
        return options.attempt(
            TABLE, path, lambda: memory_table(path, read_memory(path), shown=table)
        )

    return options.emit_each(map(one, paths))
