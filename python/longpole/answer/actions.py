"""What to do: the plan in words, what takes most time, and what to record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.answer.advice import MOST_OPEN, mostly_stopped, narrowing
from longpole.answer.spent import spent_on, what_to_record
from longpole.remedies.limits import sides_of, status_of
from longpole.words.wording import duration, duration_range, listing

if TYPE_CHECKING:
    from longpole.answer.findings import Plan
    from longpole.remedies.catalogue import Gained
    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Gain, Saving
    from longpole.remedies.model import Found
    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.plan import Line

# Number of actions, if the plan has fewer lines.
_MOST: Final = 3

# If the best remedy saves less than this share of its side, the most expensive work is reported
# too.
_ENOUGH: Final = 0.4

# An interval narrower than this is shown as one number, which is then within a percent of its ends.
_ALIKE: Final = 0.01


def is_searched(parts: VerdictParts) -> bool:
    """Whether a verdict reports remedies: it is conclusive, and most of its window is recorded."""
    return status_of(parts["limit"]) in {"ok", "balanced"} and not mostly_stopped(parts)


def actions(plan: Plan, facts: Facts) -> list[str]:
    """Return the actions: the lines of the plan, then what takes most time, and what to record.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> trace.verdict().actions
    ('gemm takes 90 % of the time (1 kernel; longest: event 1).',)
    """
    if not is_searched(facts.parts):
        return []
    lines = [line.told for line in plan.lines]
    is_enough = is_explained(plan, facts)
    if not is_enough:
        lines += spent_on(facts)
    return [*lines, *what_to_record(facts, is_explained=is_enough)][: max(_MOST, len(plan.lines))]


def is_explained(plan: Plan, facts: Facts) -> bool:
    """Whether the plan saves most of what the limiting side takes."""
    saved = max((line.gain.value for line in plan.lines if line.gain), default=0.0)
    return saved >= _ENOUGH * _best(facts)


def _best(facts: Facts) -> float:
    """Return the gain of removing the limiting side."""
    gains, sides = facts.parts["gains"], sides_of(facts.parts["limit"])
    return max((gains[side].value for side in sides), default=1.0)


def planned_line(found: Found, saved: str, module: str | None = None) -> str:
    """Return a remedy as a line: what to change, what shows it, what it saves, where to look."""
    saved = "" if found.takes is not None else saved
    evidence = ": " + "; ".join(filter(None, [found.evidence, saved]))
    inside = f", in {module}" if module else ""
    where = f" (event {found.events[0]}{inside})" if found.events else ""
    return f"{found.advice}{evidence}{where}."


def saving(row: Gained) -> str:
    """Return the gain of a remedy alone as an interval from its certain to its possible gain."""
    if not row.remedy.is_computed:
        return "what it saves is not computed"
    also = f", including {listing(row.also)}" if row.also else ""
    low = 0.0 if row.remedy.is_upper_bound else row.gain.low
    return f"saves {between(low, row.gain.high)}{also}"


def saving_then(line: Line, *, is_first: bool) -> str:
    """Return what a line of the plan saves after those before it."""
    low = 0.0 if line.remedy.is_upper_bound else line.then.low
    return f"{'' if is_first else 'then '}saves {between(low, line.then.high)}"


def is_open(gain: Gain | Saving) -> bool:
    """Whether an interval is so wide that its upper bound is not told."""
    return gain.high - gain.low > MOST_OPEN and round(100 * gain.low) > 0


def narrowed(line: Line, parts: VerdictParts) -> str:
    """Return a sentence on what to record if it is open how much a line saves; or nothing."""
    known = [narrowing(parts, fact) for fact in (line.gain.high_by, line.gain.low_by)]
    why, advice = next(filter(None, known), ("", ""))
    is_told = is_open(line.then) and line.found.takes is None
    return f" How much more is open, as {why}. {advice}." if is_told and why else ""


def left_ns(gain: Gain, length_ns: int) -> tuple[int, int]:
    """Return the shortest and the longest time that a gain leaves of a length."""
    return max(round((1 - gain.high) * length_ns), 0), round((1 - gain.low) * length_ns)


def total(gain: Gain, length_ns: int, *, is_certain: bool, each: str = "") -> str:
    """Return what the lines of a plan save together, as lengths and shares."""
    clause = "" if is_certain else ", if each is possible"
    least_ns, most_ns = left_ns(gain, length_ns)
    left = f"{duration(most_ns)} or less" if is_open(gain) else duration_range(least_ns, most_ns)
    lengths = f"{duration(length_ns)} -> {left}"
    return f"Together: {lengths}{each} ({between(gain.low, gain.high)}){clause}."


def between(low: float, high: float) -> str:
    """Format a gain as an interval.

    Examples
    --------
    >>> between(0.251, 0.384), between(0.83, 0.832), between(0.001, 0.2), between(0, 0.001)
    ('25 to 38 %', '83 %', 'up to 20 %', 'less than 1 %')
    >>> between(0.074, 0.089)
    '7 to 9 %'

    Of a wider one, only what is certain.

    >>> between(0.34, 0.9)
    'at least 34 %'
    """
    least, most = round(100 * low), round(100 * high)
    if most <= 0:
        return "less than 1 %" if high > 0 else "nothing"
    if least <= 0:
        return f"up to {most} %"
    if high - low < _ALIKE or least == most:
        return f"{50 * (low + high):.0f} %"
    if high - low > MOST_OPEN:
        return f"at least {least} %"
    return f"{least} to {most} %"
