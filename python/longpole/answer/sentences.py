"""The sentences of a verdict: what limits the program, and one caveat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from longpole.answer.advice import (
    LEAST_GAIN,
    MOST_OPEN,
    ends_in_time,
    limiting,
    mostly_stopped,
    narrowing,
)
from longpole.answer.beside import ONE_RANK, beside
from longpole.answer.gains import Gains
from longpole.answer.missing import inconclusive, is_unusual, no_device, stopped, usual_of, window
from longpole.engine.windows import noun_of
from longpole.remedies.gains import WORTH_SAYING
from longpole.remedies.limits import (
    Both,
    DependsOnCost,
    NoDevice,
    NoneAlone,
    NotShown,
    Sides,
    Waits,
    limit_after,
    status_of,
)
from longpole.words.wording import duration, whole_percent

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from longpole.engine.windows import Unit
    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.sides import Side

# Host and kernels hide each other if either gains less than this alone, and both together gain this
# many times as much.
_LITTLE: Final = 0.25
_HIDDEN: Final = 3.0

_NOUNS: Final[dict[Side, str]] = {
    "kernels": "the kernels",
    "host": "the host",
    "communication": "communication",
    "copies": "memory copies",
    "waits": "waits",
}
_LIMITS: Final[dict[Side, str]] = {
    "host": "the host limits",
    "kernels": "the kernels limit",
    "communication": "communication limits",
    "copies": "memory copies limit",
    "waits": "waits limit",
}


def sentence(parts: VerdictParts) -> str:  # noqa: PLR0911 - a return for each kind of limit
    """Return the sentence on what limits the program, and by how much.

    The percentages are how much shorter the window would be if that work took no time.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().sentence
    'The trace takes 100 µs; the kernels limit it (up to 90 %).'
    """
    limit = parts["limit"]
    match limit:
        case NoDevice():
            return " ".join(no_device(parts))
        case NotShown():
            return " ".join(inconclusive(parts))
        case NoneAlone():
            return _balanced(parts)
        case Waits():
            gain = Gains(parts).of_side("waits")
            return f"{window(parts)}; waits limit it more than any work does ({gain})."
        case Both():
            return _nearly_balanced(parts)
        case Sides(sides=sides):
            return _named(parts, sides)
        case DependsOnCost(sides=sides):
            return _depends_on_cost(parts, sides)
        case _:
            assert_never(limit)


def _depends_on_cost(parts: VerdictParts, sides: Sequence[Side]) -> str:
    """Return the sentence about two sides between which the cost of recording decides."""
    one, other = (f"{_NOUNS[side]} ({Gains(parts).of_side(side)})" for side in sides)
    return (
        f"{window(parts)}; {one} or {other} limit it, depending on what recording cost: "
        "--step-time with the time of a step without the profiler settles it."
    )


def _named(parts: VerdictParts, sides: Sequence[Side]) -> str:
    """Return the sentence about one or two sides that limit the program."""
    gains, taken = Gains(parts), window(parts)
    one, *others = sides
    if others:
        both = [f"{_NOUNS[side]} ({gains.of_side(side)})" for side in (one, others[0])]
        return f"{taken}; {both[0]} and {both[1]} limit it alike."
    if one == "host" and mostly_stopped(parts):
        return f"{taken}; {_LIMITS[one]} it, but {stopped(parts)}. Record {ends_in_time(parts)}."
    return _open(parts, one) or f"{taken}; {_LIMITS[one]} it ({gains.of_side(one)})."


def _open(parts: VerdictParts, side: Side) -> str | None:
    """Return what is certain of a side whose gain is too uncertain for a verdict."""
    open_by = _open_by(parts, side)
    if open_by is None:
        return None
    why, advice = open_by
    return (
        f"{window(parts)}; {_NOUNS[side]} may limit it: {_certain(parts, side)}, and more is open, "
        f"as {why}. {advice}."
    )


def _open_by(parts: VerdictParts, side: Side) -> tuple[str, str] | None:
    """Return why a gain is too uncertain for a verdict, and what to record; None if it is not."""
    gain = parts["gains"][side]
    if gain.high - gain.low <= MOST_OPEN:
        return None
    facts = sorted((gain.high_by, gain.low_by), key=lambda fact: fact == "recording_cost")
    return next(filter(None, (narrowing(parts, fact) for fact in facts)), None)


def _certain(parts: VerdictParts, side: Side) -> str:
    low = parts["gains"][side].low
    return f"{Gains(parts).percent(low) if low >= WORTH_SAYING else 'little'} is certain"


def limit_then(gains: Mapping[Side, float]) -> str:
    """Return what limits a program after changes, given what it gains then without each side.

    Examples
    --------
    >>> limit_then({"kernels": 0.62, "host": 0.3}), limit_then({"kernels": 0.02, "host": 0.01})
    ('the kernels limit it (about 62 %)', 'no side alone limits it')
    >>> limit_then({"host": 0.999, "kernels": 0.1})
    'the host limits it (over 99 %)'
    """
    limit = limit_after(gains)
    match limit:
        case NoneAlone():
            return "no side alone limits it"
        case Sides(sides=(one, other)):
            shares = [whole_percent(gains[side]) for side in (one, other)]
            return f"{_NOUNS[one]} ({shares[0]}) and {_NOUNS[other]} ({shares[1]}) limit it alike"
        case _:
            one = limit.sides[0]
            told = whole_percent(gains[one])
            return f"{_LIMITS[one]} it ({told if told.startswith('over') else f'about {told}'})"


def limit_words(parts: VerdictParts) -> tuple[str, str] | None:
    """Return what limits the program and by how much, as in the sentence, in a few words.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().limited_by
    ('kernels', 'up to 90 %')
    """
    gains, limit = Gains(parts), parts["limit"]
    match limit:
        case NoDevice() | NotShown():
            return None
        case NoneAlone():
            return "no single side", _most_of_two(gains, parts["kernels_and_host"])
        case Waits():
            return "waits", gains.of_side("waits")
        case Both():
            return "host and kernels", "almost equally long"
        case Sides(sides=sides):
            return _words_of(parts, sides)
        case DependsOnCost(sides=(one, other)):
            return f"{one} or {other}", "depending on what recording cost"
        case _:
            assert_never(limit)


def _words_of(parts: VerdictParts, sides: Sequence[Side]) -> tuple[str, str]:
    gains = Gains(parts)
    one, *others = sides
    if others:
        told = f"{gains.of_side(one)} and {gains.of_side(others[0])}"
        return f"{_name(one)} and {_name(others[0])}", told
    if one == "host" and mostly_stopped(parts):
        return _name(one), stopped(parts)
    told = gains.of_side(one) if _open_by(parts, one) is None else _certain(parts, one)
    return _name(one), told


def _name(side: Side) -> str:
    return _NOUNS[side].removeprefix("the ")


def _most_of_two(gains: Gains, both: float) -> str:
    """Return the gains of the first two sides, and of host and kernels together."""
    first = sorted(gains.sides, key=lambda side: -gains.sides[side].high)[:2]
    told = [f"{side} {gains.told(side)}" for side in first]
    return f"{', '.join(told)}; host and kernels together {gains.most(both)}"


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
    best = sorted(gains.sides, key=lambda side: -gains.sides[side].high)[:2]
    most = [gains.told(side) for side in best]
    sides = [f"{_NOUNS[side]} {gain}" for side, gain in zip(best, most, strict=True)]
    both = f"host and kernels together {gains.most(parts['kernels_and_host'])}"
    if gains.sides[best[0]].high < LEAST_GAIN:
        little = f"removing any one side saves less than 5 % ({', '.join(sides)})"
        return f"{window(parts)}; {little}, {both}."
    told = f"removing {_NOUNS[best[0]]} saves {most[0]}, {sides[1]}"
    return f"{window(parts)}; no side alone is sure to limit it: {told}, {both}."


def caveat(parts: VerdictParts, planned: Collection[Side] = ()) -> str | None:
    """Return the strongest caveat, or None; `planned` are the sides that the plan shortens."""
    sides, status = limiting(parts), status_of(parts["limit"])
    if status not in {"ok", "balanced"}:
        return None
    lines = [*_usual(parts)]
    is_one_rank = "communication" in sides and parts["awaited"] is None
    if status == "ok":
        lines += [*_hidden(parts), *beside(parts, Gains(parts).most, planned)]
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
    best = max(gains.sides[side].value for side in ("host", "kernels"))
    limit = parts["limit"]
    is_theirs = isinstance(limit, Sides) and limit.sides[0] in {"host", "kernels"}
    if not is_theirs or both < _HIDDEN * best or best >= _LITTLE:
        return []
    told = f"Without host and kernels together, {gains.most(both)}: either alone gains little"
    return [f"{told}, since the other takes its place."]


def _usual(parts: VerdictParts) -> list[str]:
    """Report what limits the shown step alone, if that is something else."""
    if parts["usual"] is None or not is_unusual(parts):
        return []
    sides, gain, _ = parts["usual"]
    what = " and ".join(_NOUNS[side] for side in sides) or "nothing by itself"
    held = f"{what} ({Gains(parts).most(gain)})" if sides else what
    unit = noun_of(parts["unit"])
    length = duration(parts["lengths_ns"][0])
    return [f"The {usual_of(parts)} {unit} ({length}) is limited by {held}."]
