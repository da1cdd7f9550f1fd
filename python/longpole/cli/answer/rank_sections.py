"""The sections of a report about traces that are ranks of one run."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from longpole.analyses.ranks import Ranks
from longpole.plot.rank_lanes import rank_lanes
from longpole.report.blocks import Sentence
from longpole.report.sections import Section
from longpole.traces.joining import join_traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.trace import Trace

__all__ = ["rank_sections"]


def rank_sections(
    traces: Sequence[tuple[str, Trace]], *, step_name: str | None
) -> tuple[list[Section], list[int]]:
    """Say who makes the others wait, and draw it; give the ranks, that one first.

    There are none of either where traces are not ranks of one run.
    """
    numbers = [trace.rank for _, trace in traces]
    if None in numbers or len(set(numbers)) < len(traces):
        return [], []
    joined = join_traces(traces, step_name=step_name)
    if joined.calls.is_empty():
        return [], []
    path = joined.path()
    found = Ranks(joined, None, path)
    blocks = found.blocks()
    said = list(takewhile(lambda block: isinstance(block, Sentence), blocks))
    drawn = rank_lanes(joined, path)
    sections = [
        Section("verdict", "Verdict", [*said, *([drawn] if drawn else [])]),
        Section("calls", "Waiting and calls", blocks[len(said) :]),
    ]
    return sections, [int(str(row["rank"])) for row in found.records()]
