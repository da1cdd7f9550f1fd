"""What ran where in a window, as swim lanes: the critical path, devices, then threads."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from longpole.report.page import Lanes
from longpole.windows import window_of
from longpole.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.critical_path.path import CriticalPath
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["Layout", "lanes", "longest", "longest_segments", "not_drawn"]

# More would take long to draw and to load; the longest are kept.
_MOST_EVENTS: Final = 40_000
_MOST_DEPTH: Final = 6
_MOST_ROWS: Final = 200
_WIDEST: Final = 120
_MOST_BUTTONS: Final = 8
_WIDEST_BUTTON: Final = 44

_DEVICE: Final = ("kernel", "copy", "fill")
_HOST: Final = ("annotation", "operator", "runtime", "driver")
_COLORS: Final = {
    "kernel": "kernel",
    "communication": "communication",
    "memcpy or memset": "copy",
    "operator": "operator",
    "runtime": "runtime",
    "driver": "runtime",
    "annotation": "annotation",
    "critical path": "path",
}


def lanes(
    trace: Trace,
    window: Window | None = None,
    path: CriticalPath | None = None,
    *,
    most: int = _MOST_EVENTS,
) -> tuple[Lanes, int] | None:
    """Lay out what ran in a window.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    path
        The critical path of the window, for the first lane.
    most
        So many events are drawn, the longest of them.

    Returns
    -------
    tuple of Lanes and int, or None
        The lanes, and how many events and segments of the path are not among them: the shortest
        where there are too many, those nested or overlapping too deep, and those of the streams and
        threads that did least; None where nothing in the trace has a duration.
    """
    window = window_of(trace, window)
    if window is None or not window.duration_ns:
        return None
    events, n_left_out = _events(trace, window, most)
    layout = Layout(window)
    if path is not None:
        segments = longest(path.segments)
        n_left_out += path.segments.height - segments.height
        layout.add("critical path", segments, is_path=True)
    n_drawn = 0
    for label, level, rows in islice(_rows(trace, events), _MOST_ROWS):
        layout.add(label, rows, is_inner=level > 0)
        n_drawn += rows.height
    label = f"What ran in {window.name}; use the buttons to walk along the critical path."
    found = Lanes(
        window.duration_ns,
        layout.names,
        layout.kinds,
        _COLORS,
        layout.rows,
        label,
        () if path is None else longest_segments(layout),
    )
    return found, n_left_out + events.height - n_drawn


def longest(rows: pl.DataFrame, most: int = _MOST_EVENTS) -> pl.DataFrame:
    """Keep the longest rows, in order of time."""
    if rows.height <= most:
        return rows
    order = rows.sort("duration_ns", "start_ns", descending=[True, False], maintain_order=True)
    return order.head(most).sort("start_ns", maintain_order=True)


def not_drawn(number: int) -> str:
    """Say how many events and segments of the path a picture leaves out."""
    is_or_are = "is" if number == 1 else "are"
    return (
        f"{count(number, 'part')} {is_or_are} not drawn: the shortest, the most deeply nested, and "
        "those of the least busy streams and threads."
    )


def longest_segments(layout: Layout) -> tuple[tuple[int, str], ...]:
    """Name the longest segments of the path, in order of time."""
    row = layout.rows[0]
    order = sorted(range(len(row["lengths"])), key=lambda at: (-row["lengths"][at], at))
    return tuple(
        (at, f"{duration(row['lengths'][at])} {_cut(layout.names[row['names'][at]])}")
        for at in sorted(order[:_MOST_BUTTONS])
    )


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_BUTTON else f"{text[: _WIDEST_BUTTON - 1]}…"


def _events(trace: Trace, window: Window, most: int) -> tuple[pl.DataFrame, int]:
    """Take the longest events that are drawn, with a word for what each is."""
    import polars as pl

    kind = pl.col("kind").cast(pl.String)
    drawn = window.clip(trace.events.filter(kind.is_in([*_DEVICE, *_HOST])))
    classes = trace.launches.select("event", pl.col("work_class").cast(pl.String))
    told = (
        pl.when(pl.col("work_class") == "communication")
        .then(pl.lit("communication"))
        .when(kind.is_in(["copy", "fill"]))
        .then(pl.lit("memcpy or memset"))
        .otherwise(kind)
    )
    drawn = drawn.join(classes, on="event", how="left").with_columns(kind=told)
    kept = drawn.sort("duration_ns", "event", descending=[True, False]).head(most)
    return kept, drawn.height - kept.height


def _rows(trace: Trace, events: pl.DataFrame) -> Iterator[tuple[str, int, pl.DataFrame]]:
    """Give each stream, busiest first, then each thread, a row for each level of nesting."""
    import polars as pl

    known = trace.lanes.select("lane", "label", lane_thread=pl.col("thread").cast(pl.String))
    events = events.join(known, on="lane", how="left")
    on_device = pl.col("stream").is_not_null() & pl.col("kind").is_in(
        ["kernel", "communication", "memcpy or memset"]
    )
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
    """Share events out to rows in which they follow one another, the outer ones first.

    What is deeper than the rows that are drawn is left out.
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


class Layout:
    """Rows as the page draws them, with each name and kind once."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[tuple[bool, str], int] = {}

    def add(
        self, label: str, rows: pl.DataFrame, *, is_inner: bool = False, is_path: bool = False
    ) -> None:
        """Add a row of events that follow one another."""
        import polars as pl

        start_ns, end_ns = self.window.start_ns, self.window.end_ns
        ends = pl.col("start_ns") + pl.col("duration_ns")
        times = rows.sort("start_ns").select(
            start=pl.max_horizontal(pl.col("start_ns"), start_ns) - start_ns,
            end=pl.min_horizontal(ends, end_ns) - start_ns,
            kind=pl.col("kind").cast(pl.String),
            name=pl.col("name").cast(pl.String),
        )
        starts = times["start"].to_list()
        names = [short_name(name, _WIDEST) for name in times["name"]]
        kinds = times["kind"].to_list()
        if is_path:
            names = [
                kind.replace("_", " ") + ("" if name == "(no name)" else f": {name}")
                for kind, name in zip(kinds, names, strict=True)
            ]
            kinds = ["critical path"] * len(kinds)
        self.rows.append(
            {
                "label": label,
                "is_inner": is_inner,
                "starts": [at - before for before, at in zip([0, *starts], starts, strict=False)],
                "lengths": (times["end"] - times["start"]).to_list(),
                "names": [self._number(name, self.names, is_kind=False) for name in names],
                "kinds": [self._number(kind, self.kinds, is_kind=True) for kind in kinds],
            }
        )

    def _number(self, text: str, known: list[str], *, is_kind: bool) -> int:
        key = (is_kind, text)
        if key not in self._numbers:
            self._numbers[key] = len(known)
            known.append(text)
        return self._numbers[key]
