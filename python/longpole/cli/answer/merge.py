"""Several ranks, written as one trace, as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.cli.answer import exit_codes
from longpole.data import Data
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Document
from longpole.traces.merge import merge
from longpole.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.traces.trace_set import TraceSet

__all__ = ["MERGE", "MergedFile", "merge_answer"]

MERGE: Final = "longpole.merge/1"


@dataclass(frozen=True, slots=True)
class MergedFile(Data):
    """The written file."""

    output: str
    """Path of the file."""
    bytes: int
    ranks: int
    segments: int
    """Segments of the path across ranks."""
    largest_shift_ns: int
    """Largest shift of a clock."""


def merge_answer(
    sources: Sequence[str],
    traces: TraceSet,
    *,
    output: Path,
    force: bool,
    progress: Callable[[int, int], object] | None,
) -> Answer:
    """Write the ranks, and report what was written."""
    written = merge(traces, output, force=force, progress=progress)
    clocks = traces.clocks
    shift_ns = max((clocks["offset_ns"] - clocks["base_ns"]).abs().to_list())
    merged = MergedFile(
        output=str(output),
        bytes=written.n_bytes,
        ranks=written.n_ranks,
        segments=written.n_segments,
        largest_shift_ns=shift_ns,
    )
    notes = [escape(finding.message) for finding in traces.findings]
    path = ", ".join(sources)
    document = Document(
        schema=MERGE,
        input={"path": path},
        data=merged,
        blocks=lambda: list(_blocks(path, merged, notes)),
        records=lambda: [{"path": path, **merged.to_dict()}],
    )
    return document, exit_codes.OK


def _blocks(path: str, merged: MergedFile, notes: list[str]) -> Iterator[Block]:
    shift_ns = merged.largest_shift_ns
    moved = f"clocks shifted by up to {duration(shift_ns)}" if shift_ns else "clocks not shifted"
    yield Headline(f"{escape(path)}: {count(merged.ranks, 'rank')}, {moved}")
    yield Sentence(
        f"Wrote {escape(merged.output)} ({merged.bytes / 1e6:.1f} MB) with a path of "
        f"{count(merged.segments, 'segment')} across ranks."
    )
    yield Sentence("Open it in https://ui.perfetto.dev.")
    if notes:
        yield Notes(notes)
