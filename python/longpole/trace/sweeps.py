"""Measurements by the core that several questions use, as frames.

Most measurements are methods of `trace.core`, whose tables `frame_of` converts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole._core import FULL_QUEUE_OPERATIONS as CORE_FULL_QUEUE_OPERATIONS
from longpole._core import counter_tracks as core_counter_tracks
from longpole._core import is_own_frame as core_is_own_frame
from longpole._core import sequences as core_sequences
from longpole._core import spreads as core_spreads
from longpole.rows.frames import frame_of, row_bytes
from longpole.trace.enclosing import NO_ROW, enclosing
from longpole.trace.kept import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

FULL_QUEUE_OPERATIONS: Final = CORE_FULL_QUEUE_OPERATIONS
is_own_frame: Final = core_is_own_frame


@kept
def activities(trace: Trace) -> pl.DataFrame:
    """List every GPU activity in file order, with its launch.

    Most questions start from this frame, so it is cached with its trace.
    """
    return frame_of(trace.core.activities())


@kept
def busy(trace: Trace, window: Window, chosen: bytes | None = None) -> pl.DataFrame:
    """Measure how long each device and each of its streams was busy; see `Trace.busy`.

    Only the `chosen` events count, by default all.
    """
    return frame_of(trace.core.busy(window.span, chosen))


@kept
def event_warnings(trace: Trace) -> list[tuple[str, str | None, int, int, str | None, int]]:
    """Count contradictions between events; see `_core.pyi`. Every table asks for them."""
    return trace.core.event_warnings()


@kept
def launches_without_work(trace: Trace) -> list[int]:
    """List the launches whose GPU activity is not in the trace."""
    return trace.core.launches_without_work()


def sequences(lists: pl.Series) -> pl.Series:
    """Assign numbers to lists of categories; equal lists have equal numbers.

    Examples
    --------
    >>> import polars as pl
    >>> kernels = pl.Series([["gemm", "add"], ["add"], ["gemm", "add"]])
    >>> numbers = sequences(kernels.cast(pl.List(pl.Categorical)))
    >>> numbers[0] == numbers[2], numbers[0] == numbers[1]
    (True, False)
    """
    import polars as pl

    rows = pl.DataFrame({"value": lists}).with_row_index("group").explode("value")
    values = rows["value"].to_physical().fill_null(NO_ROW)
    numbers = core_sequences(row_bytes(rows["group"]), row_bytes(values), len(lists))
    return frame_of(numbers)["sequence"]


def spreads(lists: pl.Series) -> pl.DataFrame:
    """Describe lists of integers: mean, deviation, extremes and quartiles.

    Columns: `mean`, `std`, `min`, `p25`, `median`, `p75` and `max`, null for an empty list. Nulls
    in a list do not count.
    """
    import polars as pl

    known = lists.cast(pl.List(pl.Int64))
    values = known.explode()
    if values.null_count():
        known = known.list.drop_nulls()
        values = known.explode().drop_nulls()
    return frame_of(core_spreads(row_bytes(known.list.len()), values.to_numpy().tobytes()))


def around(
    trace: Trace, events: pl.Series, among: pl.Series, side: Literal["innermost", "outermost"]
) -> pl.Series:
    """Find, for each event, the event of `among` that encloses or equals it; null for null."""
    return enclosing(trace.core, events, among, side)


def running_at(trace: Trace, lanes: pl.Series, times_ns: pl.Series) -> pl.Series:
    """Return the innermost event open on a lane at each given time."""
    times = times_ns.to_numpy().tobytes()
    return frame_of(trace.core.running_at(row_bytes(lanes), times))["event"]


def own_frames(trace: Trace) -> pl.Series:
    """List the Python functions of the user's program, as opposed to libraries, by event."""
    import polars as pl

    frames = trace.events.filter(pl.col("kind") == "python").select("event", "name")
    names = frames["name"].unique().drop_nulls()
    own = names.filter(names.cast(pl.String).map_elements(is_own_frame, return_dtype=pl.Boolean))
    return frames.filter(pl.col("name").is_in(own.implode()))["event"]


def counters_for_perfetto(series: Sequence[tuple[str, pl.Series, pl.Series]]) -> bytes:
    """Write series (name, times in ns, and floats) as counter tracks for Perfetto."""
    parts = [
        (name, times.to_numpy().tobytes(), values.to_numpy().tobytes())
        for name, times, values in series
    ]
    return core_counter_tracks(parts)
