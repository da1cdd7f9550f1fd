"""`longpole convert`: write a table, or a part of a trace, to a file for other programs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from longpole.analyses.questions import arguments_of
from longpole.cli.answer.table import PATH_TABLES, WHOLE_TABLES, Shown, tables
from longpole.cli.answer.usage import require
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.rows import where_option
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, about_stretch, about_window, window_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longpole.cli.answer.emit import Answer
    from longpole.convert.flame import Time
    from longpole.trace import Trace

    _Asked = tuple[Callable[[str, Trace], Answer], Literal["ids", "default"]]

__all__ = ["convert"]

_ENDINGS: Final[dict[str, tuple[str, ...]]] = {
    "table": (".parquet", ".arrow", ".csv", ".jsonl"),
    "flame": (".folded", ".speedscope.json"),
    "trace": (".json", ".json.gz"),
    "perfetto": (".perfetto-trace", ".perfetto-trace.gz"),
    "saved": (".longpole",),
    "overlay": (".pftrace", ".zip"),
}
"""Content of a file by suffix; the first match counts."""


@click.command()
@answers("longpole.cli.answer.convert:Converted")
@trace_argument
@output_options(
    "The file to write: .parquet, .arrow, .csv or .jsonl for a table; .json or .json.gz for a"
    " trace; .perfetto-trace or .perfetto-trace.gz for a trace of Perfetto; .longpole for all"
    " tables; .folded or .speedscope.json for a flame graph; .pftrace or"
    " .zip for the critical path in ui.perfetto.dev."
)
@click.option(
    "--table",
    type=click.Choice(tuple(tables())),
    metavar="NAME",
    default="events",
    show_default=True,
    help="Table to write; `longpole table TRACE` lists the names.",
)
@where_option
@click.option(
    "--time",
    type=click.Choice(("host", "device", "path")),
    help="Time that a flame graph shows: of threads, devices or the critical path."
    "  [default: host]",
)
@click.option(
    "--normalise",
    is_flag=True,
    help="Write a trace that every viewer shows correctly: exact timestamps from the first "
    "event on, small ids, nested slices.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Add tracks with queue lengths and copy bandwidths to the critical path.",
)
@window_options
@shared_options
def convert(
    *,
    trace: str,
    output: Path,
    force: bool,
    table: str,
    where: str | None,
    time: Time | None,
    normalise: bool,
    counters: bool,
    window: Asked,
    options: Options,
) -> int:
    """Write a table, or a part of a trace, to a file for other programs.

    The ending of the file sets the format.

    \b
      .parquet .arrow .csv .jsonl  one table: all events, or another table with --table
      .json .json.gz               a trace: the events of a window and what its critical path
                                   needs; without a window, all that could be read
      .perfetto-trace .perfetto-trace.gz
                                   the same as a trace of Perfetto
      .longpole                    all tables, for longpole to open again without parsing
      .folded .speedscope.json     a flame graph of the time that --time names
      .pftrace .zip                the critical path for ui.perfetto.dev, alone or with the trace,
                                   which Perfetto opens as one timeline

    \b
    Examples:
      longpole convert trace.json.gz -o events.parquet
      longpole convert trace.json.gz --table kernels --step 3 -o kernels.csv
      longpole convert trace.json.gz --step 3 -o step3.json.gz
      longpole convert damaged.json -o whole.json.gz
      longpole convert rank0_ascend_pt -o rank0.json.gz --normalise
      longpole convert trace.json.gz -o trace.perfetto-trace
      longpole convert trace.json.gz -o trace.longpole
      longpole convert trace.json.gz --time device -o device.folded
      longpole convert trace.json.gz --step 3 --counters -o both.zip
    """
    from longpole.cli.answer.convert import CONVERT

    form = _form_of(output)
    given = {
        "--table": table != "events",
        "--where": where,
        "--time": time,
        "--normalise": normalise,
        "--counters": counters,
    }
    _check(form, [*(name for name, value in given.items() if value)], window)
    is_file = form in ("table", "perfetto") or output.suffix == ".pftrace" or trace != "-"
    needed = "only tables, .perfetto-trace and .pftrace are written from a pipe; give a file"
    require(is_file, needed)
    shown = (table, where)
    if normalise:
        form = "normalised"
    if form == "overlay":
        answer, arguments = _overlay(output, window, force=force, counters=counters)
    else:
        answer, arguments = _answer(form, output, window, shown, time or "host", force=force)
    return answer_each([trace], options, CONVERT, answer, arguments=arguments)


def _form_of(output: Path) -> str:
    """Return the content for a file's suffix; raise for an unknown one."""
    for form, endings in _ENDINGS.items():
        if output.name.endswith(endings):
            return form
    known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    message = f"--output ends in {known}, not {output.suffix or output.name!r}"
    raise click.UsageError(message)


def _check(form: str, given: list[str], window: Asked) -> None:
    """Raise for options without a meaning for this content."""
    allowed = {
        "table": ["--table", "--where"],
        "flame": ["--time"],
        "trace": ["--normalise"],
        "overlay": ["--counters"],
    }.get(form, [])
    wrong = [name for name in given if name not in allowed]
    if window.is_any and (form == "saved" or "--normalise" in given):
        wrong.append("a window")
    if wrong:
        what = {
            "table": "a table",
            "flame": "a flame graph",
            "saved": "all tables",
            "overlay": "the critical path",
        }
        whole = "--normalise writes the whole trace" if "--normalise" in given else None
        told = whole if wrong == ["a window"] and whole else None
        message = told or f"{wrong[0]} has no meaning for {what.get(form, 'a trace')}"
        raise click.UsageError(message)


def _overlay(output: Path, window: Asked, *, force: bool, counters: bool) -> _Asked:
    from longpole.cli.answer.convert import CONVERT, write_overlay

    to: Any = {"output": output, "force": force, "counters": counters}
    answer = about_window(CONVERT, window, partial(write_overlay, **to))
    return answer, "default" if counters else "ids"


def _answer(
    form: str,
    output: Path,
    window: Asked,
    shown: tuple[str, str | None],
    time: Time,
    *,
    force: bool,
) -> _Asked:
    """Return the function that answers, and the event arguments it needs."""
    from longpole.cli.answer import convert as answers
    from longpole.cli.answer.convert import CONVERT

    to: Any = {"output": output, "force": force}
    if form in ("saved", "normalised"):
        whole_trace = answers.save_trace if form == "saved" else answers.normalise_trace
        return partial(whole_trace, **to), "default" if form == "saved" else "ids"
    if form == "flame":
        flame = partial(answers.write_flame, time=time, **to)
        return about_stretch(CONVERT, window, flame), "ids"
    if form in ("trace", "perfetto"):
        return _trace(form, window, to)
    table, where = shown
    to |= {"shown": Shown(table, where, None)}
    if table in PATH_TABLES:
        return about_window(CONVERT, window, partial(answers.convert_path, **to)), "ids"
    of_window = about_stretch(CONVERT, window, partial(answers.convert_question, **to))
    whole = partial(answers.convert_question, window=None, **to)
    lists_all = table == "events" or table in WHOLE_TABLES
    answer = whole if lists_all and not window.is_any else of_window
    return answer, arguments_of(table)


def _trace(form: str, window: Asked, to: dict[str, Any]) -> _Asked:
    """Return the function that writes a trace, or a part of it."""
    from longpole.cli.answer import convert as answers
    from longpole.cli.answer.convert import CONVERT

    if form == "perfetto":
        perfetto = partial(answers.write_perfetto, **to)
        of_window = about_stretch(CONVERT, window, perfetto)
        return of_window if window.is_any else partial(perfetto, window=None), "default"
    if window.is_any:
        return about_stretch(CONVERT, window, partial(answers.cut_trace, **to)), "ids"
    return partial(answers.repair_trace, **to), "ids"
