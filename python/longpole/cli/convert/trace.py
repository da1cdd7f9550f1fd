"""Writes one trace, a part of it, or one of its tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.answer.table import WHOLE_TABLES, Shown, rows_of_path, rows_of_question
from longpole.cli.answer.windows import Found, exit_code_of, known_of, known_of_window
from longpole.cli.ask.traces import answer_each
from longpole.cli.convert.written import SCHEMA, Converted, write_table
from longpole.engine.windows import choose_window
from longpole.files.writing import new_file
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import Document
from longpole.tables.catalogue import PATH_TABLES, arguments_of
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.cli.ask.windows import Asked
    from longpole.engine.windows import Window
    from longpole.formats.convert.flame import Stack, Time
    from longpole.trace.trace import Trace


def convert_trace(
    path: str,
    output: Path,
    form: str,
    window: Asked,
    shown: Shown,
    *,
    time: Time,
    counters: bool,
    force: bool,
    options: Options,
) -> int:
    """Write one trace as `form`, and report what was written; return the exit code."""
    is_file = form in ("table", "perfetto") or output.suffix == ".pftrace" or path != "-"
    needed = "only tables, .perfetto-trace and .pftrace are written from a pipe; give a file"
    require(is_file, needed)
    task = _task(form, window, shown, time, counters)
    return answer_each(
        [path],
        options,
        SCHEMA,
        partial(_answer, task=task, output=output, force=force),
        window=task.window,
        about=task.about,
        arguments=task.arguments,
    )


class _Task(NamedTuple):
    """What to write, of which window, and how."""

    what: str
    write: Callable[..., int]
    """Writes it, from the name of a trace, the trace and the window; returns the number of rows."""
    window: Asked | None = None
    about: Literal["time", "path"] = "time"
    arguments: Literal["ids", "default"] | Sequence[str] = "ids"
    unit: str = "row"


def _task(form: str, window: Asked, shown: Shown, time: Time, counters: bool) -> _Task:  # noqa: FBT001
    """Return how to write this content."""
    given = window if window.is_any else None
    tasks = {
        "saved": _Task("all tables", _save, arguments="default"),
        "trace": _Task("trace", _cut if given else _repair, given),
        "perfetto": _Task("trace", _write_perfetto, given, arguments="default"),
        "flame": _Task(f"{time} time by stack", partial(_write_flame, time=time), window),
        "overlay": _Task(
            "critical path",
            partial(_write_overlay, counters=counters),
            window,
            "path",
            "default" if counters else "ids",
            "segment",
        ),
    }
    if form in tasks:
        return tasks[form]
    write = partial(_write_rows, shown=shown)
    if shown.table in PATH_TABLES:
        return _Task(shown.table, write, window, "path")
    lists_all = shown.table == "events" or shown.table in WHOLE_TABLES
    of = given if lists_all else window
    return _Task(shown.table, write, of, arguments=arguments_of(shown.table, shown.by))


def _answer(
    path: str,
    trace: Trace,
    part: Found | Window | None = None,
    *,
    task: _Task,
    output: Path,
    force: bool,
) -> Answer:
    """Write what was requested, and report what was written."""
    n_rows = task.write(path, trace, part, output, force=force)
    if isinstance(part, Found):
        verdict = part.verdict
        known, code = known_of(path, trace, part, verdict), exit_code_of(verdict)
    else:
        known, code = known_of_window(path, trace, part), exit_codes.OK
    written = Converted(str(output), output.stat().st_size, task.what, n_rows)
    told = f"Wrote {count(n_rows, task.unit)} to {output}."
    if output.suffix == ".pftrace":
        told += " For the whole trace, use .perfetto-trace."
    document = Document(
        schema=SCHEMA,
        **known,
        data=written,
        blocks=lambda: [Headline(f"{name_of(path)}: {task.what}"), Sentence(told)],
        records=lambda: [record_of(written, path)],
    )
    return document, code


def _cut(path: str, trace: Trace, window: Window, output: Path, *, force: bool) -> int:
    """Write the events of a window as a smaller trace."""
    from longpole.formats.convert.cut import cut

    with usage_errors():
        return cut(trace, path, window, output, force=force)


def _repair(path: str, _trace: Trace, _window: None, output: Path, *, force: bool) -> int:
    """Write everything readable of a trace as a valid trace."""
    from longpole.formats.convert.repaired import repair

    return repair(path, output, force=force)


def _save(_path: str, trace: Trace, _window: None, output: Path, *, force: bool) -> int:
    """Write all tables of a trace, to be opened again."""
    trace.save(output, force=force)
    return trace.events.height


def _write_perfetto(
    path: str, trace: Trace, window: Window | None, output: Path, *, force: bool
) -> int:
    """Write a trace, or the events of a window, for Perfetto."""
    from longpole.formats.convert.perfetto import write_perfetto

    return write_perfetto(trace, output, window, inputs=[Path(path)], force=force)


def _write_flame(
    path: str, trace: Trace, window: Window, output: Path, *, force: bool, time: Time
) -> int:
    """Write times by stack of names, for a flame graph viewer."""
    from longpole.formats.convert.flame import flame, folded, speedscope

    n_written = 0

    def counted() -> Iterator[Stack]:
        nonlocal n_written
        for stack in flame(trace, window, time=time):
            n_written += 1
            yield stack

    is_folded = output.suffix == ".folded"
    texts = folded(counted()) if is_folded else speedscope(counted(), Path(path).name)
    with (
        new_file(output, force=force, inputs=[Path(path)]) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(texts)
    return n_written


def _write_overlay(
    path: str, trace: Trace, found: Found, output: Path, *, force: bool, counters: bool
) -> int:
    """Write the critical path for Perfetto, with the trace itself in a zip archive."""
    from longpole.tables.counter_tracks import counter_tracks

    beside = path if output.suffix == ".zip" else None
    window = choose_window(trace, between=found.path.window) if counters else None
    tracks = counter_tracks(trace, window) if counters else b""
    found.path.to_perfetto(output, beside=beside, counters=tracks, force=force)
    return found.path.segments.height


def _write_rows(
    path: str, trace: Trace, part: Any, output: Path, *, force: bool, shown: Shown
) -> int:
    """Write a table."""
    is_of_path = shown.table in PATH_TABLES
    rows = (rows_of_path if is_of_path else rows_of_question)(trace, part, shown)
    write_table(rows, output, [Path(path)], force=force)
    return rows.height
