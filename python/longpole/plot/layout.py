"""Swim lanes as compact data: each name and kind is stored once, with a colour for each kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.report.blocks import LEGEND, color_of
from longpole.report.lanes import Lane, Lanes, Segment
from longpole.words.wording import count, duration, escape, fitted, share, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from longpole.engine.windows import Window

Span = tuple[int, int, str, str]
"""Start and length in ns, kind, and name."""

# More events would take long to draw and to load; the longest are kept.
_MOST_EVENTS: Final = 20_000
_MOST_SEGMENTS: Final = 10
_WIDEST_NAME: Final = 120
_WIDEST_SEGMENT: Final = 80

_WORDS: Final = {"host gap": "outside operators"}
"""Labels of kinds of path segments whose identifier is not clear."""

_NUMBER: Final = re.compile(r"#\d+\b")
"""The number of a step in the name of an annotation."""


class Layout:
    """Lanes in the format that the page draws, with each name and kind stored once."""

    def __init__(self) -> None:
        self.rows: list[Lane] = []
        self._names: dict[str, int] = {}
        self._kinds: dict[str, int] = {}

    def add(
        self,
        label: str,
        spans: Iterable[Span],
        *,
        is_inner: bool = False,
        events: Sequence[int | None] = (),
        launchers: Sequence[str | None] = (),
    ) -> None:
        """Add a lane of spans in time order.

        `events` and `launchers` have a value for each span, if known: its row in `Trace.events` and
        the operator that launched it.
        """
        lane: Lane = {
            "label": escape(label),
            "is_inner": is_inner,
            "starts": [],
            "lengths": [],
            "names": [],
            "kinds": [],
            "events": _differences([-1 if event is None else event for event in events]),
            "launchers": [],
        }
        before = 0
        for start, length, kind, name in spans:
            lane["starts"].append(start - before)
            lane["lengths"].append(length)
            lane["kinds"].append(self._kinds.setdefault(kind, len(self._kinds)))
            lane["names"].append(self._names.setdefault(name, len(self._names)))
            before = start
        if any(launchers):
            lane["launchers"] = [self._launcher(name) for name in launchers]
        self.rows.append(lane)

    def _launcher(self, name: str | None) -> int:
        """Return the index of a name plus 1, or 0 without one."""
        if not name:
            return 0
        return self._names.setdefault(fitted(escape(name), _WIDEST_SEGMENT), len(self._names)) + 1

    def lanes(
        self,
        label: str,
        length_ns: int,
        *,
        paths: Sequence[tuple[str, int]] = (),
        notes: Sequence[str] = (),
        is_flame: bool = False,
    ) -> Lanes:
        """Return the lanes; `paths` has a label and a length for each of the first rows."""
        colors = [color_of(kind) for kind in self._kinds]
        return Lanes(
            label,
            length_ns,
            list(self._names),
            list(self._kinds),
            colors,
            [(color, words) for color, words in LEGEND.items() if color in colors],
            self.rows,
            self._longest(paths),
            bool(paths),
            notes,
            is_flame,
        )

    def _longest(self, paths: Sequence[tuple[str, int]]) -> list[Segment]:
        """Return the longest segment of each name, the name with the most time first."""
        names = list(self._names)
        by_name: dict[tuple[int, str], list[int]] = {}
        for row in range(len(paths)):
            for place, number in enumerate(self.rows[row]["names"]):
                name = _NUMBER.sub("#N", names[number])
                by_name.setdefault((row, name), []).append(place)
        lengths = {
            key: [self.rows[key[0]]["lengths"][place] for place in places]
            for key, places in by_name.items()
        }
        order = sorted(by_name, key=lambda key: (-sum(lengths[key]), *key))
        segments: list[Segment] = []
        for key in order[:_MOST_SEGMENTS]:
            row, name = key
            words, whole_ns = paths[row]
            total_ns, longest_ns = sum(lengths[key]), max(lengths[key])
            time = f"{duration(total_ns)} ({share(total_ns / whole_ns)})"
            n_more = len(lengths[key])
            of = f", {count(n_more, 'segment')}, longest {duration(longest_ns)}"
            text = f"{time} {words}{fitted(name, _WIDEST_SEGMENT)}{of if n_more > 1 else ''}"
            place = by_name[key][lengths[key].index(longest_ns)]
            segments.append(Segment(row, place, text))
        return segments


def longest(rows: pl.DataFrame, most: int = _MOST_EVENTS) -> pl.DataFrame:
    """Keep the longest rows, in order of time."""
    if rows.height <= most:
        return rows
    order = rows.sort("duration_ns", "start_ns", descending=[True, False], maintain_order=True)
    return order.head(most).sort("start_ns", maintain_order=True)


def spans(rows: pl.DataFrame, window: Window) -> list[Span]:
    """Clip events to a window and return them as spans; the events are in time order."""
    import polars as pl

    ends = pl.col("start_ns") + pl.col("duration_ns")
    start = pl.max_horizontal(pl.col("start_ns"), window.start_ns)
    times = rows.select(
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
    """Return the segments of a critical path as spans, with their kinds in their names."""
    return [
        (start, length, kind, _segment_name(_WORDS.get(kind, kind), kind, name))
        for start, length, kind, name in spans(path.sort("start_ns", maintain_order=True), window)
    ]


def _segment_name(words: str, kind: str, name: str) -> str:
    return words if name in (kind, "(no name)") else f"{words}: {name}"


def _differences(values: Sequence[int]) -> list[int]:
    """Return the differences between each value and the previous one."""
    return [value - before for before, value in zip((0, *values), values, strict=False)]


def not_drawn(number: int, what: str, why: str) -> list[str]:
    """Return a sentence about what a picture leaves out; empty if it leaves nothing out."""
    is_or_are = "is" if number == 1 else "are"
    return [f"{count(number, what)} {is_or_are} not drawn: {why}."] if number > 0 else []
