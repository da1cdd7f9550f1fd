"""The kinds of time on a critical path, in words."""

from __future__ import annotations

from typing import Final

_STEP: Final = "ProfilerStep#"

MEANINGS: Final = {
    "operator": "operators on the host",
    "runtime": "runtime API calls",
    "host_gap": "host time outside operators",
    "data_loading": "data loading",
    "kernel": "kernel execution",
    "copy": "memcpy and memset",
    "communication": "communication",
    "launch": "launch latency on an idle device",
    "clock_skew": "clock difference of host and device",
    "kernel_delay": "delay between GPU activities",
    "stream_overlap": "overlap with the previous activity of the stream",
    "event_wait": "return from waits of one stream for another",
    "sync_return": "return from synchronization calls",
    "queue_full": "return from launches that found the queue full",
    "handover": "thread handoff between forward and backward",
    "graph_gap": "late start inside a graph, cause not recorded",
    "unexplained": "idle before a start, cause not recorded",
    "unrecorded": "waits for something that the trace does not hold",
    "before_first_event": "before the first event on the path",
    "after_last_event": "after the last recorded event",
}
"""Meaning of each kind of time on a path."""


def name_outside_operators(kind: str, name: str | None) -> str:
    """Return the name of a segment outside operators: a step around it says nothing.

    Examples
    --------
    >>> name_outside_operators("host_gap", "ProfilerStep#4")
    'host time outside operators'
    >>> name_outside_operators("host_gap", "Optimizer.step#SGD.step")
    'Optimizer.step#SGD.step'
    """
    return MEANINGS.get(kind, kind) if name is None or name.startswith(_STEP) else name
