"""The evidence about a change from the runs of both sides, before any verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

from longpole.bench.comparison.differences import Side, level_at
from longpole.bench.records.record import HIGH_PRESSURE
from longpole.rows.statistics import Interval, rounded_ns
from longpole.rows.statistics.ranks import (
    median_limits,
    robust_spread,
    shift_limits,
    shift_p_value,
    sign_p_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench.records.samples import Runs

FEWEST_PAIRS: Final = 6
FEWEST_SEPARATE: Final = 4

# If one side is ahead by this many runs, it was measured separately.
_MOST_AHEAD: Final = 2

_TURNS_A_BLOCK: Final = 10
_MOST_DISTURBED: Final = 0.25
_MOST_DROPPED_MORE: Final = 0.10
_MOST_CLOCK_APART: Final = 0.01
_MOST_MEDIANS_APART: Final = 0.05
"""Largest difference (log) between the change in turns and that of the medians with no warning."""

# Smallest change detected in 80 of 100 comparisons, in units of the runs' spread: normal noise,
# with the efficiency of the median and of rank sums.
_FOUND_IN_TURNS: Final = 3.8
_FOUND_SEPARATE: Final = 3.1


@dataclass(frozen=True, slots=True)
class Evidence:
    """Logarithms of new divided by base, or the obstacle to a comparison.

    Parameters
    ----------
    is_strict
        Whether the sides were measured separately: then only a change entirely beyond the gate is
        reported.
    numbers
        One per pair of runs if they were taken in turns.
    level
        Significance level of this look.
    p_value
        Probability of such numbers if there were no change, or none beyond the gate.
    """

    base: Side | None
    new: Side | None
    design: Literal["in turns", "separate"] = "separate"
    is_strict: bool = True
    n_runs: int = 0
    obstacle: str | None = None
    estimate: float | None = None
    limits: Interval | None = None
    level: float = 0.05
    spread: float | None = None
    p_value: float | None = None
    warnings: tuple[str, ...] = ()

    def smallest_change(self) -> float | None:
        """Return the change that would be detected in 80 of 100 such comparisons."""
        if self.spread is None or not self.n_runs:
            return None
        if self.design == "in turns":
            return math.expm1(_FOUND_IN_TURNS * self.spread / math.sqrt(self.n_runs))
        return math.expm1(_FOUND_SEPARATE * self.spread * math.sqrt(2 / self.n_runs))

    def runs_for(self, change: float) -> int | None:
        """Return the number of runs per side that detects a change in 80 of 100 comparisons."""
        if self.spread is None or change <= 0:
            return None
        effect = math.log1p(change)
        if self.design == "in turns":
            return math.ceil((_FOUND_IN_TURNS * self.spread / effect) ** 2)
        return math.ceil(2 * (_FOUND_SEPARATE * self.spread / effect) ** 2)


def weigh(
    base: Runs, new: Runs, *, gate: float, level: float, environments_agree: bool
) -> Evidence:
    """Evaluate the runs of one key on both sides."""
    sides = side_of(base), side_of(new)
    if obstacle := _obstacle(base, new):
        return Evidence(*sides, obstacle=obstacle, warnings=tuple(_warnings(base, new)))
    pairs = [name for name in base.turns if name in new.turns]
    if pairs:
        return _weigh_turns(base, new, pairs, sides, level)
    return _weigh_separate(base, new, sides, gate, level, environments_agree=environments_agree)


def _weigh_turns(
    base: Runs,
    new: Runs,
    pairs: Sequence[str],
    sides: tuple[Side | None, Side | None],
    level: float,
) -> Evidence:
    changes = [_log_changes(base.turns[pair], new.turns[pair]) for pair in pairs]
    numbers = [median(each) for each in changes]
    own_level = level_at(len(numbers), base.plans | new.plans, level)
    estimate, limits = median_limits(numbers, own_level)
    few = _too_few(len(numbers), len(numbers), FEWEST_PAIRS, "pairs of runs", own_level, limits)
    if len(numbers) == 1:
        few = _one_run(changes[0], level)
    return Evidence(
        *sides,
        design="in turns",
        is_strict=False,
        n_runs=len(numbers),
        obstacle=few,
        estimate=estimate,
        limits=None if few else _widened(limits, base, new),
        level=own_level,
        spread=robust_spread(numbers) if len(numbers) > 1 else None,
        p_value=sign_p_value(numbers),
        warnings=(*_warnings(base, new, n_pairs=len(pairs)), *_moved_medians(sides, estimate)),
    )


def _moved_medians(sides: tuple[Side | None, Side | None], estimate: float) -> Iterator[str]:
    """Warn if the medians of the sides and the samples taken in turns show different changes."""
    base, new = sides
    if base is None or new is None:
        return
    apart = math.log(new.median_ns / base.median_ns)
    if abs(apart - estimate) > _MOST_MEDIANS_APART:
        yield (
            f"the medians differ by {100 * math.expm1(apart):+.1f} %, as they do if the speed of "
            "the machine changes during the runs; the change compares calls next to each other"
        )


def _weigh_separate(
    base: Runs,
    new: Runs,
    sides: tuple[Side | None, Side | None],
    gate: float,
    level: float,
    *,
    environments_agree: bool,
) -> Evidence:
    warnings, crowd = list(_warnings(base, new)), _crowded(base, new)
    by_session = _by_session(base, new)
    if by_session is not None:
        base, new = by_session
        counts = f"{len(base.log_times)} and {len(new.log_times)}"
        warnings.append(f"measured in {counts} sessions: each counts as one run")
    n_base, n_new = len(base.log_times), len(new.log_times)
    n_runs = min(n_base, n_new)
    own_level = level if by_session else level_at(n_runs, base.plans | new.plans, level)
    estimate, limits = shift_limits(base.log_times, new.log_times, own_level)
    is_strict = not (environments_agree and _interleaved(base, new))
    few = _too_few(n_base, n_new, FEWEST_SEPARATE, "runs", own_level, limits)
    if is_strict:
        few = few or crowd
    return Evidence(
        *sides,
        is_strict=is_strict,
        n_runs=n_runs,
        obstacle=few,
        estimate=estimate,
        limits=None if few else _widened(limits, base, new),
        level=own_level,
        spread=_common_spread(base, new),
        p_value=_shift_p_value(base, new, estimate, gate if is_strict else 0.0),
        warnings=tuple(warnings),
    )


def _common_spread(base: Runs, new: Runs) -> float | None:
    """Return the root mean square of the spreads of both sides."""
    spreads = [robust_spread(each.log_times) for each in (base, new) if len(each.log_times) > 1]
    return math.sqrt(sum(each**2 for each in spreads) / len(spreads)) if spreads else None


def _by_session(base: Runs, new: Runs) -> tuple[Runs, Runs] | None:
    """Return one number per session if both sides have enough sessions."""
    found = base.sessions(), new.sessions()
    return found if min(len(each.log_times) for each in found) >= FEWEST_SEPARATE else None


def _shift_p_value(base: Runs, new: Runs, estimate: float, gate: float) -> float:
    """Return the probability of a change beyond the gate in the direction of the estimate."""
    if estimate < 0 and gate >= 1:
        return 1.0
    moved = math.log1p(gate if estimate >= 0 else -gate)
    return shift_p_value([each + moved for each in base.log_times], new.log_times)


def _log_changes(base: Sequence[float], new: Sequence[float]) -> list[float]:
    return [math.log(after / before) for before, after in zip(base, new, strict=False)]


def side_of(runs: Runs) -> Side | None:
    """Summarise the runs of one side; None without any."""
    times = runs.log_times
    if not times:
        return None
    return Side(
        n_runs=len(times),
        n_samples=runs.n_samples,
        median_ns=rounded_ns(math.exp(median(times))),
        spread=math.expm1(robust_spread(times)) if len(times) > 1 else None,
        n_failed=runs.n_failed,
        n_unusable=runs.n_unusable,
        n_dropped=runs.n_dropped,
        n_disturbed=runs.n_disturbed,
    )


def _obstacle(base: Runs, new: Runs) -> str | None:
    """Return why two sides cannot be compared at all, or None if they can."""
    for name, runs in (("base", base), ("new", new)):
        if not runs.log_times:
            return f"no run in {name} succeeded{_failures(runs)}"
        if runs.n_disturbed > _MOST_DISTURBED * len(runs.log_times):
            n_runs = len(runs.log_times)
            return f"{runs.n_disturbed} of {n_runs} runs in {name} were disturbed"
    if base.conditions != new.conditions:
        ways = [", ".join(sorted(runs.conditions)) for runs in (base, new)]
        return f"measured in different ways: {ways[0]} in base, {ways[1]} in new"
    return _uneven_conditions(base, new)


def _uneven_conditions(base: Runs, new: Runs) -> str | None:
    """Return a reason to abstain if a side lost more samples, or ran at another clock.

    A kernel that draws more power causes throttling itself; dropping these samples would hide its
    cost.
    """
    shares = [runs.n_dropped / (runs.n_samples + runs.n_dropped) for runs in (base, new)]
    if abs(shares[0] - shares[1]) > _MOST_DROPPED_MORE:
        words = [f"{share:.0%}" for share in shares]
        return f"throttled unevenly: {words[0]} of the samples dropped in base, {words[1]} in new"
    if base.clocks_mhz and new.clocks_mhz:
        clocks = [median(runs.clocks_mhz) for runs in (base, new)]
        if abs(clocks[1] / clocks[0] - 1) > _MOST_CLOCK_APART:
            times = [median(runs.log_times) for runs in (base, new)]
            cycles = math.expm1(times[1] - times[0] + math.log(clocks[1] / clocks[0]))
            return (
                f"the device ran at {clocks[0]:.0f} MHz in base and {clocks[1]:.0f} MHz in new; "
                f"in cycles the change is {100 * cycles:+.1f} %"
            )
    return None


def _crowded(base: Runs, new: Runs) -> str | None:
    """Return a reason to abstain if other programs used the CPUs while one side was measured.

    Sides measured in turns or alternating are affected alike; separate ones are not.
    """
    for name, runs in (("base", base), ("new", new)):
        n_crowded = sum(each > HIGH_PRESSURE for each in runs.cpu_pressures)
        if n_crowded > _MOST_DISTURBED * len(runs.log_times):
            return (
                f"in {n_crowded} of {len(runs.log_times)} runs in {name} programs waited for the "
                f"processors for more than {HIGH_PRESSURE:.0%} of the time, and the sides were "
                "measured apart: measure them in turns"
            )
    return None


def _too_few(  # noqa: PLR0917 - two sides, and the level of each question
    n_base: int, n_new: int, fewest: int, what: str, level: float, limits: Interval | None
) -> str | None:
    if n_base == n_new == 1:
        return "one run of each side does not show how much runs differ: use --runs 7"
    if min(n_base, n_new) < fewest:
        return f"too few {what}: {n_base} in base, {n_new} in new, {fewest} are needed"
    if limits is None:
        return f"too few {what} for a level of {level:.2%}: {n_base} in base, {n_new} in new"
    return None


def _one_run(changes: Sequence[float], level: float) -> str:
    """Describe what a single process shows."""
    blocks = [
        median(changes[start : start + _TURNS_A_BLOCK])
        for start in range(0, len(changes) - _TURNS_A_BLOCK + 1, _TURNS_A_BLOCK)
    ]
    said = "one run of each side does not show how much runs differ: use --runs 7"
    limits = median_limits(blocks, level)[1] if blocks else None
    if limits is None:
        return said
    low, high = (f"{100 * math.expm1(end):+.1f} %" for end in limits)
    return f"{said} (within this run, {low} to {high})"


def _interleaved(base: Runs, new: Runs) -> bool:
    """Whether the runs of both sides alternated, by their start times."""
    begins = [(at, 1) for at in base.begins_s] + [(at, -1) for at in new.begins_s]
    if any(math.isnan(at) for at, _ in begins):
        return False
    ahead = 0
    for _, step in sorted(begins):
        ahead += step
        if abs(ahead) > _MOST_AHEAD:
            return False
    return True


def _widened(limits: Interval | None, base: Runs, new: Runs) -> Interval | None:
    """Widen the limits by the clock resolution, since equal ticks are not equal times."""
    if limits is None:
        return None
    steps = [
        runs.step_ns / math.exp(median(runs.log_times))
        for runs in (base, new)
        if math.isfinite(runs.step_ns)
    ]
    step = max(steps, default=0.0)
    return Interval(limits.low - step, limits.high + step)


def _warnings(base: Runs, new: Runs, n_pairs: int | None = None) -> Iterator[str]:
    """Yield the warnings about the verdict."""
    for name, runs in (("base", base), ("new", new)):
        if runs.log_times and (failures := _failures(runs)):
            yield f"{name}: left out{failures}"
        if runs.n_dropped:
            yield f"{name}: {runs.n_dropped} samples dropped because of conditions"
        if runs.n_repeated:
            yield f"{name}: {runs.n_repeated} disturbed runs repeated"
        if n_pairs is not None and n_pairs < len(runs.log_times):
            yield f"{name}: {len(runs.log_times) - n_pairs} runs without a partner left out"


def _failures(runs: Runs) -> str:
    counts = ((runs.n_failed, "failed"), (runs.n_unusable, "without a usable duration"))
    words = [f"{count} {what}" for count, what in counts if count]
    return f" ({', '.join(words)})" if words else ""
