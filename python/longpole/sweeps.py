"""What the core measures of GPU activities, as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from longpole._core import activities as core_activities
from longpole._core import busy as core_busy
from longpole._core import class_times as core_class_times
from longpole._core import device_ranges as core_device_ranges
from longpole._core import enclosing as core_enclosing
from longpole._core import gaps as core_gaps
from longpole.frames import frame_of

if TYPE_CHECKING:
    import polars as pl

    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["activities", "busy", "class_times", "device_ranges", "enclosing", "gaps"]


def activities(trace: Trace) -> pl.DataFrame:
    """List every GPU activity, in the order of the file, with what launched it."""
    return frame_of(core_activities(trace.core))


def busy(trace: Trace, window: Window, chosen: pl.Series | None = None) -> pl.DataFrame:
    """Measure how long each device and each of its streams was busy; see `Trace.busy`.

    Only the `chosen` events count, by default all.
    """
    rows = core_busy(trace.core, window.start_ns, window.end_ns, _bytes(chosen))
    return frame_of(rows)


def gaps(
    trace: Trace, window: Window, *, by_stream: bool, chosen: pl.Series | None = None
) -> pl.DataFrame:
    """List the spans in which no chosen event ran on a device, or on a stream.

    The columns are those of `Trace.gaps`, with `stream` where gaps are those of streams.
    """
    start_ns, end_ns = window.start_ns, window.end_ns
    return frame_of(core_gaps(trace.core, start_ns, end_ns, by_stream, _bytes(chosen)))


def class_times(trace: Trace, window: Window, chosen: pl.Series | None = None) -> pl.DataFrame:
    """Measure for each device how long which classes of activity ran at once.

    Columns: `device`, `compute`, `communication` and `copy` (whether it ran), `duration_ns`.
    """
    rows = core_class_times(trace.core, window.start_ns, window.end_ns, _bytes(chosen))
    return frame_of(rows)


def enclosing(
    trace: Trace, of: pl.Series, among: pl.Series, side: Literal["innermost", "outermost"]
) -> pl.DataFrame:
    """Find for each event of a thread the one among others that encloses it, or is it.

    Columns: `event`, in the order of `of`, and `around`.
    """
    is_outermost = side == "outermost"
    return frame_of(core_enclosing(trace.core, _row_bytes(of), _row_bytes(among), is_outermost))


def device_ranges(trace: Trace) -> pl.DataFrame:
    """Find the annotation on its stream in which a GPU activity began.

    Columns: `event` and `annotation`; the last of several to begin is taken.
    """
    return frame_of(core_device_ranges(trace.core))


def _bytes(chosen: pl.Series | None) -> bytes | None:
    return None if chosen is None else _row_bytes(chosen)


def _row_bytes(rows: pl.Series) -> bytes:
    import polars as pl

    return rows.cast(pl.UInt32).to_numpy().tobytes()
