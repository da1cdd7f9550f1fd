"""`longpole convert`: write a table, or a part of a trace, to a file for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.answer.table import (
    WHOLE_TABLES,
    Shown,
    rows_of_path,
    rows_of_question,
    tables,
)
from longpole.cli.answer.windows import Found, exit_code_of, known_of, known_of_window
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, window_options
from longpole.cli.table import where_option
from longpole.engine.windows import choose_window
from longpole.files.writing import new_file
from longpole.report.blocks import Headline, Sentence
from longpole.report.csv import harmless
from longpole.report.document import Document, flat
from longpole.tables.catalogue import PATH_TABLES, arguments_of, words_of
from longpole.words.data import Data
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.engine.windows import Window
    from longpole.formats.convert.flame import Stack, Time
    from longpole.trace.trace import Trace

__all__ = ["Converted", "convert"]

_ENDINGS: Final[dict[str, tuple[str, ...]]] = {
    "table": (".parquet", ".arrow", ".csv", ".jsonl"),
    "flame": (".folded", ".speedscope.json"),
    "trace": (".json", ".json.gz"),
    "perfetto": (".perfetto-trace", ".perfetto-trace.gz"),
    "saved": (".longpole",),
    "overlay": (".pftrace", ".zip"),
}
"""Content of a file by suffix; the first match counts."""
_SCHEMA: Final = "longpole.convert/1"
_WRITERS: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".arrow": lambda rows, path: rows.write_ipc(path),
    ".csv": lambda rows, path: _harmless(flat(rows)).write_csv(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
}


@click.command()
@answers("longpole.cli.convert:Converted")
@trace_argument
@output_options("File to write; its ending sets the format, as listed above.")
@click.option(
    "--table",
    type=click.Choice(tuple(tables())),
    metavar="NAME",
    default="events",
    show_default=True,
    help="Table to write; `longpole table TRACE` lists the names.",
)
@click.option(
    "--by",
    metavar="KIND",
    help="Kind of rows of the table; `longpole table NAME --help` lists them.",
)
@where_option
@click.option(
    "--time",
    type=click.Choice(("host", "device", "path")),
    help="Time that a flame graph shows: of threads, devices or the critical path."
    "  [default: host]",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Add tracks with queue lengths and copy bandwidths to the critical path.",
)
@window_options()
@shared_options
def convert(
    *,
    trace: str,
    output: Path,
    force: bool,
    table: str,
    by: str | None,
    where: str | None,
    time: Time | None,
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
      longpole convert rank0_ascend_pt -o rank0.perfetto-trace
      longpole convert trace.json.gz -o trace.perfetto-trace
      longpole convert trace.json.gz -o trace.longpole
      longpole convert trace.json.gz --time device -o device.folded
      longpole convert trace.json.gz --step 3 --counters -o both.zip
    """
    form = _form_of(output)
    given = {
        "--table": table != "events",
        "--by": by,
        "--where": where,
        "--time": time,
        "--counters": counters,
    }
    _check(form, [*(name for name, value in given.items() if value)], window)
    is_file = form in ("table", "perfetto") or output.suffix == ".pftrace" or trace != "-"
    needed = "only tables, .perfetto-trace and .pftrace are written from a pipe; give a file"
    require(is_file, needed)
    if by is not None and by not in words_of(table):
        message = f"--by of {table} is one of {', '.join(words_of(table))}, not {by!r}"
        require(bool(words_of(table)), f"{table} has one kind of rows; leave out --by")
        raise click.UsageError(message)
    shown = Shown(table, where, None, by=by)
    task = _task(form, window, shown, time or "host", counters)
    return answer_each(
        [trace],
        options,
        _SCHEMA,
        partial(_answer, task=task, output=output, force=force),
        window=task.window,
        about=task.about,
        arguments=task.arguments,
    )


def _form_of(output: Path) -> str:
    """Return the content for a file's suffix; raise for an unknown one."""
    for form, endings in _ENDINGS.items():
        if output.name.endswith(endings):
            return form
    known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    message = f"--output ends in {known}, not {output.suffix or output.name!r}"
    raise click.UsageError(message)


def _check(form: str, given: list[str], window: Asked) -> None:
    """Raise for options that have no effect for this content."""
    allowed = {
        "table": ["--table", "--by", "--where"],
        "flame": ["--time"],
        "overlay": ["--counters"],
    }.get(form, [])
    wrong = [name for name in given if name not in allowed]
    if window.is_any and form == "saved":
        wrong.append("a window")
    if wrong:
        what = {
            "table": "a table",
            "flame": "a flame graph",
            "saved": "all tables",
            "overlay": "the critical path",
        }
        message = f"{wrong[0]} has no meaning for {what.get(form, 'a trace')}"
        raise click.UsageError(message)


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


@dataclass(frozen=True, slots=True)
class Converted(Data):
    """The written file."""

    output: str
    """Path of the file."""
    bytes: int
    table: str
    """The name of the table, or what else was written."""
    rows: int


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
        verdict = part.verdict()
        known, code = known_of(path, trace, part, verdict), exit_code_of(verdict)
    else:
        known, code = known_of_window(path, trace, part), exit_codes.OK
    written = Converted(str(output), output.stat().st_size, task.what, n_rows)
    told = f"Wrote {count(n_rows, task.unit)} to {output}."
    if output.suffix == ".pftrace":
        told += " For the whole trace, use .perfetto-trace."
    document = Document(
        schema=_SCHEMA,
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
    with new_file(output, force=force, inputs=[Path(path)]) as unfinished:
        _WRITERS[output.suffix](rows, unfinished)
    return rows.height


def _harmless(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with strings as in `--format csv`: no formulas, no invisible characters."""
    import polars as pl

    changed = {}
    for name, dtype in rows.schema.items():
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
            texts = rows[name].cast(pl.String)
            shown = {text: harmless(text) for text in texts.unique().drop_nulls()}
            other = {text: safe for text, safe in shown.items() if safe != text}
            if other:
                changed[name] = texts.replace(other)
    return rows.with_columns(**changed)
