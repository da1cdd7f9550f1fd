"""The tables of a trace, made comparable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.testing import assert_frame_equal

if TYPE_CHECKING:
    import longpole

EVENT_COLUMNS = {"event", "parent", "call", "operator", "next"}
PLACES_IN_THE_FILE = {"event", "parent", "depth", "lane", "position"}


def assert_table(frame: pl.DataFrame, rows: list[Any]) -> None:
    """Compare a table with the rows it must have."""
    found = plain(frame)
    assert_frame_equal(found, pl.DataFrame(rows, schema=found.schema, orient="row"))


def assert_same_tables(one: longpole.Trace, other: longpole.Trace) -> None:
    """Compare all that two readings of the same events give."""
    left, right = all_tables(one), all_tables(other)
    assert left.keys() == right.keys()
    for name in left:
        assert_frame_equal(left[name], right[name])


def all_tables(trace: longpole.Trace) -> dict[str, pl.DataFrame]:
    """Return every table of events and what follows from them, by name."""
    tables = {
        "events": trace.events,
        "launches": trace.launches,
        "self_times": trace.self_times,
        "steps": trace.steps,
        "flows": trace.flows,
        "asynchronous": trace.asynchronous,
        "counters": trace.counters,
        "lanes": trace.lanes,
        "metadata_events": trace.metadata_events,
    }
    if trace.window:
        tables |= {"busy": trace.busy(*trace.window), "gaps": trace.gaps(*trace.window)}
    tables |= {f"args of {category}": trace.args(category) for category in trace.categories}
    return {name: plain(frame) for name, frame in tables.items()}


def rows_by_content(trace: longpole.Trace) -> dict[str, list[str]]:
    """Return every table without a trace of where in the file an event stood.

    Events are named by what they are, not by their row; rows are sorted, and lists, which
    are kept as the file spells them, are spelled in one way.
    """
    events = plain(trace.events).drop(PLACES_IN_THE_FILE).rows()

    def content(row: dict[str, Any]) -> str:
        named = {
            key: events[row[key]] for key in EVENT_COLUMNS & row.keys() if row[key] is not None
        }
        kept = {
            key: _respelled(row[key])
            for key in sorted(row.keys() - {"lane", "position", "last_position"})
        }
        return repr({**kept, **named})

    return {
        name: sorted(map(content, frame.iter_rows(named=True)))
        for name, frame in sorted(all_tables(trace).items())
    }


def _respelled(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value.startswith("[") else value


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return categoricals as strings, since the numbers of a dictionary do not matter."""
    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
