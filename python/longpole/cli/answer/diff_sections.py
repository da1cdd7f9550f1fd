"""The sections of a page about a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.plot.diff_lanes import diff_lanes
from longpole.report.blocks import Column, Notes, tabulated
from longpole.report.sections import Section
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.diff import Diff
    from longpole.report.sections import Part
    from longpole.trace import Trace

__all__ = ["diff_sections"]

_MOST_WORK: Final = 200
_WORK: Final = {
    Column("kind"): "kind",
    Column("name", "name"): "name",
    Column("base count", "count"): "base_counts",
    Column("new count", "count"): "new_counts",
    Column("base", "duration"): "base_total_duration_ns",
    Column("new", "duration"): "new_total_duration_ns",
    Column("difference", "duration"): "diff_duration_ns",
    Column("count"): "counts_change_categories",
}


def diff_sections(
    found: Diff,
    base: Sequence[Trace],
    new: Sequence[Trace],
    *,
    top: int,
    step_name: str | None = None,
) -> list[Section]:
    """Show the verdict beside a step of either side, what changed, and all work by name."""
    sentence, *rest = found.blocks(top)
    drawn = diff_lanes(found, base, new, step_name=step_name)
    return [
        Section("verdict", "Verdict", [sentence, *([drawn] if drawn else [])]),
        Section("changes", "What changed", rest),
        Section("table", "All work by name", _all_work(found), is_folded=True),
    ]


def _all_work(found: Diff) -> list[Part]:
    """List the work of both sides by name, the greatest change first."""
    records = found.records()
    table = tabulated(records[:_MOST_WORK], _WORK)
    more = len(records) - len(table.rows)
    return [table, *([Notes([f"{count(more, 'more name')}."])] if more else [])]
