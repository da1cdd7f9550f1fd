"""What can be imagined to be different about a program."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

__all__ = ["Change", "Drop", "RemoveWait", "Scale", "WaitKind", "WorkKind", "parts_of"]

WorkKind = Literal[
    "operator",
    "runtime",
    "host_gap",
    "data_loading",
    "kernel",
    "copy",
    "communication",
    "launch",
    "clock_skew",
    "kernel_delay",
    "stream_overlap",
    "event_wait",
    "sync_return",
    "queue_full",
    "handover",
    "graph_gap",
    "unexplained",
    "unrecorded",
    "before_first_event",
    "after_last_event",
]
"""The kinds of time on a critical path."""

WaitKind = Literal["sync_return", "event_wait", "queue_full"]
"""The kinds of waits that can be removed."""

# How exactly a factor is taken: a float like 0.1 means one tenth.
_LARGEST_DENOMINATOR: Final = 10**9


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Multiplies the time of what is of a kind and has a matching name.

    Without a kind, it is about work: operators, runtime API calls, host time outside
    operators, data loading, kernels, memcpy and memset, and communication. A kernel made
    faster is not launched faster.
    """

    by: float | Fraction
    kind: WorkKind | None = None
    matching: str | None = None


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Sets the time of what is of a kind and has a matching name to zero.

    What depends on it still does.
    """

    kind: WorkKind | None = None
    matching: str | None = None


@dataclass(frozen=True, kw_only=True)
class RemoveWait:
    """Removes the wait of calls (`sync_return`, `queue_full`) or GPU activities (`event_wait`).

    Data that the wait protects is not considered: the gain is an upper bound.
    """

    kind: WaitKind = "sync_return"
    matching: str | None = None

    def __post_init__(self) -> None:
        """Refuse what does not wait."""
        if self.kind not in get_args(WaitKind):
            known = ", ".join(get_args(WaitKind))
            message = f"{self.kind!r} is not a kind of wait; the kinds are {known}"
            raise ValueError(message)


Change = Scale | Drop | RemoveWait


def parts_of(change: Change) -> tuple[str, str | None, str | None, int, int]:
    """Give a change as the core takes it: effect, kind, pattern, and the factor as a fraction."""
    match change:
        case RemoveWait():
            return ("remove_wait", change.kind, change.matching, 1, 1)
        case Drop():
            return ("scale", change.kind, change.matching, 0, 1)
        case Scale():
            by = _factor(change.by)
            return ("scale", change.kind, change.matching, by.numerator, by.denominator)


def _factor(by: float | Fraction) -> Fraction:
    try:
        exact = by if isinstance(by, Fraction) else Fraction(str(by))
    except ValueError:
        exact = Fraction(-1)
    if not 0 <= exact <= _LARGEST_DENOMINATOR:
        message = f"a factor is between 0 and {_LARGEST_DENOMINATOR:,}, not {by}"
        raise ValueError(message)
    return exact.limit_denominator(_LARGEST_DENOMINATOR)
