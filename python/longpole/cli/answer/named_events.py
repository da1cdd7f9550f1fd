"""The events that a report names: one row for each, to which its texts and tables link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from longpole.report.blocks import Column, Notes, Value, tabulated
from longpole.report.events import EventLinks
from longpole.report.sections import Section, events_in
from longpole.wording import count, operator_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.sections import Part
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["linked"]

# Maximum number of events with links.
_MOST: Final = 1_000

_COLUMNS: Final[dict[Column, Value]] = {
    Column("event", "row_of_event"): "event",
    Column("kind"): "kind",
    Column("name", "name"): "name",
    Column("from", "duration"): "from_ns",
    Column("duration", "duration"): "duration_ns",
    Column("where", "name"): "where",
    Column("launched by", "name"): "launched_by",
}


def linked(
    sections: Sequence[Section], trace: Trace, window: Window, prefix: str = ""
) -> list[Section]:
    """Link the events named in sections to a last section, which has a row for each.

    `prefix` is the prefix of the section keys.
    """
    named = dict.fromkeys(events_in(sections))
    events = [event for event in named if 0 <= event < trace.events.height]
    rows = _rows(trace, events[:_MOST], window)
    if not rows:
        return list(sections)
    links = EventLinks(prefix, frozenset(events[:_MOST]))
    parts: list[Part] = [tabulated(rows, _COLUMNS)]
    if len(events) > _MOST:
        parts.append(Notes([f"{count(len(events) - _MOST, 'more event')} not listed."]))
    note = "all events that this page names, with times from the start of the window"
    last = Section(f"{prefix}events", "Events", parts, is_folded=True, note=note)
    return [replace(section, links=links) for section in [*sections, last]]


def _rows(trace: Trace, events: Sequence[int], window: Window) -> list[dict[str, Any]]:
    """Return the known data of some events, in their order in the trace."""
    import polars as pl

    chosen = sorted(events)
    lanes = dict(trace.lanes.select("lane", "label").iter_rows())
    launched = trace.core.operators_of(chosen)
    columns = ("kind", "name", "start_ns", "duration_ns", "lane", "device", "stream")
    found = trace.events.select(pl.col(*columns).gather(chosen)).iter_rows(named=True)
    return [
        {
            "event": event,
            "kind": str(row["kind"]).replace("_", " "),
            "name": row["name"],
            "from_ns": None if row["start_ns"] is None else row["start_ns"] - window.start_ns,
            "duration_ns": row["duration_ns"],
            "where": _where(row, lanes),
            "launched_by": operator_name(*operator[1:]) if operator else None,
        }
        for event, row, operator in zip(chosen, found, launched, strict=True)
    ]


def _where(row: dict[str, Any], lanes: dict[int, str | None]) -> str | None:
    if row["stream"] is not None:
        return f"device {row['device']}, stream {row['stream']}"
    return lanes.get(row["lane"])
