"""`longpole table`: print a table of a trace, or list the tables."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer.problems import usage_errors
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
from longpole.cli.ask.numbers import COUNT, COUNT_OR_ZERO, RATE
from longpole.cli.ask.options import Options, answers, graph_options
from longpole.cli.ask.suggestions import closest
from longpole.cli.ask.traces import answer_each, given_memory_file
from longpole.cli.ask.windows import OF_PATH, Asked, Chosen, window_options
from longpole.tables.catalogue import (
    PATH_TABLES,
    arguments_of,
    choices_of,
    gives_frame,
    question,
    reads_memory_files,
    views_of,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.trace.trace import Trace


def _peaks(
    context: click.Context, option: click.Parameter, given: Sequence[str]
) -> dict[str, float]:
    """Parse `NAME=NUMBER`."""
    peaks: dict[str, float] = {}
    for text in given:
        dtype, _, number = text.partition("=")
        try:
            peaks[dtype.strip().lower()] = RATE.convert(number, None, None)
        except click.BadParameter as error:
            message = f"{text!r} is not NAME=NUMBER, such as bf16=800 or bandwidth=3350"
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
    "shapes": click.Option(
        ["--shapes"],
        is_flag=True,
        default=None,
        help="One row for each combination of input shapes.",
    ),
    "annotations": click.Option(
        ["--annotations"], metavar="PATTERN", help="Regex for annotations that name modules."
    ),
    "peak": click.Option(
        ["--peak"],
        multiple=True,
        callback=_peaks,
        metavar="NAME=NUMBER",
        help="Peak to use instead of the published one: TFLOP/s of a data type (bf16=800), or GB/s"
        " of the memory (bandwidth=3350). Repeatable.",
    ),
    "around": click.Option(
        ["--around"],
        type=COUNT_OR_ZERO,
        metavar="EVENT",
        help="What encloses an event, its neighbours, and what it launched.",
    ),
}
"""Options that only some tables have, by function parameter."""
_OF_PATH: Final = ("end", "data_load")
_OF_CAPTURES: Final = "capture_traces"
_WITH_CAPTURES: Final = ("graph_kernels", "kernels", "modules", "operators", "roofline")
_NAMED: Final = "longpole.table"
"""Key of the name of the table in the context of the command."""


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


class _Table(click.Command):
    """`longpole table`, with the options and the help of the table that is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the name of the table first: it decides which options there are."""
        place = named_table(args)
        ctx.meta[_NAMED] = None if place is None else args[place]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            having = _having(error.option_name)
            if not having:
                raise
            of = f"not of {ctx.meta[_NAMED]}" if ctx.meta[_NAMED] else "but none is named"
            message = f"{error.option_name} is an option of {', '.join(having)}, {of}"
            raise click.UsageError(message, ctx) from error

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the named table, else those that all tables have."""
        name = ctx.meta.get(_NAMED)
        params = super().get_params(ctx)
        general = [each for each in params if _applies(each, name)]
        return general if name is None else [*_own_options(name), *general]

    def tables_with(self, option: str) -> list[str]:
        """Return the tables that have an option, if not all have it."""
        return _having(option)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show where the name of the table stands."""
        name = ctx.meta.get(_NAMED)
        if name is None:
            super().format_usage(ctx, formatter)
        else:
            formatter.write_usage(ctx.command_path, f"[OPTIONS] TRACE... {name}")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Describe the named table."""
        name = ctx.meta.get(_NAMED)
        if name is None:
            super().format_help_text(ctx, formatter)
            return
        doc = inspect.getdoc(question(name)) or ""
        with formatter.indentation():
            for paragraph in doc.partition("\nParameters\n---")[0].strip().split("\n\n"):
                formatter.write_paragraph()
                formatter.write_text(paragraph.replace("`", ""))
            formatter.write_paragraph()
            formatter.write_text(f"Its columns: longpole schema table {name}")


def named_table(args: Sequence[str]) -> int | None:
    """Return the place of the name of a table in arguments, unless it is an existing path."""
    found = [
        place
        for place, text in enumerate(args)
        if text in tables() and not Path(text).exists() and not _is_value(args[:place])
    ]
    # With two names, the first is that of the table if it comes before all traces.
    return None if not found else found[0] if found[0] == 0 else found[-1]


def _is_value(before: Sequence[str]) -> bool:
    """Whether an argument is the value of the option before it."""
    *_, last = before or [""]
    if not last.startswith("-") or "=" in last:
        return False
    flags = (option for option in table.params if isinstance(option, click.Option))
    known = [*flags, *_CHOICES.values()]
    return not any(last in option.opts and option.is_flag for option in known)


def _own_options(name: str) -> list[click.Parameter]:
    """Return the options that not every table has."""
    own: list[click.Parameter] = []
    words = words_of(name)
    if words:
        told = _parameter(name, "by")
        shown = click.Option(
            ["--by"], type=click.Choice(words), help=f"{told}  [default: {words[0]}]"
        )
        own.append(shown)
    return [*own, *(_CHOICES[each] for each in _CHOICES if each in _all_choices(name))]


def _all_choices(name: str) -> frozenset[str]:
    return frozenset().union(*(choices_of(name, by) for by in views_of(name)))


def _parameter(name: str, parameter: str) -> str:
    """Return the description of a parameter from the docstring of a table."""
    doc = inspect.getdoc(question(name)) or ""
    found = re.search(rf"^{parameter}\n((?:    .*\n?)+)", doc, re.MULTILINE)
    text = " ".join(found[1].split()) if found else "Kind of rows."
    return text.replace("`", "").replace('"', "")


def _applies(param: click.Parameter, name: str | None) -> bool:
    """Whether an option of the command applies to a table; with None, to all tables."""
    if param.name in _OF_PATH:
        return name in PATH_TABLES
    return param.name != _OF_CAPTURES or name in _WITH_CAPTURES


def _having(option: str) -> list[str]:
    """Return the tables that have an option, if not all have it."""
    of_command = [each for each in table.params if option in each.opts]
    if of_command:
        return [name for name in tables() if _applies(of_command[0], name)]
    return [name for name in tables() if any(option in each.opts for each in _own_options(name))]


@click.command(cls=_Table)
@answers("longpole.cli.answer.table:TableData")
@click.argument(
    "words",
    type=_TraceOrTable(allow_dash=True, readable=False),
    nargs=-1,
    metavar="[TRACE...] [NAME]",
)
@window_options(*OF_PATH)
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
    help="Number of rows to list in each table.  [default: 20 as text, md and html, else all]",
)
@graph_options
@click.pass_context
def table(
    context: click.Context,
    /,
    *,
    words: tuple[str, ...],
    window: Asked,
    where: str | None,
    sort: str | None,
    top: int | None,
    options: Options,
    by: str | None = None,
    **choices: Any,
) -> int:
    """Print a table of a trace; without NAME, list the tables.

    `longpole table NAME --help` lists the options of a table. The list begins with the tables
    about what limits the trace. Times are as recorded; only gains are of the program without the
    profiler.

    The table `memory` can also be read from a raw memory timeline
    (export_memory_timeline("x.raw.json.gz")) or a memory snapshot as JSON.

    \b
    Examples:
      longpole table trace.json.gz
      longpole trace.json.gz kernels --where "name REGEXP 'gemm|nvjet'"
      longpole trace.json.gz operators --shapes --top 10
      longpole trace.json.gz queue --by time --format csv
      longpole trace.json.gz roofline --peak bf16=800 --step 3
      longpole table rank*.json.gz activities --sort inside_ns --format jsonl
      longpole trace.json.gz events --around 4711
    """
    name = context.meta[_NAMED]
    paths = _without(words, name)
    if name is None:
        _check_paths(paths)
        return _list(paths, window, options)
    shown = Shown(name, where, top, sort, _given(**choices), by)
    _check(shown)
    return _answer(paths, window, shown, options)


def _list(paths: Sequence[str], window: Asked, options: Options) -> int:
    """List the tables of each file; those about what limits a trace come first."""
    if not paths:
        return options.emit(listed_tables(None))
    if all(map(given_memory_file, paths)):
        return options.emit_each(listed_tables(path, of_memory=True) for path in paths)
    traces = [path for path in paths if not given_memory_file(path)]

    def listed(path: str, trace: Trace) -> Answer:
        with usage_errors():
            verdict = None if trace.window is None else window.of(trace).verdict
        return listed_tables(path, trace, verdict)

    return answer_each(traces, options, TABLE, listed)


def _answer(paths: Sequence[str], window: Asked, shown: Shown, options: Options) -> int:
    name = shown.table
    if not paths:
        message = f"missing TRACE; use `longpole TRACE {name}`"
        raise click.UsageError(message)
    if name in PATH_TABLES:
        answer = partial(path_table, shown=shown)
        return answer_each(paths, options, TABLE, answer, window=window, about="path")
    if reads_memory_files(name) and all(map(given_memory_file, paths)):
        return answer_memory(paths, window, options, shown)
    if "step_name" in choices_of(name, shown.by) and window.step_name is not None:
        shown = replace(shown, choices={**shown.choices, "step_name": window.step_name})
    if shown.choices.get("around") is not None:
        if window.is_any:
            message = "--around finds an event in the whole trace; leave out the window"
            raise click.UsageError(message)
        window = replace(window, chosen=Chosen(whole=True))
    is_whole = name in WHOLE_TABLES and not replace(window, step_name=None).is_any
    return answer_each(
        paths,
        options,
        TABLE,
        partial(question_table, shown=shown),
        window=None if is_whole else window,
        arguments=arguments_of(name, shown.by),
    )


def _without(words: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    """Return the paths in the arguments: all but the name of the table."""
    place = named_table(words)
    return words if name is None or place is None else (*words[:place], *words[place + 1 :])


def _check_paths(paths: Sequence[str]) -> None:
    """Raise for a last argument that is neither a file nor a table."""
    last = paths[-1] if len(paths) > 1 else "."
    if not Path(last).exists() and "." not in last:
        advice = closest(last, tables(), "`longpole table TRACE` lists them")
        message = f"{last!r} is not a table; {advice}"
        raise click.UsageError(message)


def _check(shown: Shown) -> None:
    """Raise for options that this kind of rows does not have."""
    name, accepted = shown.table, choices_of(shown.table, shown.by)
    given: dict[str, object] = {
        **{_CHOICES[choice].opts[0]: choice for choice in shown.choices},
        **({"--where": "where"} if shown.where is not None else {}),
    }
    if shown.sort is not None and not gives_frame(name, shown.by):
        given["--sort"] = "sort"
    for option, choice in given.items():
        if choice not in accepted:
            message = f"{option} does not apply to {shown.title}"
            raise click.UsageError(message)


def answer_memory(
    paths: Sequence[str], window: Asked, options: Options, shown: Shown | None = None
) -> int:
    """Answer from memory timelines and snapshots: by default the whole table `memory`."""
    from longpole.trace.allocations import read_memory

    if window.is_any and not window.whole:
        message = "leave out the window: memory timelines and snapshots are shown whole"
        raise click.UsageError(message)

    table = shown or Shown("memory", None, None)

    def one(path: str) -> Answer:
        return options.attempt(
            TABLE, path, lambda: memory_table(path, read_memory(path), shown=table)
        )

    return options.emit_each(map(one, paths))
