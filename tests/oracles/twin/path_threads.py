"""Threads: whose time passes between two points, which thread leads, and who waits for autograd."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from . import path_limits as limits
from .path_edges import Edge, Evidence, Kind, Points, Role
from .path_events import STEP_PREFIX, Event, EventClass, Lane, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DATA_LOADING = r"(?i)data_?loader"
"""torch names its frames ``torch/utils/data/dataloader.py(...)`` and ``enumerate(DataLoader)#...``;
a loader of one's own is usually called so too."""

AUTOGRAD = "autograd::engine::evaluate_function"
OLD_NODE = re.compile(r"(Backwards?|AccumulateGrad)\d*$")
"""Torch before 1.10 recorded the nodes of the backward graph alone, without the engine."""

Chain = list[Edge]


def main_threads(trace: Trace) -> set[Lane]:
    """Find the leading thread of every process: it runs the steps, or is the first, or busiest."""
    events: dict[Lane, list[Event]] = defaultdict(list)
    for event in trace.events:
        if event.event_class is not EventClass.DEVICE:
            events[event.lane].append(event)
    best: dict[object, tuple[tuple[bool, bool, int], Lane]] = {}
    for thread, its_events in events.items():  # in content order of their first events
        claim = _claim_to_lead(thread, its_events)
        if thread.owner not in best or claim > best[thread.owner][0]:
            best[thread.owner] = (claim, thread)
    return {thread for _, thread in best.values()}


def _claim_to_lead(thread: Lane, events: Sequence[Event]) -> tuple[bool, bool, int]:
    work = [event for event in events if event.event_class is not EventClass.ANNOTATION]
    busy = [event for event in work if event.event_class is not EventClass.PYTHON]
    runs_steps = any(event.name.startswith(STEP_PREFIX) for event in events)
    return (runs_steps, bool(work) and thread.number == thread.owner, len(busy))


def thread_chains(trace: Trace, points: Points, data_load: str = DATA_LOADING) -> dict[Lane, Chain]:
    """Connect the points of each thread; every edge belongs to the event that had its time."""
    loaders = _loaders(trace, data_load)
    return {
        thread: list(_chain(numbers, points, loaders, trace.counts))
        for thread, numbers in points.of_thread.items()
    }


def first_events(trace: Trace, points: Points, edges: Sequence[Edge]) -> list[Edge]:
    """Let the first point of a thread follow the main thread, where nothing else leads to it."""
    explained = {edge.target for edge in edges}
    main_of = {thread.owner: thread for thread in main_threads(trace)}
    found = []
    for thread, (first, *_) in points.of_thread.items():
        main = main_of.get(thread.owner, thread)
        before = [number for number in points.of_thread[main] if number < first]
        if main == thread or first in explained or not before:
            continue
        is_near = points.time_ns(first) - points.time_ns(before[-1]) <= limits.THREAD_START_NS
        found.append(
            Edge(before[-1], first, Kind.HANDOVER, Role.HANDOVER, None, Evidence.INFERRED)
            if is_near
            else Edge(before[-1], first, Kind.UNEXPLAINED, Role.NO_REASON, None, Evidence.NONE)
        )
    return found


def _loaders(trace: Trace, data_load: str) -> set[Event]:
    pattern = re.compile(data_load)
    return {
        event
        for event in trace.events
        if event.event_class in {EventClass.ANNOTATION, EventClass.PYTHON}
        and pattern.search(event.name)
    }


def _chain(
    numbers: Sequence[int], points: Points, loaders: set[Event], counts: Counter[str]
) -> Iterator[Edge]:
    still_open: list[Event] = []  # the one that started last stands last
    for source, target in pairwise(numbers):
        point = points.points[source]
        if point.is_end:
            counts["crossing"] += _is_crossed(point.event, still_open)
            still_open.remove(point.event)
        else:
            still_open.append(point.event)
        kind, owner = _owner(still_open, loaders)
        yield Edge(source, target, kind, Role.THREAD_ORDER, owner, Evidence.ORDER)


def _is_crossed(ended: Event, still_open: Sequence[Event]) -> bool:
    """Say whether work that began inside an event goes on after it; labels may cross freely."""
    began_later = still_open[still_open.index(ended) + 1 :]
    return ended.event_class is not EventClass.ANNOTATION and any(
        event.event_class is not EventClass.ANNOTATION for event in began_later
    )


def _owner(still_open: Sequence[Event], loaders: set[Event]) -> tuple[Kind, Event | None]:
    """Say whose the time is: of the open call, operator or frame that started last."""
    innermost = {event.event_class: event for event in still_open}
    call = innermost.get(EventClass.RUNTIME)
    if call:
        return Kind.RUNTIME, call
    operator = innermost.get(EventClass.OPERATOR)
    frame = innermost.get(EventClass.PYTHON)
    label = operator or innermost.get(EventClass.ANNOTATION)
    owner = max(filter(None, (frame, label)), key=lambda event: event.rank, default=None)
    if not loaders.isdisjoint(still_open):
        return Kind.DATA_LOADING, owner
    return (Kind.OPERATOR if operator else Kind.HOST_GAP), owner


class Burst(NamedTuple):
    """A stretch in which an autograd thread works without a gap, from point to point."""

    start: int
    end: int


def handovers(trace: Trace, points: Points, chains: dict[Lane, Chain]) -> Iterator[Edge]:
    """Let the backward thread begin with the forward thread's call, and that one go on after it.

    A gap of the forward thread in which the autograd thread works is waiting. Time of an operator
    is waiting only if it holds the whole work, from idle to idle.
    """
    for forward, engine in sorted(autograd_threads(trace), key=str):
        bursts = list(_bursts(chains.get(engine, [])))
        for gap in chains.get(forward, []):
            if gap.kind in {Kind.HOST_GAP, Kind.OPERATOR}:
                yield from _handover(gap, bursts, points)


def autograd_threads(trace: Trace) -> set[tuple[Lane, Lane]]:
    """Find (forward, backward) pairs; a main thread runs its backward operators itself."""
    leading = main_threads(trace)
    main_of = {thread.owner: thread for thread in leading}
    threads = {event.lane for event in trace.events}
    callers: dict[Lane, dict[Lane, Sequence[int]]] = defaultdict(dict)
    for (source, target), starts_ns in sorted(trace.autograd_arrows.items(), key=str):
        if source != target and {source, target} <= threads:  # else it leads nowhere
            callers[target][source] = starts_ns
    for event in trace.events:
        if event.event_class is EventClass.OPERATOR and _runs_backward(event):
            callers.setdefault(event.lane, {})
    return {
        (_forward_thread(votes, main_of[engine.owner]), engine)
        for engine, votes in callers.items()
        if engine not in leading and engine.owner in main_of
    }


def _runs_backward(event: Event) -> bool:
    is_old_node = event.category == "Operator" and OLD_NODE.search(event.name)
    return event.name.startswith(AUTOGRAD) or bool(is_old_node)


def _forward_thread(votes: Mapping[Lane, Sequence[int]], main: Lane) -> Lane:
    """Choose where most arrows come from; of several the main thread, else the first arrow."""

    def strength(thread: Lane) -> tuple[int, bool, int]:
        return (len(votes[thread]), thread == main, -min(votes[thread]))

    return max(votes, key=strength, default=main)


def _bursts(chain: Chain) -> Iterator[Burst]:
    busy = [edge for edge in chain if edge.kind is not Kind.HOST_GAP]
    start = None
    for edge, following in zip(busy, [*busy[1:], None], strict=False):  # none if nothing is busy
        start = edge.source if start is None else start
        if following is None or following.source != edge.target:
            yield Burst(start, edge.target)
            start = None


def _handover(gap: Edge, bursts: Sequence[Burst], points: Points) -> Iterator[Edge]:
    gap_start_ns, gap_end_ns = points.time_ns(gap.source), points.time_ns(gap.target)
    first = bisect_right(bursts, gap_start_ns, key=lambda burst: points.time_ns(burst.end))
    last = bisect_left(bursts, gap_end_ns, key=lambda burst: points.time_ns(burst.start)) - 1
    if first > last:
        return
    idle_before = points.time_ns(bursts[first].start) >= gap_start_ns
    idle_after = points.time_ns(bursts[last].end) <= gap_end_ns
    if gap.kind is Kind.OPERATOR and not (idle_before and idle_after):
        return
    if idle_before:
        yield _handover_edge(gap.source, bursts[first].start, gap.event)
    if idle_after:
        yield _handover_edge(bursts[last].end, gap.target, gap.event)


def _handover_edge(source: int, target: int, label: Event | None) -> Edge:
    return Edge(source, target, Kind.HANDOVER, Role.HANDOVER, label, Evidence.INFERRED)
