"""Measurements of GPU activities by the core, as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole._core import FULL_QUEUE_OPERATIONS, is_own_frame
from longpole._core import activities as core_activities
from longpole._core import busy as core_busy
from longpole._core import class_times as core_class_times
from longpole._core import counter_tracks as core_counter_tracks
from longpole._core import device_ranges as core_device_ranges
from longpole._core import enclosing as core_enclosing
from longpole._core import gaps as core_gaps
from longpole._core import host_parts as core_host_parts
from longpole._core import idle_causes as core_idle_causes
from longpole._core import overlaps as core_overlaps
from longpole._core import queues as core_queues
from longpole._core import running_at as core_running_at
from longpole._core import sequences as core_sequences
from longpole._core import server_iterations as core_server_iterations
from longpole._core import spreads as core_spreads
from longpole.frames import frame_of
from longpole.kept import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = [
    "FULL_QUEUE_OPERATIONS",
    "activities",
    "around",
    "busy",
    "class_times",
    "counters_for_perfetto",
    "device_ranges",
    "enclosing",
    "gaps",
    "host_parts",
    "idle_causes",
    "is_own_frame",
    "overlaps",
    "own_frames",
    "queues",
    "running_at",
    "sequences",
    "server_iterations",
    "spreads",
]


_NO_ROW: Final = 2**32 - 1
"""Represents null in rows passed to the core."""


@kept
def activities(trace: Trace) -> pl.DataFrame:
    """List every GPU activity in file order, with its launch.

    Most questions begin here, so the frame is cached with its trace.
    """
    return frame_of(core_activities(trace.core))


def server_iterations(trace: Trace) -> tuple[str, pl.DataFrame] | None:
    """Find what marks the iterations of a server, and the data of each mark; None without any."""
    found = core_server_iterations(trace.core)
    return None if found is None else (found[0], frame_of(found[1]))


def host_parts(trace: Trace) -> pl.DataFrame:
    """List events that are a known `part` of the host's work in an iteration."""
    return frame_of(core_host_parts(trace.core))


def busy(trace: Trace, window: Window, chosen: pl.Series | None = None) -> pl.DataFrame:
    """Measure how long each device and each of its streams was busy; see `Trace.busy`.

    Only the `chosen` events count, by default all.
    """
    if chosen is None:
        return _busy_with_all(trace, window)
    return frame_of(core_busy(trace.core, window.start_ns, window.end_ns, _row_bytes(chosen)))


@kept
def _busy_with_all(trace: Trace, window: Window) -> pl.DataFrame:
    """Measure it with all activities, as several questions do."""
    return frame_of(core_busy(trace.core, window.start_ns, window.end_ns, None))


def gaps(
    trace: Trace, window: Window, *, by_stream: bool, chosen: pl.Series | None = None
) -> pl.DataFrame:
    """List the spans in which no chosen event ran on a device or stream.

    The columns are those of `Trace.gaps`, with `stream` if the gaps are those of streams.
    """
    start_ns, end_ns = window.start_ns, window.end_ns
    return frame_of(core_gaps(trace.core, start_ns, end_ns, by_stream, _bytes(chosen)))


def idle_causes(
    trace: Trace, window: Window, short_ns: int, chosen: pl.Series | None = None
) -> pl.DataFrame:
    """Split the time in which no chosen event ran on a device or stream by cause.

    Columns: `device`, `stream` (null for the device as a whole), `cause` as in `idle_time`,
    `count`, `duration_ns`, `host_ns`, and the columns of `spreads` of the intervals.
    """
    span = (window.start_ns, window.end_ns)
    return frame_of(core_idle_causes(trace.core, span, short_ns, _bytes(chosen)))


def queues(trace: Trace, window: Window, chosen: pl.Series | None = None) -> pl.DataFrame:
    """List how many chosen activities are queued at the start and after each change.

    Columns: `device`, `stream`, `time_ns`, `event` (the call, or the activity that started) and
    `queue_length` from then on, by device, stream and time.
    """
    return frame_of(core_queues(trace.core, window.start_ns, window.end_ns, _bytes(chosen)))


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
    values = rows["value"].to_physical().fill_null(_NO_ROW)
    numbers = core_sequences(_row_bytes(rows["group"]), _row_bytes(values), len(lists))
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
    return frame_of(core_spreads(_row_bytes(known.list.len()), values.to_numpy().tobytes()))


def class_times(trace: Trace, window: Window, chosen: pl.Series | None = None) -> pl.DataFrame:
    """Measure for each device how long each combination of activity classes ran.

    Columns: `device`, `compute`, `communication` and `copy` (whether it ran), `duration_ns`.
    """
    rows = core_class_times(trace.core, window.start_ns, window.end_ns, _bytes(chosen))
    return frame_of(rows)


def enclosing(
    trace: Trace, of: pl.Series, among: pl.Series, side: Literal["innermost", "outermost"]
) -> pl.DataFrame:
    """Find, for each event of a thread, the one among others that encloses or equals it.

    Columns: `event`, in the order of `of`, and `around`.
    """
    is_outermost = side == "outermost"
    return frame_of(core_enclosing(trace.core, _row_bytes(of), _row_bytes(among), is_outermost))


def around(
    trace: Trace, of: pl.Series, among: pl.Series, side: Literal["innermost", "outermost"]
) -> pl.Series:
    """Find, for each event, the one among others that encloses or equals it; null for null."""
    import polars as pl

    known = of.cast(pl.UInt32).fill_null(_NO_ROW)
    is_outermost = side == "outermost"
    found = core_enclosing(trace.core, _row_bytes(known), _row_bytes(among), is_outermost)
    return frame_of(found)["around"]


def running_at(trace: Trace, lanes: pl.Series, times_ns: pl.Series) -> pl.Series:
    """Return the innermost event open on a lane at each given time."""
    times = times_ns.to_numpy().tobytes()
    return frame_of(core_running_at(trace.core, _row_bytes(lanes), times))["event"]


def own_frames(trace: Trace) -> pl.Series:
    """List the Python functions of the user's program, as opposed to libraries, by event."""
    import polars as pl

    frames = trace.events.filter(pl.col("kind") == "python").select("event", "name")
    names = frames["name"].unique().drop_nulls()
    own = names.filter(names.cast(pl.String).map_elements(is_own_frame, return_dtype=pl.Boolean))
    return frames.filter(pl.col("name").is_in(own.implode()))["event"]


def device_ranges(trace: Trace, ranges: pl.Series | None = None) -> pl.DataFrame:
    """Find the annotation on a stream, of `ranges` or all, in which each GPU activity began.

    Columns: `event` and `annotation`; of several, the last to begin.
    """
    return frame_of(core_device_ranges(trace.core, _bytes(ranges)))


def counters_for_perfetto(series: Sequence[tuple[str, pl.Series, pl.Series]]) -> bytes:
    """Write series of a name, times in ns and floats as counter tracks for Perfetto."""
    parts = [
        (name, times.to_numpy().tobytes(), values.to_numpy().tobytes())
        for name, times, values in series
    ]
    return core_counter_tracks(parts)


def overlaps(trace: Trace, of: pl.Series, beside: pl.Series) -> pl.DataFrame:
    """Measure how long each of some events ran concurrently with any of others on its device.

    Columns: `event` and `overlap_ns`; events without an end are left out.
    """
    return frame_of(core_overlaps(trace.core, _row_bytes(of), _row_bytes(beside)))


def _bytes(chosen: pl.Series | None) -> bytes | None:
    return None if chosen is None else _row_bytes(chosen)


def _row_bytes(rows: pl.Series) -> bytes:
    import polars as pl

    return rows.cast(pl.UInt32).to_numpy().tobytes()
