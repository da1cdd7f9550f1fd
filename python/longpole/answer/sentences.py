"""The sentences of a verdict: what limits the program, and one caveat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.answer.advice import ends_in_time, mostly_stopped
from longpole.answer.beside import ONE_RANK, beside
from longpole.answer.gains import Gains
from longpole.answer.missing import inconclusive, is_unusual, no_device, stopped, usual_of, window
from longpole.engine.windows import noun_of
from longpole.words.wording import duration, whole_percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.engine.windows import Unit
    from longpole.remedies.parts import Side, VerdictParts

__all__ = ["catching_up", "caveat", "limit", "limit_of", "sentence"]

# Host and kernels hide each other if either gains less than this alone, and both together gain this
# many times as much.
_LITTLE: Final = 0.25
_HIDDEN: Final = 3.0

# Minimum gain of a side that the sentence says limits the program.
_LEAST_GAIN: Final = 0.05

# The same after changes, which are known less well than what was recorded.
_LEAST_GAIN_AFTER: Final = 0.1

# Two sides limit a program alike if one gains at least this share of the other, as in the core.
_ALIKE: Final = 0.8

_NOUNS: Final[dict[Side, str]] = {
    "kernels": "the kernels",
    "host": "the host",
    "communication": "communication",
    "copies": "memory copies",
}
_LIMITS: Final = {
    "host": ("the host limits", "host work"),
    "kernels": ("the kernels limit", "them"),
    "communication": ("communication limits", "communication"),
    "copies": ("memory copies limit", "them"),
}


def sentence(parts: VerdictParts) -> str:
    """Return the sentence on what limits the program, and by how much.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().sentence
    'The trace takes 100 µs; the kernels limit it: up to 90 % shorter without them.'
    """
    match parts["status"]:
        case "no_device":
            return " ".join(no_device(parts))
        case "inconclusive":
            return " ".join(inconclusive(parts))
        case "balanced":
            return _balanced(parts)
        case _:
            return _named(parts)


def _named(parts: VerdictParts) -> str:
    """Return the part of the sentence that names what limits the program."""
    gains, taken = Gains(parts), window(parts)
    if parts["waits_lead"]:
        return f"{taken}; waits limit it more than any work does."
    if parts["nearly_balanced"]:
        return _nearly_balanced(parts)
    one, *others = parts["sides"]
    if others:
        both = [f"{_NOUNS[side]} ({gains.of_side(side)})" for side in (one, others[0])]
        return f"{taken}; {both[0]} and {both[1]} limit it alike."
    limits, them = _LIMITS[one]
    if one == "host" and mostly_stopped(parts):
        return f"{taken}; {limits} it, but {stopped(parts)}. Record {ends_in_time(parts)}."
    return f"{taken}; {limits} it: {gains.of_side(one)} shorter without {them}."


def limit_of(gains: Mapping[Side, float]) -> str:
    """Return what limits a program, given what it gains without each side.

    Examples
    --------
    >>> limit_of({"kernels": 0.62, "host": 0.3}), limit_of({"kernels": 0.02, "host": 0.01})
    ('the kernels limit it: about 62 % shorter without them', 'no side alone limits it')
    """
    one, other, *_ = sorted(gains, key=lambda side: -gains[side])
    if gains[one] < _LEAST_GAIN_AFTER:
        return "no side alone limits it"
    shares = [whole_percent(gains[side]) for side in (one, other)]
    if gains[other] >= max(_ALIKE * gains[one], _LEAST_GAIN_AFTER):
        return f"{_NOUNS[one]} ({shares[0]}) and {_NOUNS[other]} ({shares[1]}) limit it alike"
    limits, them = _LIMITS[one]
    return f"{limits} it: about {shares[0]} shorter without {them}"


def limit(parts: VerdictParts) -> tuple[str, str] | None:
    """Return what limits the program and by how much, as in the sentence, in a few words.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().limit
    ('kernels', 'up to 90 % shorter without them')
    """
    match parts["status"]:
        case "balanced":
            return "no single side", _most_of_two(Gains(parts), parts["kernels_and_host"])
        case "ok":
            return _limit_of(parts)
        case _:
            return None


def _most_of_two(gains: Gains, both: float) -> str:
    """Return the gains of the first two sides, and of host and kernels together."""
    first = sorted(_NOUNS, key=lambda side: -gains.most_of(side))[:2]
    told = [f"{side} {gains.told(side)}" for side in first]
    return f"{', '.join(told)}; host and kernels together {gains.most(both)}"


def _limit_of(parts: VerdictParts) -> tuple[str, str]:
    if parts["waits_lead"]:
        return "waits", "more than any work"
    if parts["nearly_balanced"]:
        return "host and kernels", "almost equally long"
    gains = Gains(parts)
    one, *others = parts["sides"]
    if others:
        told = f"{gains.of_side(one)} and {gains.of_side(others[0])} shorter without"
        return f"{one} and {others[0]}", told
    if one == "host" and mostly_stopped(parts):
        return one, stopped(parts)
    return one, f"{gains.of_side(one)} shorter without {_LIMITS[one][1]}"


def _nearly_balanced(parts: VerdictParts) -> str:
    """Return the sentence for a program in which only both sides together gain much."""
    gains = Gains(parts)
    host, kernels = gains.told("host"), gains.told("kernels")
    return (
        f"{window(parts)}; host and device take almost equally long: removing host work saves "
        f"{host}, kernels {kernels}, both {gains.most(parts['kernels_and_host'])}; shorten both."
    )


def _balanced(parts: VerdictParts) -> str:
    """Return the sentence for a program in which no side gains much by itself."""
    gains = Gains(parts)
    best = sorted(_NOUNS, key=lambda side: -gains.most_of(side))[:2]
    most = [gains.told(side) for side in best]
    sides = [f"{_NOUNS[side]} {gain}" for side, gain in zip(best, most, strict=True)]
    both = f"host and kernels together {gains.most(parts['kernels_and_host'])}"
    if gains.most_of(best[0]) < _LEAST_GAIN:
        little = f"removing any one side saves less than 5 % ({', '.join(sides)})"
        return f"{window(parts)}; {little}, {both}."
    told = f"removing {_NOUNS[best[0]]} saves {most[0]}, {sides[1]}"
    return f"{window(parts)}; no side alone is sure to limit it: {told}, {both}."


def caveat(parts: VerdictParts) -> str | None:
    """Return the strongest caveat, or None."""
    if parts["status"] not in {"ok", "balanced"}:
        return None
    lines = [*_usual(parts)]
    is_one_rank = "communication" in parts["sides"] and parts["awaited"] is None
    if parts["status"] == "ok":
        lines += [*_hidden(parts), *beside(parts, Gains(parts).most)]
        lines += [ONE_RANK] if is_one_rank else []
    return " ".join([*_catching_up(parts), *lines[:1]]) or None


def _catching_up(parts: VerdictParts) -> list[str]:
    """Report that the device works off a backlog, so that the windows are shorter than others."""
    if parts["caught_up_ns"] is None:
        return []
    return [catching_up(parts["caught_up_ns"], parts["unit"])]


def catching_up(host_ns: int, unit: Unit) -> str:
    """Return what limits a program in the long run if the device catches up with earlier work.

    Examples
    --------
    >>> catching_up(21_400_000, "step").partition(". ")[2]
    'In the long run, the host limits the program: it takes 21.4 ms for a step.'
    """
    return (
        "The device catches up with earlier work here. In the long run, the host limits the "
        f"program: it takes {duration(host_ns)} for a {noun_of(unit)}."
    )


def _hidden(parts: VerdictParts) -> list[str]:
    """Report that host and kernels hide each other: speeding up one leaves the other as limit."""
    gains, both = Gains(parts), parts["kernels_and_host"]
    best = max(gains.sides["host"], gains.sides["kernels"])
    is_theirs = parts["sides"][:1] in (["host"], ["kernels"]) and not parts["nearly_balanced"]
    if not is_theirs or both < _HIDDEN * best or best >= _LITTLE:
        return []
    told = f"Without host and kernels together, {gains.most(both)}: either alone gains little"
    return [f"{told}, since the other takes its place."]


def _usual(parts: VerdictParts) -> list[str]:
    """Report what limits the shown step alone, if that is something else."""
    if parts["usual"] is None or not is_unusual(parts):
        return []
    sides, gain = parts["usual"]
    what = " and ".join(_NOUNS[side] for side in sides) or "nothing by itself"
    held = f"{what} ({Gains(parts).most(gain)})" if sides else what
    unit = noun_of(parts["unit"])
    length = duration(parts["lengths_ns"][0])
    return [f"The {usual_of(parts)} {unit} ({length}) is limited by {held}."]
