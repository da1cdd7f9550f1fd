"""Swim lanes of spans of time: names and kinds once, a colour for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.lanes import Lane, Lanes, Segment
from longpole.wording import count, duration, escape, share, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from longpole.windows import Window

__all__ = ["Layout", "Span", "longest", "not_drawn", "path_spans", "spans"]

Span = tuple[int, int, str, str]
"""When it starts and how long it is in ns, its kind and its name."""

# More would take long to draw and to load; the longest are kept.
_MOST_EVENTS: Final = 20_000
_MOST_SEGMENTS: Final = 10
_WIDEST_NAME: Final = 120
_WIDEST_SEGMENT: Final = 80

_COLORS: Final = {
    "kernel": "kernel",
    "communication": "communication",
    "communication, waiting included": "communication",
    "transfer": "communication",
    "copy": "copy",
    "memcpy or memset": "copy",
    "operator": "operator",
    "host gap": "operator",
    "runtime": "runtime",
    "driver": "runtime",
    "data loading": "data",
    "annotation": "annotation",
    "idle": "annotation",
    "frame": "operator",
}
_OTHER: Final = "wait"
_LEGEND: Final = {
    "kernel": "kernels",
    "communication": "communication",
    "copy": "memcpy and memset",
    "operator": "host",
    "runtime": "runtime API calls",
    "data": "data loading",
    "annotation": "annotations, idle",
    "wait": "waiting and latency",
}
"""What the colours stand for, in the order of the legend."""


class Layout:
    """Lanes as the page draws them, with each name and kind once."""

    def __init__(self) -> None:
        self.rows: list[Lane] = []
        self._names: dict[str, int] = {}
        self._kinds: dict[str, int] = {}

    def add(self, label: str, spans: Iterable[Span], *, is_inner: bool = False) -> None:
        """Add a lane of spans that follow one another."""
        lane: Lane = {
            "label": escape(label),
            "is_inner": is_inner,
            "starts": [],
            "lengths": [],
            "names": [],
            "kinds": [],
        }
        before = 0
        for start, length, kind, name in spans:
            lane["starts"].append(start - before)
            lane["lengths"].append(length)
            lane["kinds"].append(self._kinds.setdefault(kind, len(self._kinds)))
            lane["names"].append(self._names.setdefault(name, len(self._names)))
            before = start
        self.rows.append(lane)

    def lanes(
        self,
        label: str,
        length_ns: int,
        *,
        paths: Sequence[tuple[str, int]] = (),
        notes: Sequence[str] = (),
        is_flame: bool = False,
    ) -> Lanes:
        """Give the lanes; `paths` has words for each of the first rows and how long it is."""
        colors = [_COLORS.get(kind, _OTHER) for kind in self._kinds]
        return Lanes(
            label,
            length_ns,
            list(self._names),
            list(self._kinds),
            colors,
            [(color, words) for color, words in _LEGEND.items() if color in colors],
            self.rows,
            self._longest(paths),
            notes,
            is_flame,
        )

    def _longest(self, paths: Sequence[tuple[str, int]]) -> list[Segment]:
        """Name the longest segments, the longest first."""
        names = list(self._names)
        found = [
            (length, row, place)
            for row in range(len(paths))
            for place, length in enumerate(self.rows[row]["lengths"])
        ]
        found.sort(key=lambda segment: (-segment[0], *segment[1:]))
        segments: list[Segment] = []
        for length, row, place in found[:_MOST_SEGMENTS]:
            words, whole_ns = paths[row]
            time = f"{duration(length)} ({share(length / whole_ns)})"
            name = _cut(names[self.rows[row]["names"][place]])
            segments.append(Segment(row, place, f"{time} {words}{name}"))
        return segments


def longest(rows: pl.DataFrame, most: int = _MOST_EVENTS) -> pl.DataFrame:
    """Keep the longest rows, in order of time."""
    if rows.height <= most:
        return rows
    order = rows.sort("duration_ns", "start_ns", descending=[True, False], maintain_order=True)
    return order.head(most).sort("start_ns", maintain_order=True)


def spans(rows: pl.DataFrame, window: Window) -> list[Span]:
    """Give the parts of events that are in a window, from its start on."""
    import polars as pl

    ends = pl.col("start_ns") + pl.col("duration_ns")
    start = pl.max_horizontal(pl.col("start_ns"), window.start_ns)
    times = rows.sort("start_ns", maintain_order=True).select(
        start=start - window.start_ns,
        length=pl.min_horizontal(ends, window.end_ns) - start,
        kind=pl.col("kind").cast(pl.String).str.replace_all("_", " "),
        name=pl.col("name").cast(pl.String),
    )
    return [
        (start, length, kind, short_name(name, _WIDEST_NAME))
        for start, length, kind, name in times.iter_rows()
    ]


def path_spans(path: pl.DataFrame, window: Window) -> list[Span]:
    """Give the segments of a critical path, with their kinds in their names."""
    return [
        (start, length, kind, kind if name in (kind, "(no name)") else f"{kind}: {name}")
        for start, length, kind, name in spans(path, window)
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_SEGMENT else f"{text[: _WIDEST_SEGMENT - 1]}…"


def not_drawn(number: int, what: str, why: str) -> list[str]:
    """Say what a picture leaves out; nothing where it leaves nothing out."""
    is_or_are = "is" if number == 1 else "are"
    return [f"{count(number, what)} {is_or_are} not drawn: {why}."] if number > 0 else []
