"""An overlay for Perfetto, written to a file, as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.data import Data
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import Document
from longpole.wording import count

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.trace import Trace

__all__ = ["OVERLAY", "Overlay", "overlay_answer"]

OVERLAY: Final = "longpole.overlay/1"


@dataclass(frozen=True, slots=True)
class Overlay(Data):
    """What was written."""

    output: str
    """The file."""
    bytes: int
    segments: int
    with_trace: bool
    """Whether the events of the trace are in it, too."""


def overlay_answer(
    name: str,
    trace: Trace,
    found: Found,
    *,
    output: Path,
    force: bool,
    with_trace: bool,
    counters: bool,
) -> Answer:
    """Write the path of a window, and say what was written."""
    beside = name if with_trace else None
    tracks = _counters(trace, found.path.window) if counters else b""
    found.path.to_perfetto(output, beside=beside, counters=tracks, force=force)
    n_segments = found.path.segments.height
    written = Overlay(
        output=str(output),
        bytes=output.stat().st_size,
        segments=n_segments,
        with_trace=with_trace,
    )
    how = "it" if with_trace else "it together with the trace"
    document = Document(
        schema=OVERLAY,
        **known_of(name, trace, found),
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(name)}: critical path, {found.title}"),
            Sentence(f"Wrote {count(n_segments, 'segment')} to {output}."),
            Sentence(f"Open {how} in https://ui.perfetto.dev."),
        ],
        records=lambda: [{"path": name, **written.to_dict()}],
    )
    return document, exit_code_of(trace, found.path)


def _counters(trace: Trace, between: tuple[int, int]) -> bytes:
    from longpole.analyses.counter_tracks import counter_tracks
    from longpole.windows import choose_window

    return counter_tracks(trace, choose_window(trace, between=between))
