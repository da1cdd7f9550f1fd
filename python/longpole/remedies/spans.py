"""Times of threads, and what changes remove from a program."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from longpole.engine.critical_path.changes import TimeRange


class Spans:
    """Times of threads, which do not overlap."""

    def __init__(self, time_ranges: Iterable[TimeRange] = ()) -> None:
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for lane, start_ns, end_ns in sorted(time_ranges):
            of_lane = spans[lane]
            if of_lane and start_ns <= of_lane[-1][1]:
                of_lane[-1] = (of_lane[-1][0], max(of_lane[-1][1], end_ns))
            else:
                of_lane.append((start_ns, end_ns))
        self._of_lanes: Mapping[int, list[tuple[int, int]]] = dict(spans)

    def __bool__(self) -> bool:
        return bool(self._of_lanes)

    def __iter__(self) -> Iterator[TimeRange]:
        for lane, spans in self._of_lanes.items():
            yield from ((lane, start_ns, end_ns) for start_ns, end_ns in spans)

    @property
    def total_ns(self) -> int:
        """Their total length."""
        return sum(end_ns - start_ns for _, start_ns, end_ns in self)

    def has(self, lane: int, start_ns: int, end_ns: int) -> bool:
        """Whether a time range lies in one of them."""
        spans = self._of_lanes.get(lane)
        if spans is None:
            return False
        place = bisect_right(spans, start_ns, key=lambda span: span[0]) - 1
        return place >= 0 and end_ns <= spans[place][1]

    def rest_of(self, time_range: TimeRange) -> Iterator[TimeRange]:
        """Yield the parts of a time range that are in none of them."""
        lane, start_ns, end_ns = time_range
        spans = self._of_lanes.get(lane, [])
        place = max(bisect_right(spans, start_ns, key=lambda span: span[0]) - 1, 0)
        for from_ns, until_ns in spans[place:]:
            if from_ns >= end_ns:
                break
            if start_ns < from_ns:
                yield (lane, start_ns, from_ns)
            start_ns = max(start_ns, until_ns)
        if start_ns < end_ns:
            yield (lane, start_ns, end_ns)


@dataclass(frozen=True)
class Gone:
    """What changes remove: no obstacle, no cause and no evidence any more."""

    events: frozenset[int] = frozenset()
    """Activities, calls that no longer wait, and calls that launch nothing else."""
    spans: Spans = field(default_factory=Spans)
    """Times of threads that take no time."""

    def __bool__(self) -> bool:
        return bool(self.events or self.spans)
