"""`longpole convert`: write a table, or a part of a trace, to a file for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from longpole.analyses.questions import arguments_of
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.answer.table import (
    PATH_TABLES,
    WHOLE_TABLES,
    Shown,
    rows_of_path,
    rows_of_question,
    tables,
)
from longpole.cli.answer.windows import exit_code_of, known_of, known_of_trace, known_of_window
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, window_options
from longpole.cli.table import where_option
from longpole.data import Data
from longpole.files import new_file
from longpole.report.blocks import Headline, Sentence
from longpole.report.csv import harmless
from longpole.report.document import Document
from longpole.report.frames import flat
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.convert.flame import Stack, Time
    from longpole.trace import Trace
    from longpole.windows import Window

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
@window_options()
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
    task = _task("normalised" if normalise else form, window, Shown(table, where, None))
    write = partial(task.write, output=output, force=force)
    if form == "flame":
        write = partial(write, time=time or "host")
    if form == "overlay":
        write = partial(write, counters=counters)
    return answer_each(
        [trace],
        options,
        _SCHEMA,
        write,
        window=task.window,
        about=task.about,
        arguments="default" if counters else task.arguments,
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


class _Task(NamedTuple):
    """A function that writes, the window that it needs, and the arguments of events."""

    write: Callable[..., Answer]
    window: Asked | None = None
    about: Literal["time", "path"] = "time"
    arguments: Literal["ids", "default"] | Sequence[str] = "ids"


def _task(form: str, window: Asked, shown: Shown) -> _Task:
    """Return how to write this content."""
    given = window if window.is_any else None
    tasks = {
        "saved": _Task(_save_trace, arguments="default"),
        "normalised": _Task(_normalise_trace),
        "trace": _Task(_cut_trace if given else _repair_trace, given),
        "perfetto": _Task(_write_perfetto, given, arguments="default"),
        "flame": _Task(_write_flame, window),
        "overlay": _Task(_write_overlay, window, "path"),
    }
    if form in tasks:
        return tasks[form]
    if shown.table in PATH_TABLES:
        return _Task(partial(_convert_path, shown=shown), window, "path")
    lists_all = shown.table == "events" or shown.table in WHOLE_TABLES
    write = partial(_convert_question, shown=shown)
    return _Task(write, given if lists_all else window, arguments=arguments_of(shown.table))


@dataclass(frozen=True, slots=True)
class Converted(Data):
    """The written file."""

    output: str
    """Path of the file."""
    bytes: int
    table: str
    """The table of the trace, or what was written instead."""
    rows: int


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


def _writer_of(output: Path) -> Callable[[pl.DataFrame, Path], None]:
    """Return a function that writes a table to a file with this suffix."""
    return _WRITERS[output.suffix]


def _cut_trace(path: str, trace: Trace, window: Window, *, output: Path, force: bool) -> Answer:
    """Write the events of a window as a smaller trace."""
    from longpole.convert.cut import cut

    with usage_errors():
        n_written = cut(trace, path, window, output, force=force)
    known = known_of_window(path, trace, window)
    return _document("trace", n_written, output, known), exit_codes.OK


def _repair_trace(path: str, trace: Trace, *, output: Path, force: bool) -> Answer:
    """Write everything readable of a trace as a valid one."""
    from longpole.convert.repaired import repair

    n_written = repair(path, output, force=force)
    known = known_of_trace(path, trace)
    return _document("trace", n_written, output, known), exit_codes.OK


def _normalise_trace(path: str, trace: Trace, *, output: Path, force: bool) -> Answer:
    """Write everything readable of a trace so that every viewer shows it unchanged."""
    from longpole.convert.normalised import normalise

    n_written = normalise(path, output, force=force)
    known = known_of_trace(path, trace)
    return _document("trace", n_written, output, known), exit_codes.OK


def _save_trace(path: str, trace: Trace, *, output: Path, force: bool) -> Answer:
    """Write all tables of a trace, to be opened again."""
    trace.save(output, force=force)
    known = known_of_trace(path, trace)
    return _document("all tables", trace.events.height, output, known), exit_codes.OK


def _write_perfetto(
    path: str, trace: Trace, window: Window | None = None, *, output: Path, force: bool
) -> Answer:
    """Write a trace, or the events of a window, for Perfetto."""
    from longpole.convert import perfetto

    inputs = [Path(path)]
    n_written = perfetto.write_perfetto(trace, output, window, inputs=inputs, force=force)
    known = known_of_window(path, trace, window)
    return _document("trace", n_written, output, known), exit_codes.OK


def _write_flame(
    path: str, trace: Trace, window: Window, *, time: Time, output: Path, force: bool
) -> Answer:
    """Write times by stacks of names, for a flame graph viewer."""
    from longpole.convert.flame import flame, folded, speedscope

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
    known = known_of_window(path, trace, window)
    return _document(f"{time} time by stack", n_written, output, known), exit_codes.OK


def _write_overlay(
    path: str, trace: Trace, found: Found, *, output: Path, force: bool, counters: bool
) -> Answer:
    """Write the critical path for Perfetto, with the trace itself in a zip archive."""
    beside = path if output.suffix == ".zip" else None
    tracks = _counters(trace, found.path.window) if counters else b""
    found.path.to_perfetto(output, beside=beside, counters=tracks, force=force)
    verdict = found.verdict()
    known = known_of(path, trace, found, verdict)
    n_written = found.path.segments.height
    alone = "" if beside else " For the whole trace, use .perfetto-trace."
    document = _document("critical path", n_written, output, known, unit="segment", more=alone)
    return document, exit_code_of(verdict)


def _counters(trace: Trace, between: tuple[int, int]) -> bytes:
    from longpole.analyses.counter_tracks import counter_tracks
    from longpole.windows import choose_window

    return counter_tracks(trace, choose_window(trace, between=between))


def _convert_path(
    path: str, trace: Trace, found: Found, *, shown: Shown, output: Path, force: bool
) -> Answer:
    """Write a table about the critical path."""
    rows = rows_of_path(trace, found, shown)
    verdict = found.verdict()
    known = known_of(path, trace, found, verdict)
    return _written(rows, shown, output, known, force=force), exit_code_of(verdict)


def _convert_question(
    path: str,
    trace: Trace,
    window: Window | None = None,
    *,
    shown: Shown,
    output: Path,
    force: bool,
) -> Answer:
    """Write the table that answers a question."""
    rows = rows_of_question(trace, window, shown)
    known = known_of_window(path, trace, window)
    return _written(rows, shown, output, known, force=force), exit_codes.OK


def _written(
    rows: pl.DataFrame, shown: Shown, output: Path, known: dict[str, Any], *, force: bool
) -> Document:

    path = Path(known["input"]["path"])
    with new_file(output, force=force, inputs=[path]) as unfinished:
        _writer_of(output)(rows, unfinished)
    return _document(shown.table, rows.height, output, known)


def _document(
    what: str,
    n_rows: int,
    output: Path,
    known: dict[str, Any],
    *,
    unit: str = "row",
    more: str = "",
) -> Document:
    path = known["input"]["path"]
    written = Converted(output=str(output), bytes=output.stat().st_size, table=what, rows=n_rows)
    return Document(
        schema=_SCHEMA,
        **known,
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(path)}: {what}"),
            Sentence(f"Wrote {count(n_rows, unit)} to {output}.{more}"),
        ],
        records=lambda: [record_of(written, path)],
    )
