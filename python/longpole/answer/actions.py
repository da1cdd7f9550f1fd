"""What to do, in at most three lines: what to change, the gain, and where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.answer.advice import mostly_stopped
from longpole.answer.spent import spent_on, what_to_record
from longpole.remedies.gains import WORTH_SAYING
from longpole.remedies.limits import sides_of, status_of
from longpole.words.wording import listing

if TYPE_CHECKING:
    from longpole.answer.findings import Remedy
    from longpole.remedies.catalogue import Gained
    from longpole.remedies.facts import Facts
    from longpole.remedies.parts import VerdictParts

# Maximum number of remedies reported.
_MOST: Final = 3

# Minimum upper bound of a reported remedy.
_LEAST_BOUND: Final = 0.05

# A remedy that gains less than this share of its own gain after earlier ones is listed as following
# them.
_MUCH_LESS: Final = 0.6

# If the best remedy saves less than this share of its side, the most expensive work is reported
# too.
_ENOUGH: Final = 0.4

# An interval narrower than this is shown as one number.
_ALIKE: Final = 0.015


def is_searched(parts: VerdictParts) -> bool:
    """Whether a verdict reports remedies: it is conclusive, and most of its window is recorded."""
    return status_of(parts["limit"]) in {"ok", "balanced"} and not mostly_stopped(parts)


def named_of(rows: list[Gained], parts: VerdictParts) -> list[Gained]:
    """List the remedies to report: those with a sufficient certain gain, best first."""
    if not is_searched(parts):
        return []
    best = max(gain.value for gain in parts["gains"].values())
    worth = [row for row in rows if surely_saves(row)]
    certain = max((row.gain.low for row in worth if not row.remedy.is_upper_bound), default=0.0)
    computed = [row for row in worth if _may_be_named(row, best, certain)]
    return [*computed, *(row for row in rows if not row.remedy.is_computed)][:_MOST]


def surely_saves(row: Gained | Remedy) -> bool:
    """Whether a remedy surely saves enough, also after those listed before it."""
    return min(row.gain.low, row.then) >= WORTH_SAYING


def _may_be_named(row: Gained, best: float, certain: float) -> bool:
    """Whether an upper bound is large compared with the best side, or with every certain gain."""
    is_large = row.gain.value >= max(_LEAST_BOUND, min(_ENOUGH * best, certain))
    return is_large or not row.remedy.is_upper_bound


def actions(named: list[Gained], facts: Facts) -> list[str]:
    """Return the actions, best first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().actions
    ('gemm takes 90 % of the time (1 kernel; longest: event 1).',)
    """
    if not is_searched(facts.parts):
        return []
    lines = [_line(row) for row in named]
    is_enough = max((row.gain.low for row in named), default=0.0) >= _ENOUGH * _best(facts)
    if not is_enough:
        lines += spent_on(facts)
    return [*lines, *what_to_record(facts, is_explained=is_enough)][:_MOST]


def left_out_of(rows: list[Gained], named: list[Gained], facts: Facts) -> list[str]:
    """Return as lines the remedies with a sufficient gain that are not reported."""
    return [_line(row) for row in others_of(rows, named, facts)]


def others_of(rows: list[Gained], named: list[Gained], facts: Facts) -> list[Gained]:
    """Return the remedies with a sufficient gain that are not reported."""
    if not is_searched(facts.parts):
        return []
    return [row for row in rows if row not in named and surely_saves(row)]


def _best(facts: Facts) -> float:
    """Return the gain of removing the limiting side."""
    gains, sides = facts.parts["gains"], sides_of(facts.parts["limit"])
    return max((gains[side].value for side in sides), default=1.0)


def _line(row: Gained) -> str:
    evidence = f": {row.found.evidence}; " if row.found.evidence else ": "
    where = f" (event {row.found.events[0]})" if row.found.events else ""
    return f"{row.found.advice}{evidence}{saving(row)}{where}."


def saving(row: Gained) -> str:
    """Return the gain of a remedy as an interval from its certain to its possible gain.

    If the remedies listed before it take away most of the gain, this is the gain that remains after
    them.
    """
    if not row.remedy.is_computed:
        return "what it saves is not computed"
    alone = _interval(row, row.gain.low, row.gain.high)
    also = f", including {listing(row.also)}" if row.also else ""
    if not _is_little_then(row):
        return f"saves {alone}{also}"
    then = _interval(row, *told_interval(row))
    if then == alone:
        return f"saves {alone}{also}"
    return f"saves {then} once the other changes are made, or {alone} alone"


def _interval(row: Gained, low: float, high: float) -> str:
    """Format a gain as an interval, or as its upper bound if the change may not be possible."""
    return between(0.0 if row.remedy.is_upper_bound else low, high)


def told_interval(row: Gained) -> tuple[float, float]:
    """Return the lower and upper bound of a gain; of a remedy after others, the remaining gain."""
    if _is_little_then(row):
        return row.then, max(row.gain.high - row.gain.low + row.then, row.then)
    return row.gain.low, row.gain.high


def _is_little_then(row: Gained) -> bool:
    """Whether the remedies listed before it take away most of its gain."""
    return row.then < _MUCH_LESS * row.gain.low


def between(low: float, high: float) -> str:
    """Format a gain as an interval.

    Examples
    --------
    >>> between(0.251, 0.384), between(0.83, 0.832), between(0.001, 0.2), between(0, 0.001)
    ('25 to 38 %', '83 %', 'up to 20 %', 'less than 1 %')
    """
    least, most = round(100 * low), round(100 * high)
    if most <= 0:
        return "less than 1 %" if high > 0 else "nothing"
    if least <= 0:
        return f"up to {most} %"
    if high - low < _ALIKE or least == most:
        return f"{50 * (low + high):.0f} %"
    return f"{least} to {most} %"
