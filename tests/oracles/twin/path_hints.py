"""What hints at the streams and events that calls do not name: marks, and recent launches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from enum import IntEnum
from typing import TYPE_CHECKING

from .path_events import API, Event, EventClass, Lane, Trace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .path_streams import Launches, Stream

WAIT_CALL = re.compile(API + "(?:StreamWaitEvent|CommandListAppendWaitOnEvents|EnqueueEventsWait)")
RECORD_CALL = re.compile(API + "(?:EventRecord|RecordEvent|CommandListAppendSignalEvent)")


class Mark(IntEnum):
    """How likely it is that an event was recorded right behind a GPU activity."""

    UNMARKED = 0
    POSSIBLE = 1
    LIKELY = 2


class Recent:
    """The streams each thread launched on, the one it launched on last first.

    With pairs of threads, what a backward thread launches counts for its forward thread, too.
    """

    def __init__(
        self,
        trace: Trace,
        launches: Launches,
        pairs: Collection[tuple[Lane, Lane]] = (),
    ) -> None:
        self._after: dict[Lane, list[tuple[int, tuple[Lane, ...]]]] = defaultdict(list)
        for call in trace.events:
            works = launches.work_of.get(call)
            if works:
                lane = works[0].lane
                forward = [forward for forward, backward in pairs if backward == call.lane]
                for thread in dict.fromkeys([call.lane, *forward]):
                    others = tuple(it for it in self._last(thread, call) if it != lane)
                    self._after[thread].append((call.rank, (lane, *others)))

    def before(self, call: Event) -> tuple[Lane, ...]:
        """List the streams the thread of a call had launched on when it made the call."""
        return self._last(call.lane, call)

    def _last(self, thread: Lane, call: Event) -> tuple[Lane, ...]:
        after = self._after[thread]
        count = bisect_left(after, call.rank, key=lambda entry: entry[0])
        return after[count - 1][1] if count else ()

    def last_launch(self, call: Event) -> int:
        """Give the rank of the launch that the thread of a call made last before it, else -1."""
        after = self._after[call.lane]
        count = bisect_left(after, call.rank, key=lambda entry: entry[0])
        return after[count - 1][0] if count else -1


class Marks:
    """The marks of all work. Without any call that records, nothing is known: all is possible."""

    def __init__(
        self, trace: Trace, launches: Launches, streams: Mapping[Lane, Stream], recent: Recent
    ) -> None:
        records = [event for event in trace.events if RECORD_CALL.search(event.name)]
        self.has_records = bool(records)
        self._marks: dict[Event, Mark] = {}
        self.recorded_by: dict[Event, Lane] = {}
        for record in records:
            for stream in streams.values():
                self._mark(stream.last_submitted_before(record.start_ns), Mark.POSSIBLE)
        n_in_a_row: dict[tuple[Lane, int], int] = defaultdict(int)
        for record in records:
            if record.event_class is not EventClass.RUNTIME or launches.work_of.get(record):
                continue
            lanes = recent.before(record)
            row = (record.lane, recent.last_launch(record))
            if n_in_a_row[row] < len(lanes):
                stream = streams[lanes[n_in_a_row[row]]]
                work = stream.last_submitted_before(record.start_ns)
                self._mark(work, Mark.LIKELY)
                self.recorded_by |= {work: record.lane} if work else {}
            n_in_a_row[row] += 1

    def _mark(self, work: Event | None, mark: Mark) -> None:
        if work:
            self._marks[work] = max(mark, self._marks.get(work, Mark.UNMARKED))

    def of(self, work: Event) -> Mark:
        return self._marks.get(work, Mark.UNMARKED) if self.has_records else Mark.POSSIBLE
