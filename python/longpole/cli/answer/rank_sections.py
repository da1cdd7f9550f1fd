"""The sections of a report about traces that are ranks of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.analyses.lanes import not_drawn
from longpole.analyses.rank_lanes import rank_lanes
from longpole.analyses.ranks import Ranks
from longpole.plot.rank_figures import lateness_figure
from longpole.report.blocks import Notes
from longpole.report.page import Section
from longpole.traces.joining import join_traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.report.page import Part
    from longpole.trace import Trace

__all__ = ["rank_sections"]


def rank_sections(
    traces: Sequence[tuple[str, Trace]], *, step_name: str | None
) -> Iterator[Section]:
    """Say who makes the others wait, and draw it; nothing where traces are not of one run."""
    numbers = [trace.rank for _, trace in traces]
    if None in numbers or len(set(numbers)) < len(traces):
        return
    found = join_traces(traces, step_name=step_name)
    if found.calls.is_empty():
        return
    path = found.path()
    parts: list[Part] = [*Ranks(found, None, path).blocks()]
    late = lateness_figure(found)
    yield Section("ranks", "Ranks as one program", [*parts, *([late] if late else [])])
    drawn = rank_lanes(found, path)
    if drawn is not None:
        picture, n_left_out = drawn
        notes = [Notes([not_drawn(n_left_out)])] if n_left_out else []
        yield Section("rank-path", "Critical path across ranks", [picture, *notes])
