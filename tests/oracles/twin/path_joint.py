"""Collectives of several devices of a process: no kernel ends before the last has begun."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from . import path_limits as limits
from .path_devices import Devices, kind_of_work
from .path_edges import Edge, Evidence, Kind, Points, Role
from .path_events import Event, EventClass, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_NEIGHBOURS = 16
"""Work is compared to so many of another device that begin before it ends."""


def joint_edges(trace: Trace, points: Points, devices: Devices) -> Iterator[Edge]:
    """Give the edges from the last start of each collective to the ends of its other kernels."""
    works: dict[str, dict[object, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in trace.events:
        if event.event_class is EventClass.DEVICE and kind_of_work(event) is Kind.COMMUNICATION:
            works[event.name][event.lane.owner].append(event)
    for of_name in works.values():
        for device, its in of_name.items():
            siblings = [of_name[other] for other in devices.siblings(device) if other in of_name]
            for work in its:
                partners = [_partner(work, others) for others in siblings]
                known = [partner for partner in partners if partner]
                last = max(known, key=lambda it: (it.start_ns, -it.rank), default=None)
                if last and last.start_ns > work.start_ns:
                    source, target = points.start(last), points.end(work)
                    kind, role = Kind.COMMUNICATION, Role.JOINT_COLLECTIVE
                    yield Edge(source, target, kind, role, last, Evidence.INFERRED)


def _partner(work: Event, others: Sequence[Event]) -> Event | None:
    """Find the kernel of another device that runs together with this one longest."""
    near = [other for other in others if other.start_ns < work.end_ns][-MOST_NEIGHBOURS:]
    best: tuple[int, Event | None] = (0, None)
    for other in near:  # of several the first
        overlap_ns = min(work.end_ns, other.end_ns) - max(work.start_ns, other.start_ns)
        if overlap_ns > best[0]:
            best = (overlap_ns, other)
    overlap_ns, partner = best
    most_ns = max(limits.JOINT_ENDS_NS, overlap_ns // limits.JOINT_ENDS_PART)
    ends_together = partner is not None and abs(partner.end_ns - work.end_ns) <= most_ns
    return partner if ends_together else None
