"""Draws what ran in a window as swim lanes: the critical path, then devices, then threads."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from longpole.engine.windows import window_of
from longpole.plot.layout import Layout, longest, not_drawn, path_spans, spans
from longpole.words.wording import duration, operator_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.report.lanes import Lanes
    from longpole.trace.trace import Trace

# More events would take long to draw and to load; the longest are kept.
_MOST_EVENTS: Final = 20_000
_MOST_DEPTH: Final = 6
_MOST_ROWS: Final = 200

_DEVICE: Final = ("kernel", "copy", "fill")
_LAUNCHED: Final = ("kernel", "communication", "memcpy or memset")
_HOST: Final = ("annotation", "operator", "runtime", "driver")


def lanes(
    trace: Trace,
    window: Window | None = None,
    path: CriticalPath | None = None,
    *,
    most: int = _MOST_EVENTS,
) -> Lanes | None:
    """Lay out what ran in a window.

    The first lane is the critical path of the window. Of GPU activities, the `most` longest are
    drawn; of other events as many as remain of this number, but at least half of it. A note shows
    how many events and segments of the path are left out: the shortest if there are too many, those
    nested or overlapping too deeply, and those of the least busy streams and threads. None if
    nothing in the trace has a duration.
    """
    window = window_of(trace, window)
    if window is None or not window.duration_ns:
        return None
    layout = Layout()
    n_left_out = 0
    if path is not None:
        segments = longest(path.segments)
        n_left_out = path.segments.height - segments.height
        events = segments["event"].to_list()
        layout.add("critical path", path_spans(segments, window), events=events)
    n_left_out += add_lanes(layout, trace, window, most=most)
    name = f"{window.name[0].upper()}{window.name[1:]}"
    label = f"{name}, {duration(window.duration_ns)} ({window.reason}): what ran where."
    paths = [] if path is None else [("", window.duration_ns)]
    return layout.lanes(label, window.duration_ns, paths=paths, notes=left_out(n_left_out))


def add_lanes(
    layout: Layout,
    trace: Trace,
    window: Window,
    *,
    most: int = _MOST_EVENTS,
    most_rows: int = _MOST_ROWS,
    before: str = "",
) -> int:
    """Add streams and threads, labelled with `before` as prefix; return how many are left out."""
    events, n_left_out = _events(trace, window, most)
    n_drawn = 0
    for label, level, part in islice(_rows(trace, events), most_rows):
        rows = part.sort("start_ns", maintain_order=True)
        layout.add(
            f"{before}{label}",
            spans(rows, window),
            is_inner=level > 0,
            events=rows["event"].to_list(),
            launchers=_launchers(trace, rows),
        )
        n_drawn += rows.height
    return n_left_out + events.height - n_drawn


def left_out(number: int) -> list[str]:
    """Return a sentence with the number of events and segments that are not drawn, if any."""
    why = "the shortest, the most deeply nested, and those of the least busy streams and threads"
    return not_drawn(number, "part", why)


def _launchers(trace: Trace, rows: pl.DataFrame) -> list[str | None]:
    """Return the operators that launched kernels and memcpys, with their shapes."""
    if not rows["kind"].is_in(_LAUNCHED).any():
        return []
    launched = trace.core.operators_of(rows["event"].to_list())
    return [operator_name(*operator[1:]) if operator else None for operator in launched]


def _events(trace: Trace, window: Window, most: int) -> tuple[pl.DataFrame, int]:
    """Return the longest events, which are drawn, each with the name of its kind."""
    import polars as pl

    kind = pl.col("kind").cast(pl.String)
    drawn = window.clip(trace.events.filter(kind.is_in([*_DEVICE, *_HOST])))
    classes = trace.launches.select("event", pl.col("work_class").cast(pl.String))
    shown = (
        pl.when(pl.col("work_class") == "communication")
        .then(pl.lit("communication"))
        .when(kind.is_in(["copy", "fill"]))
        .then(pl.lit("memcpy or memset"))
        .otherwise(kind)
    )
    drawn = drawn.join(classes, on="event", how="left").with_columns(kind=shown)
    ranked = drawn.sort("duration_ns", "event", descending=[True, False])
    is_work = pl.col("kind").is_in(_LAUNCHED)
    # Operators are longer than most kernels: without a limit of their own, devices would look idle.
    works = ranked.filter(is_work).head(most)
    others = ranked.filter(~is_work).head(max(most - works.height, most // 2))
    return pl.concat([works, others]), drawn.height - works.height - others.height


def _rows(trace: Trace, events: pl.DataFrame) -> Iterator[tuple[str, int, pl.DataFrame]]:
    """Yield each stream, busiest first, then each thread, with one row for each nesting level."""
    import polars as pl

    known = trace.lanes.select("lane", "label", lane_thread=pl.col("thread").cast(pl.String))
    events = events.join(known, on="lane", how="left")
    on_device = pl.col("stream").is_not_null() & pl.col("kind").is_in(_LAUNCHED)
    streams = events.filter(on_device)
    for (device, stream), rows in _busiest_first(streams, "device", "stream"):
        for level, part in enumerate(_without_overlap(rows)):
            yield f"device {device}, stream {stream}", level, part
    threads = events.filter(~on_device)
    for (_lane,), rows in _busiest_first(threads, "lane"):
        label = rows["label"][0] or f"thread {rows['lane_thread'][0]}"
        for level, part in enumerate(_without_overlap(rows)):
            yield str(label), level, part


def _busiest_first(events: pl.DataFrame, *keys: str) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    import polars as pl

    groups = events.partition_by(*keys, as_dict=True, maintain_order=False)
    total = {
        key: int(rows.select(pl.col("inside_ns").sum()).item()) for key, rows in groups.items()
    }
    return sorted(groups.items(), key=lambda item: (-total[item[0]], str(item[0])))


def _without_overlap(events: pl.DataFrame) -> list[pl.DataFrame]:
    """Assign events to rows without overlap, the outer events first.

    Events below the deepest row drawn are left out.
    """
    import polars as pl

    ordered = events.sort("start_ns", "duration_ns", "event", descending=[False, True, False])
    ends: list[int] = []
    levels = []
    times = ordered.select("start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
    for start_ns, end_ns in times.iter_rows():
        level = next((level for level, until in enumerate(ends) if until <= start_ns), len(ends))
        if level < _MOST_DEPTH:
            ends[level : level + 1] = [end_ns]
        levels.append(level)
    marked = ordered.with_columns(level=pl.Series(levels, dtype=pl.Int64))
    return [marked.filter(pl.col("level") == level) for level in range(len(ends))]
