"""What may be changed before a program runs again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kinds import Kind


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
