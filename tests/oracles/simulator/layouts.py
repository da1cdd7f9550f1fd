"""The ways in which torch has written traces, by name, and the order of records in each.

`kineto-2023`
    Whole microseconds since the epoch, several keys a line.
`kineto-2024`
    Microseconds since the epoch with three decimals, several keys a line.
`kineto-now`
    Microseconds since a base that stands in the head, one key a line, metadata first.
`python-export`
    The same times, one compact event a line.
`python-dump`
    A trace that was loaded and dumped again: one line, times as Python prints floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from .compact import PYTHON_DUMP, PYTHON_EXPORT
from .newer import KINETO_NOW
from .older import KINETO_2023, KINETO_2024

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kineto import Record
    from .text import Layout

__all__ = ["LAYOUTS", "LayoutName", "order_of"]

LayoutName: TypeAlias = Literal[
    "kineto-2023", "kineto-2024", "kineto-now", "python-export", "python-dump"
]

LAYOUTS: dict[LayoutName, Layout] = {
    "kineto-2023": KINETO_2023,
    "kineto-2024": KINETO_2024,
    "kineto-now": KINETO_NOW,
    "python-export": PYTHON_EXPORT,
    "python-dump": PYTHON_DUMP,
}


def order_of(records: Sequence[Record], layout: Layout, *, sync_records: bool) -> list[int]:
    """Return which records a layout writes, by position, in the order in which it does.

    Records come with the metadata of processes and threads first. Older layouts write it after
    all events, before the span of the profiler.
    """
    kept = [
        position
        for position, entry in enumerate(records)
        if sync_records or entry.get("cat") != "cuda_sync"
    ]
    if layout.metadata_first:
        return kept
    return sorted(kept, key=lambda position: _rank(records[position]))


def _rank(entry: Record) -> int:
    if entry["pid"] in ("Spans", "Traces", ""):
        return 2
    return int(entry["ph"] == "M")
