"""What may be changed before a program runs again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .machine import Machine, Place, Role


@dataclass(frozen=True, slots=True)
class Scale:
    """Everything of a kind whose name matches takes `by` times as long.

    The name is that of the work for device kinds and latencies, that of the call for `runtime`,
    and that of the innermost open frame for the other host kinds. No pattern matches all.
    """

    kind: str
    matching: str = ""
    by: float = 0.5


@dataclass(frozen=True, slots=True)
class Drop:
    """Everything of a kind whose name matches takes no time; who waits for it still does."""

    kind: str
    matching: str = ""


@dataclass(frozen=True, slots=True)
class NoWait:
    """Calls (`sync_return`, `queue_full`) or works (`event_wait`) that match no longer wait."""

    kind: str
    matching: str = ""


Change: TypeAlias = Scale | Drop | NoWait


class Changes:
    """Changes, ready to be asked about one thing at a time."""

    def __init__(self, changes: Sequence[Change] = ()) -> None:
        self._scales = [_as_scale(change) for change in changes if not isinstance(change, NoWait)]
        self._no_waits = [change for change in changes if isinstance(change, NoWait)]
        self._factor = cache(self._find_factor)
        self.waits = cache(self._find_waits)

    def scaled_ns(self, duration_ns: int, kind: Kind, name: str) -> int:
        """Return how long something of this kind and name takes now."""
        if not self._scales:
            return duration_ns
        return round(duration_ns * self._factor(kind, name))

    def _find_factor(self, kind: Kind, name: str) -> Fraction:
        factor = Fraction(1)
        for scale in self._scales:
            if scale.kind == kind and re.search(scale.matching, name):
                factor *= Fraction(scale.by)
        return factor

    def _find_waits(self, kind: Kind, name: str) -> bool:
        return not any(
            change.kind == kind and re.search(change.matching, name) for change in self._no_waits
        )


def _as_scale(change: Scale | Drop) -> Scale:
    return change if isinstance(change, Scale) else Scale(change.kind, change.matching, by=0)


# The kinds of stretches that paths are made of.


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


# The conditions of a run: a machine, and what is different this time.


@dataclass(frozen=True, slots=True)
class Conditions:
    """What decides how long things take, and whether they wait."""

    machine: Machine
    changes: Changes

    def takes_ns(self, nominal_ns: int, kind: Kind, name: str, place: Place, role: Role) -> int:
        """Return how long something takes: its nominal time with its noise, then the changes."""
        drawn_ns = self.machine.draw_ns(nominal_ns, place, role)
        return self.changes.scaled_ns(drawn_ns, kind, name)

    def waits(self, kind: Kind, name: str) -> bool:
        """Whether something of this kind and name still waits for what it waits for."""
        return self.changes.waits(kind, name)
