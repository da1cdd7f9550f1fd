"""The joint analysis of several ranks, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.ranks import ranks
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import warnings_of_ranks
from longpole.cli.answer.rank_sections import sections_of_ranks
from longpole.data import plain
from longpole.report.blocks import Headline
from longpole.report.document import DATA_FORMATS, Abstention, Document
from longpole.traces.wording import listed
from longpole.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.traces.trace_set import TraceSet

__all__ = ["RANKS", "ranks_answer"]

RANKS: Final = "longpole.ranks/1"
_LOSSES: Final = ("unreadable rank", "duplicate rank", "unknown rank", "files disagree")


def ranks_answer(
    sources: Sequence[str],
    traces: TraceSet,
    *,
    step: int | None,
    all_ranks: bool,
    step_time_ns: int | None = None,
) -> Answer:
    """Return which rank the others wait for, as a document."""
    found = ranks(traces, step, all_ranks=all_ranks, step_time_ns=step_time_ns)
    window_ns = traces.window(step)
    path = ", ".join(sources)
    part = "whole run" if step is None else f"step {step}"
    losses = [finding for finding in traces.findings if finding.kind in _LOSSES]
    document = Document(
        schema=RANKS,
        input=_input(path, traces),
        warnings=warnings_of_ranks(losses),
        forms_with_warnings=(*DATA_FORMATS, "text"),
        status="abstained" if found.is_inconclusive else ("partial" if losses else "ok"),
        scope={"rank": None, "step": step, "window_ns": list(window_ns), "reason": part},
        abstains_because=[Abstention(code) for code in found.unknown_because],
        data=found,
        blocks=lambda: [
            Headline(f"{escape(path)}: {_who(traces)}, {part}, {_length(window_ns)}"),
            *found.blocks(),
        ],
        sections=lambda: sections_of_ranks(found),
        records=lambda: [{"path": path, **plain(record)} for record in found.records()],
    )
    return document, exit_codes.INCONCLUSIVE if found.is_inconclusive else exit_codes.OK


def _input(path: str, traces: TraceSet) -> dict[str, Any]:
    return {
        "path": path,
        "format": None,
        "compression": None,
        "bytes": int(traces.ranks["bytes"].sum()),
        "events": int(traces.ranks["events"].sum()),
        "rank": None,
        "world_size": traces.world_size,
    }


def _who(traces: TraceSet) -> str:
    """Return the ranks that were read, and the total number."""
    of_all = f" of {traces.world_size}" if (traces.world_size or 0) > len(traces) else ""
    return f"{count(len(traces), 'rank')}{of_all} ({listed(traces.rank_numbers).partition(' ')[2]})"


def _length(window_ns: tuple[int, int]) -> str:
    start_ns, end_ns = window_ns
    return duration(end_ns - start_ns)
