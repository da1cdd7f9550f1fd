"""The kinds of stretches that paths are made of."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a stretch of a path is: work of one kind, or what is left of a wait."""

    OPERATOR = "operator"
    RUNTIME = "runtime"
    HOST_GAP = "host_gap"
    DATA_LOADING = "data_loading"
    KERNEL = "kernel"
    COPY = "copy"
    COMMUNICATION = "communication"
    LAUNCH = "launch"
    KERNEL_DELAY = "kernel_delay"
    EVENT_WAIT = "event_wait"
    SYNC_RETURN = "sync_return"
    QUEUE_FULL = "queue_full"
    HANDOVER = "handover"
