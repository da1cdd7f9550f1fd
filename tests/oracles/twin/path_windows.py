"""Windows: which end the path is walked back from, and where it is clipped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from . import path_limits as limits
from .call_order import ALWAYS
from .path_events import STEP_PREFIX, Event, EventClass
from .path_threads import main_threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .path_graph import Graph

End = Literal["period", "last", "cpu", "gpu"]


@dataclass(frozen=True)
class Window:
    """A stretch of time, the point whose reasons are asked for, and what may end it instead.

    The window begins when the last of ``openers`` is reached; without openers it begins at a time
    that is no event's.
    """

    start_ns: int
    end_ns: int
    end_point: int
    candidates: tuple[int, ...]
    openers: tuple[int, ...]


def whole_window(graph: Graph) -> Window:
    """Cover all work of main threads and devices; other threads never end a trace."""
    works = _before_exit(_leading_work(graph))
    if not works:
        message = "the trace has no work on a main thread or a device"
        raise ValueError(message)
    opener = _opener(graph, works)
    candidates = tuple(graph.points.end(work) for work in works)
    return _window(graph, candidates, (graph.points.start(opener),))


def _before_exit(works: list[Event]) -> list[Event]:
    """Leave out the calls that unload code, free and destroy after all other work."""
    ends = {
        work
        for work in works
        if work.event_class is EventClass.RUNTIME
        and re.search("Unload|Destroy|Free|Unregister|DeviceReset", work.name)
    }
    others = [work.end_ns for work in works if work not in ends]
    exit_calls = [work for work in ends if others and work.start_ns >= max(others)]
    unloads = any(re.search("Unload|CtxDestroy|ModuleDestroy", work.name) for work in exit_calls)
    has_device_work = any(work.event_class is EventClass.DEVICE for work in works)
    return [work for work in works if not (unloads and has_device_work and work in exit_calls)]


def _opener(graph: Graph, works: Sequence[Event]) -> Event:
    """Find what opens the trace by its stamps; among devices' work that was moved, the first."""
    trace = graph.trace
    first_ns = min(work.start_ns - trace.shift_ns(work) for work in works)
    openers = [work for work in works if work.start_ns - trace.shift_ns(work) == first_ns]
    return works[0] if any(trace.shift_ns(work) for work in openers[:1]) else openers[0]


def step_window(graph: Graph, step: int | str, end: End = "period") -> Window:
    """Cover a profiler step, by its number."""
    number = str(step).removeprefix(STEP_PREFIX)
    span = _step(graph, number)
    if span is None:
        message = f"the trace has no step {number}"
        raise ValueError(message)
    before = _step(graph, str(int(number) - 1)) if end == "period" else None
    if before is None:
        return _span_window(graph, span, end)
    return _window(graph, _ends(graph, span, "last"), _ends(graph, before, "last"))


def annotation_window(graph: Graph, name: str, instance: int = 0, end: End = "last") -> Window:
    """Cover one of the annotations of a name, counted in the order of their starts."""
    spans = _annotations(graph, name)
    if not 0 <= instance < len(spans):
        message = f"the trace has {len(spans)} annotations {name!r}, none numbered {instance}"
        raise ValueError(message)
    return _span_window(graph, spans[instance], end)


def between_window(graph: Graph, start_ns: int, end_ns: int) -> Window:
    """Cover the time between two instants, up to the last work that overlaps it."""
    works = [
        work for work in _leading_work(graph) if work.start_ns < end_ns and work.end_ns > start_ns
    ]
    if all(work.end_ns < end_ns for work in works):
        works += _next_on_main_thread(graph, end_ns)
    if not works:
        message = f"no work between {start_ns} and {end_ns} ns"
        raise ValueError(message)
    candidates = tuple(graph.points.end(work) for work in works)
    return Window(start_ns, end_ns, last_point(graph, candidates), candidates, openers=())


def _next_on_main_thread(graph: Graph, at_ns: int) -> list[Event]:
    """Find what a main thread begins next, if it worked before: what leads there fills the gap."""
    works = [work for work in _leading_work(graph) if work.event_class is not EventClass.DEVICE]
    busy = {work.lane for work in works if work.start_ns < at_ns}
    return [work for work in works if work.start_ns >= at_ns and work.lane in busy][:1]


def last_point(
    graph: Graph, candidates: Iterable[int], times_ns: Sequence[int] | None = None
) -> int:
    """Choose the point reached last; of several that of the first event in content order."""

    def finish(point: int) -> tuple[int, int]:
        time_ns = graph.points.time_ns(point) if times_ns is None else times_ns[point]
        return (time_ns, -graph.points.points[point].event.rank)

    return max(candidates, key=finish)


def _leading_work(graph: Graph) -> list[Event]:
    """List the work of devices and main threads, but for work the profiler got no time for."""
    leading = main_threads(graph.trace)
    return [
        event
        for event in graph.trace.events
        if {event.start_ns, event.end_ns} != {graph.trace.shift_ns(event)}
        and (
            event.event_class is EventClass.DEVICE
            or (event.lane in leading and event.event_class is not EventClass.ANNOTATION)
        )
    ]


def _step(graph: Graph, number: str) -> Event | None:
    return next(iter(_annotations(graph, STEP_PREFIX + number)), None)


def _annotations(graph: Graph, name: str) -> list[Event]:
    return [
        event
        for event in graph.trace.events
        if event.event_class is EventClass.ANNOTATION and event.name == name
    ]


def _span_window(graph: Graph, span: Event, end: End) -> Window:
    return _window(graph, _ends(graph, span, end), (graph.points.start(span),))


def _ends(graph: Graph, span: Event, end: End) -> tuple[int, ...]:
    """List what may complete a span: its own end, and the device work launched in it."""
    works = [
        graph.points.end(work)
        for call, works in graph.devices.launches.work_of.items()
        if call.lane.owner == span.lane.owner and span.start_ns <= call.start_ns < span.end_ns
        for work in works
    ]
    works += [
        graph.points.end(work)
        for work, (submitted_ns, process) in _unlinked(graph).items()
        if process == span.lane.owner and span.start_ns <= submitted_ns < span.end_ns
    ]
    own = [graph.points.end(span)]
    if end == "gpu" and not works:
        message = f"no device work was launched in {span.name!r}"
        raise ValueError(message)
    return tuple({"cpu": own, "gpu": works}.get(end, own + works))


def _unlinked(graph: Graph) -> dict[Event, tuple[int, object]]:
    """Say when work whose launch is not in the trace is likely to have been launched, by whom.

    That is with the work before it on its stream, if it followed that at once, else just before it
    began, between the calls with the numbers around its own. Times are those of the trace: no clock
    is corrected.
    """
    found: dict[Event, tuple[int, object]] = {}
    launches = graph.devices.launches
    for stream in graph.devices.streams.values():
        calls = [launches.call_of(work) for work in stream.works]
        process = next((call.lane.owner for call in calls if call), None)
        last_ns: int | None = None
        ended_ns = -limits.LARGEST_TIME_NS
        for place, (work, call) in enumerate(zip(stream.works, calls, strict=True)):
            if call is not None:
                last_ns, process = call.start_ns, call.lane.owner
            elif process is not None:
                start_ns = work.start_ns - graph.trace.shift_ns(work)
                numbered_ns = launches.order.around(process, work.correlation)
                follows = last_ns is not None and (
                    work.start_ns - ended_ns <= limits.LATE_AFTER_LOST_NS
                )
                at_ns = last_ns if follows else max(start_ns, last_ns or start_ns)
                at_ns = min(max(at_ns, numbered_ns[0]), numbered_ns[1])
                next_ns = next((it.start_ns for it in calls[place:] if it), limits.LARGEST_TIME_NS)
                if last_ns is not None or numbered_ns != ALWAYS:
                    found[work] = min(at_ns, next_ns), process
                    last_ns = at_ns
            ended_ns = max(work.end_ns, ended_ns)
    return found


def _window(graph: Graph, candidates: tuple[int, ...], openers: tuple[int, ...]) -> Window:
    end_point = last_point(graph, candidates)
    start_ns = graph.points.time_ns(last_point(graph, openers))
    end_ns = max(start_ns, graph.points.time_ns(end_point))
    return Window(start_ns, end_ns, end_point, candidates, openers)
