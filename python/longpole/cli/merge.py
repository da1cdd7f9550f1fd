"""`longpole merge`: write the ranks of a run as one aligned trace for ui.perfetto.dev."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import record_of
from longpole.cli.answer.problems import require
from longpole.cli.ask.options import Options, answer_options, answers, output_options
from longpole.cli.ask.ranks import (
    answer_ranks,
    rank_progress,
    reading_options,
    sources_argument,
)
from longpole.jobs.merge import merge as merge_ranks
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Document
from longpole.words.data import Data
from longpole.words.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from longpole.cli.answer.emit import Answer
    from longpole.jobs.trace_set import TraceSet
    from longpole.report.blocks import Block

__all__ = ["merge"]

_SCHEMA: Final = "longpole.merge/1"


@click.command()
@answers("longpole.cli.merge:MergedFile")
@sources_argument
@output_options("File to write: .pftrace, or .zip for a compressed one.")
@reading_options
@answer_options
def merge(
    *,
    sources: Sequence[str],
    output: Path,
    force: bool,
    reading: dict[str, Any],
    options: Options,
) -> int:
    """Write the ranks of a run as one aligned trace for ui.perfetto.dev.

    SOURCES are a directory, a glob pattern, or the traces of the ranks. All times are on the
    clock of the first rank. Arrows show the critical path across ranks.

    \b
    Examples:
      longpole merge traces/ -o run.pftrace
      longpole merge rank*.json.gz -o run.zip
    """
    is_known = output.suffix in {".pftrace", ".zip"}
    require(is_known, "the name of the output must end in .pftrace or .zip")
    progress = rank_progress("writing")
    answer = partial(_answer, sources, output=output, force=force, progress=progress)
    return answer_ranks(sources, options, _SCHEMA, answer, reading)


@dataclass(frozen=True, slots=True)
class MergedFile(Data):
    """The merged trace that was written."""

    output: str
    """Path of the file."""
    bytes: int
    ranks: int
    segments: int
    """Segments of the path across ranks."""
    largest_shift_ns: int
    """Largest shift of a clock."""


def _answer(
    sources: Sequence[str],
    traces: TraceSet,
    *,
    output: Path,
    force: bool,
    progress: Callable[[int, int], object] | None,
) -> Answer:
    """Write the ranks, and report what was written."""
    written = merge_ranks(traces, output, force=force, progress=progress)
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
        schema=_SCHEMA,
        input={"path": path},
        data=merged,
        blocks=lambda: list(_blocks(path, merged, notes)),
        records=lambda: [record_of(merged, path)],
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
