"""What is true of a run: its windows, the chain that bound each of them, and who waited for whom.

A chain is walked back from the end of its window: each moment leads to the cause that was over
last, and the stretch between the two is a segment. So segments tile the window. They are what the
engine noted when things happened; no trace is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .facts import BASE_NS
from .timeline import MAIN_THREAD, Activity, Cause, Moment, Timeline, Wait

SCHEMA = 1

Position: TypeAlias = Callable[[Activity], int | None]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a chain. The activity is None where nothing was open that could name it."""

    kind: str
    start_ns: int
    end_ns: int
    activity: Activity | None


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time and the chain that bound it.

    A step has two windows, each until its annotation and all work launched in it have ended: its
    window begins with the annotation, its period where the step before it ended. There is no
    period for the first step, nor for one that is over before the step before it. The window
    `trace` holds all work of the main thread and of devices.
    """

    name: str
    step: int | None
    start_ns: int
    end_ns: int
    segments: tuple[Segment, ...]

    @property
    def duration_ns(self) -> int:
        """How long the window is."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a run.

    `position` tells where an activity stands among the records of the run, if it was recorded.
    `clock_offsets_ns` is how far the clock of each device is ahead of the host's, in whose time
    the windows are.
    """

    windows: tuple[Window, ...]
    waits: tuple[Wait, ...]
    position: Position
    clock_offsets_ns: tuple[int, ...] = ()

    def window(self, name: str) -> Window:
        """Return the window of this name: `trace`, `step 3`, `step 3 period`."""
        return next(window for window in self.windows if window.name == name)

    def to_json(self, order: Sequence[int] | None = None) -> dict[str, Any]:
        """Return the truth as plain data; with `base_time_ns` its times are since the epoch.

        Parameters
        ----------
        order
            What `Run.write` returned: then events are positions in `traceEvents` of that file.
            By default they are positions in `Run.events`.
        """
        position = self.position if order is None else _position_in(order, self.position)
        return {
            "schema": SCHEMA,
            "base_time_ns": BASE_NS,
            "clock_offsets_ns": list(self.clock_offsets_ns),
            "windows": [_window_json(window, position) for window in self.windows],
            "waits": [_wait_json(wait, position) for wait in self.waits],
        }


def truth_of(timeline: Timeline, position: Position, clock_offsets_ns: Sequence[int] = ()) -> Truth:
    """Return what is true of what happened."""
    windows = [*_whole(timeline), *_steps(timeline)]
    return Truth(tuple(windows), tuple(timeline.waits), position, tuple(clock_offsets_ns))


def _whole(timeline: Timeline) -> Iterator[Window]:
    """Yield the window of all work of the main thread and of devices. Annotations do not count."""
    activities = [activity for activity in timeline.activities if activity.is_recorded]
    host = [
        activity
        for activity in activities
        if activity.lane == MAIN_THREAD and activity.category != "user_annotation"
    ]
    work = [*host, *(activity for activity in activities if activity.is_work)]
    if work:
        start_ns = min(activity.start.time_ns for activity in work)
        yield _window("trace", None, start_ns, _latest([activity.end for activity in work]))


def _steps(timeline: Timeline) -> Iterator[Window]:
    before_ns: int | None = None
    for step in (one for one in timeline.activities if one.step is not None and one.is_recorded):
        end = _latest([step.end, *(work.end for work in _launched_in(step, timeline))])
        name = f"step {step.step}"
        yield _window(name, step.step, step.start.time_ns, end)
        if before_ns is not None and before_ns < end.time_ns:
            yield _window(f"{name} period", step.step, before_ns, end)
        before_ns = end.time_ns


def _launched_in(step: Activity, timeline: Timeline) -> Iterator[Activity]:
    for call in timeline.launches_between(step.start.time_ns, step.end.time_ns):
        yield from (work for work in call.works if work.is_recorded)


def _latest(moments: list[Moment]) -> Moment:
    """Return the last moment, of equals the first: threads stand before devices."""
    return max(moments, key=lambda moment: moment.time_ns)


def _window(name: str, step: int | None, start_ns: int, end: Moment) -> Window:
    segments = tuple(reversed(list(_walk_back(end, start_ns))))
    return Window(name, step, start_ns, end.time_ns, segments)


def _walk_back(end: Moment, start_ns: int) -> Iterator[Segment]:
    """Yield the segments from the end of a window to its start, the first cut at the start."""
    moment = end
    while moment.time_ns > start_ns:
        cause = moment.binding()
        if cause is None:
            message = f"nothing led to the moment {moment.time_ns}"
            raise ValueError(message)
        if cause.source.time_ns < moment.time_ns:
            yield _segment(cause, moment, start_ns)
        moment = cause.source


def _segment(cause: Cause, moment: Moment, start_ns: int) -> Segment:
    begin_ns = max(cause.source.time_ns, start_ns)
    return Segment(cause.kind.value, begin_ns, moment.time_ns, cause.activity)


def _position_in(order: Sequence[int], position: Position) -> Position:
    """Return where activities stand once the records are brought into an order."""
    rows = {record: row for row, record in enumerate(order)}

    def in_order(activity: Activity) -> int | None:
        record = position(activity)
        return None if record is None else rows[record]

    return in_order


def _window_json(window: Window, position: Position) -> dict[str, Any]:
    return {
        "name": window.name,
        "step": window.step,
        "start_ns": window.start_ns,
        "end_ns": window.end_ns,
        "segments": [
            {
                "kind": segment.kind,
                "start_ns": segment.start_ns,
                "end_ns": segment.end_ns,
                "event": _position(segment.activity, position),
            }
            for segment in window.segments
        ],
    }


def _wait_json(wait: Wait, position: Position) -> dict[str, Any]:
    return {
        "kind": wait.kind.value,
        "waiter": _position(wait.waiter, position),
        "awaited": _position(wait.awaited, position),
        "waited_ns": wait.waited_ns,
    }


def _position(activity: Activity | None, position: Position) -> int | None:
    return None if activity is None else position(activity)
