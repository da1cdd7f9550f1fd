"""What limits a program: a closed type, decided once by the core.

Whoever speaks of it matches over `Limit`; mypy checks that no case is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, assert_never

from longpole.remedies.sides import Cause, Side, Status
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.remedies.gains import Gain

# Minimum gain of a side that limits a program after changes, which are known less well than what
# was recorded, and the share of it from which a second side limits it alike.
_LEAST_GAIN_AFTER: Final = 0.1
_ALIKE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Sides(Data):
    """One side limits the program, or two that gain about the same."""

    kind: Literal["sides"] = field(default="sides", init=False)
    sides: tuple[Side, ...]
    """The sides, largest gain first."""


@dataclass(frozen=True, slots=True)
class Waits(Data):
    """Waits limit the program: removing them gains more than removing any work."""

    kind: Literal["waits"] = field(default="waits", init=False)


@dataclass(frozen=True, slots=True)
class Both(Data):
    """Host and kernels limit the program together: removing either alone gains little."""

    kind: Literal["both"] = field(default="both", init=False)


@dataclass(frozen=True, slots=True)
class NoneAlone(Data):
    """No side limits the program alone."""

    kind: Literal["none_alone"] = field(default="none_alone", init=False)


@dataclass(frozen=True, slots=True)
class DependsOnCost(Data):
    """One of two sides limits the program, depending on what recording cost.

    The time of a step without the profiler settles it.
    """

    kind: Literal["depends_on_cost"] = field(default="depends_on_cost", init=False)
    sides: tuple[Side, Side]
    """The side that limits it at the estimated cost, and the one with the least or most cost."""


@dataclass(frozen=True, slots=True)
class NotShown(Data):
    """The trace does not show what limits the program."""

    kind: Literal["not_shown"] = field(default="not_shown", init=False)
    reason: Cause
    """What the trace lacks."""


@dataclass(frozen=True, slots=True)
class NoDevice(Data):
    """Unknown, because the window has no GPU activity."""

    kind: Literal["no_device"] = field(default="no_device", init=False)


Limit = Sides | Waits | Both | NoneAlone | DependsOnCost | NotShown | NoDevice
"""What limits a program."""
Kind = Literal["sides", "waits", "both", "none_alone", "not_shown", "no_device"]


def limit_of(kind: Kind, sides: Sequence[Side], cause: Cause | None) -> Limit:
    """Return the limit that the core found."""
    match kind:
        case "sides":
            return Sides(tuple(sides))
        case "waits":
            return Waits()
        case "both":
            return Both()
        case "none_alone":
            return NoneAlone()
        case "not_shown":
            return NotShown(cause or "unexplained")
        case "no_device":
            return NoDevice()
        case _:
            assert_never(kind)


def with_cost(limit: Limit, gains: Mapping[Side, Gain]) -> Limit:
    """Return the limit, or the two sides between which the cost of recording decides.

    The less recording cost, the longer the host takes and the less the other sides matter. So the
    host is compared at one bound of its gain with the others at their opposite one.
    """
    if not isinstance(limit, Sides) or len(limit.sides) != 1 or "host" not in gains:
        return limit
    [side] = limit.sides
    host = gains["host"]
    if side == "host":
        others = [other for other in gains if other not in {"host", "waits"}]
        rival = max(others, key=lambda other: gains[other].high, default=side)
        is_turned = _by_cost(host.low_by, gains[rival].high_by) and host.low < gains[rival].high
    else:
        rival = "host"
        is_turned = _by_cost(host.high_by, gains[side].low_by) and gains[side].low < host.high
    is_known = max(gains[rival].high, 0) >= _LEAST_GAIN_AFTER
    return DependsOnCost((side, rival)) if is_turned and is_known and rival != side else limit


def _by_cost(*facts: str) -> bool:
    return all(fact == "recording_cost" for fact in facts)


def limit_after(gains: Mapping[Side, float]) -> Sides | NoneAlone:
    """Return what limits a program after changes, by what it would gain without each side.

    Examples
    --------
    >>> limit_after({"kernels": 0.62, "host": 0.3}).sides
    ('kernels',)
    >>> limit_after({"kernels": 0.02, "host": 0.01}).kind
    'none_alone'
    """
    one, other, *_ = sorted(gains, key=lambda side: -gains[side])
    if gains[one] < _LEAST_GAIN_AFTER:
        return NoneAlone()
    is_alike = gains[other] >= max(_ALIKE * gains[one], _LEAST_GAIN_AFTER)
    return Sides((one, other) if is_alike else (one,))


def sides_of(limit: Limit) -> tuple[Side, ...]:
    """Return the sides to shorten, largest gain first; empty if unknown."""
    match limit:
        case Sides(sides=sides) | DependsOnCost(sides=sides):
            return sides
        case Waits():
            return ("waits",)
        case Both():
            return ("host", "kernels")
        case NoneAlone() | NotShown() | NoDevice():
            return ()
        case _:
            assert_never(limit)


def status_of(limit: Limit) -> Status:
    """Return whether a limit is an answer: the status of a verdict."""
    match limit:
        case Sides() | Waits() | Both() | DependsOnCost():
            return "ok"
        case NoneAlone():
            return "balanced"
        case NotShown():
            return "inconclusive"
        case NoDevice():
            return "no_device"
        case _:
            assert_never(limit)
