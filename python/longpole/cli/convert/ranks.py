"""Writes the ranks of a run as one aligned trace for ui.perfetto.dev."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import record_of
from longpole.cli.ask.ranks import answer_ranks, rank_progress
from longpole.cli.convert.written import SCHEMA
from longpole.errors import LongpoleError
from longpole.jobs.merge import merge
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Document
from longpole.words.data import Data
from longpole.words.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.jobs.trace_set import TraceSet
    from longpole.report.blocks import Block


def traces_in(traces: Sequence[str]) -> list[str]:
    """List the traces that a command was given, with those of one folder, pattern or address."""
    from longpole.jobs.sources import find_sources

    only = traces[0]
    if len(traces) > 1 or only == "-" or (Path(only).exists() and not Path(only).is_dir()):
        return [*traces]
    try:
        found = [source.path for source in find_sources(only)]
    except LongpoleError:  # raised again where the trace is read
        return [only]
    # One trace of a folder is read as the folder, whose other files may belong to it.
    return [only] if len(found) == 1 and Path(only).is_dir() else found


@dataclass(frozen=True, slots=True)
class ConvertedRanks(Data):
    """The written trace of several ranks."""

    output: str
    """Path of the file."""
    bytes: int
    ranks: int
    segments: int
    """Segments of the path across ranks."""
    largest_shift_ns: int
    """Largest shift of a clock."""


def convert_ranks(
    sources: Sequence[str],
    output: Path,
    *,
    force: bool,
    step_name: str | None,
    workers: int | None,
    options: Options,
) -> int:
    """Write the ranks as one trace, and report what was written; return the exit code."""
    progress = rank_progress("writing")
    answer = partial(_answer, sources, output=output, force=force, progress=progress)
    reading = {"step_name": step_name, "workers": workers, "vocabulary": options.vocabulary}
    return answer_ranks(sources, options, SCHEMA, answer, reading)


def _answer(
    sources: Sequence[str],
    traces: TraceSet,
    *,
    output: Path,
    force: bool,
    progress: Callable[[int, int], object] | None,
) -> Answer:
    written = merge(traces, output, force=force, progress=progress)
    clocks = traces.clocks
    shift_ns = max((clocks["offset_ns"] - clocks["base_ns"]).abs().to_list())
    converted = ConvertedRanks(
        output=str(output),
        bytes=written.n_bytes,
        ranks=written.n_ranks,
        segments=written.n_segments,
        largest_shift_ns=shift_ns,
    )
    notes = [escape(finding.message) for finding in traces.findings]
    path = ", ".join(sources)
    document = Document(
        schema=SCHEMA,
        input={"path": path},
        data=converted,
        blocks=lambda: list(_blocks(path, converted, notes)),
        records=lambda: [record_of(converted, path)],
    )
    return document, exit_codes.OK


def _blocks(path: str, converted: ConvertedRanks, notes: list[str]) -> Iterator[Block]:
    shift_ns = converted.largest_shift_ns
    moved = f"clocks shifted by up to {duration(shift_ns)}" if shift_ns else "clocks not shifted"
    yield Headline(f"{escape(path)}: {count(converted.ranks, 'rank')}, {moved}")
    yield Sentence(
        f"Wrote {escape(converted.output)} ({converted.bytes / 1e6:.1f} MB) with a path of "
        f"{count(converted.segments, 'segment')} across ranks."
    )
    yield Sentence("Open it in https://ui.perfetto.dev.")
    if notes:
        yield Notes(notes)
