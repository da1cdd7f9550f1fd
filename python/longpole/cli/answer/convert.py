"""A table of a trace, written to a file, as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.table import rows_of_path, rows_of_question
from longpole.cli.answer.usage import usage_errors
from longpole.cli.answer.windows import exit_code_of, known_of, known_of_trace, known_of_window
from longpole.data import Data
from longpole.files import new_file
from longpole.report.blocks import Headline, Sentence
from longpole.report.csv import harmless
from longpole.report.document import Document
from longpole.report.frames import flat
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.table import Shown
    from longpole.cli.answer.windows import Found
    from longpole.convert.flame import Stack, Time
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = [
    "CONVERT",
    "Converted",
    "convert_path",
    "convert_question",
    "cut_trace",
    "normalise_trace",
    "repair_trace",
    "save_trace",
    "write_flame",
    "write_overlay",
    "write_perfetto",
    "writer_of",
]

CONVERT: Final = "longpole.convert/1"
_WRITERS: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".arrow": lambda rows, path: rows.write_ipc(path),
    ".csv": lambda rows, path: _harmless(flat(rows)).write_csv(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
}


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


def writer_of(output: Path) -> Callable[[pl.DataFrame, Path], None]:
    """Return a function that writes a table to a file with this suffix."""
    return _WRITERS[output.suffix]


def cut_trace(path: str, trace: Trace, window: Window, *, output: Path, force: bool) -> Answer:
    """Write the events of a window as a smaller trace."""
    from longpole.convert.cut import cut

    with usage_errors():
        n_written = cut(trace, path, window, output, force=force)
    known = known_of_window(path, trace, window)
    return _document("trace", n_written, output, known), exit_codes.OK


def repair_trace(path: str, trace: Trace, *, output: Path, force: bool) -> Answer:
    """Write everything readable of a trace as a valid one."""
    from longpole.convert.repaired import repair

    n_written = repair(path, output, force=force)
    known = known_of_trace(path, trace)
    return _document("trace", n_written, output, known), exit_codes.OK


def normalise_trace(path: str, trace: Trace, *, output: Path, force: bool) -> Answer:
    """Write everything readable of a trace so that every viewer shows it unchanged."""
    from longpole.convert.normalised import normalise

    n_written = normalise(path, output, force=force)
    known = known_of_trace(path, trace)
    return _document("trace", n_written, output, known), exit_codes.OK


def save_trace(path: str, trace: Trace, *, output: Path, force: bool) -> Answer:
    """Write all tables of a trace, to be opened again."""
    trace.save(output, force=force)
    known = known_of_trace(path, trace)
    return _document("all tables", trace.events.height, output, known), exit_codes.OK


def write_perfetto(
    path: str, trace: Trace, window: Window | None, *, output: Path, force: bool
) -> Answer:
    """Write a trace, or the events of a window, for Perfetto."""
    from pathlib import Path

    from longpole.convert import perfetto

    inputs = [Path(path)]
    n_written = perfetto.write_perfetto(trace, output, window, inputs=inputs, force=force)
    known = known_of_window(path, trace, window)
    return _document("trace", n_written, output, known), exit_codes.OK


def write_flame(
    path: str, trace: Trace, window: Window, *, time: Time, output: Path, force: bool
) -> Answer:
    """Write times by stacks of names, for a flame graph viewer."""
    from pathlib import Path

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


def write_overlay(
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


def convert_path(
    path: str, trace: Trace, found: Found, *, shown: Shown, output: Path, force: bool
) -> Answer:
    """Write a table about the critical path."""
    rows = rows_of_path(trace, found, shown)
    verdict = found.verdict()
    known = known_of(path, trace, found, verdict)
    return _written(rows, shown, output, known, force=force), exit_code_of(verdict)


def convert_question(
    path: str, trace: Trace, window: Window | None, *, shown: Shown, output: Path, force: bool
) -> Answer:
    """Write the table that answers a question."""
    rows = rows_of_question(trace, window, shown)
    known = known_of_window(path, trace, window)
    return _written(rows, shown, output, known, force=force), exit_codes.OK


def _written(
    rows: pl.DataFrame, shown: Shown, output: Path, known: dict[str, Any], *, force: bool
) -> Document:
    from pathlib import Path

    path = Path(known["input"]["path"])
    with new_file(output, force=force, inputs=[path]) as unfinished:
        writer_of(output)(rows, unfinished)
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
        schema=CONVERT,
        **known,
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(path)}: {what}"),
            Sentence(f"Wrote {count(n_rows, unit)} to {output}.{more}"),
        ],
        records=lambda: [{"path": path, **written.to_dict()}],
    )
