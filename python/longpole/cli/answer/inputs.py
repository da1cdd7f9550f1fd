"""Information about an input, as part of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.analyses.findings import READING_HINTS
from longpole.report.document import Warned
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.trace import Trace
    from longpole.traces.findings import RankFinding

__all__ = ["describe", "name_of", "warnings_of", "warnings_of_ranks"]


def name_of(path: str) -> str:
    """Return the name of an input for people."""
    return "stdin" if path == "-" else escape(path)


def describe(path: str, trace: Trace) -> dict[str, Any]:
    """Return what was read, for the envelope."""
    return {
        "path": path,
        "format": trace.format,
        "compression": trace.compression,
        "bytes": trace.n_bytes,
        "events": trace.n_events,
        "rank": trace.rank,
        "world_size": trace.world_size,
    }


def warnings_of(trace: Trace) -> list[Warned]:
    """Return what was lost or altered while reading, for the envelope."""
    severe = ("altered", "data_loss")
    return [
        Warned(
            row["code"],
            row["count"],
            row["sentence"],
            row["effect"],
            READING_HINTS.get(row["code"]),
        )
        for row in trace.core.diagnostics().to_dicts()
        if row["severity"] in severe
    ]


def warnings_of_ranks(losses: Iterable[RankFinding]) -> list[Warned]:
    """Return what was lost of several ranks, for the envelope."""
    return [
        Warned(it.kind.replace(" ", "_"), it.count, it.message, "the rest is answered")
        for it in losses
    ]
