"""Judge plans on simulated programs that are slow for two or three known reasons.

``python -m oracles.plans [NUMBER] [FIRST]`` from `tests` prints what was missed. The truth is that
of the program run again, with each combination of reasons mended.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import longpole

from .patterns import TOLERANCE, steps_ns
from .simulator.machine import Machine
from .simulator.patterns import several
from .simulator.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST = 0.02


class Judged(NamedTuple):
    """What a plan says of a program, and what mending it gained."""

    seed: int
    patterns: tuple[str, ...]
    lines: tuple[tuple[str, float, float, float | None], ...]
    """Remedy of each line, the bounds of what it saves then, and what it saved; None if the
    remedy mends nothing that was planted."""
    total: tuple[float, float, float] | None
    """The bounds of what all lines save, and what they saved; None without lines, or if one mends
    nothing that was planted."""
    behind: tuple[float, ...]
    """By how much each prefix saves less than the best one of its length."""

    @property
    def holds(self) -> bool:
        """Whether the total holds what all lines saved."""
        return self.total is None or _holds(*self.total)


def _holds(low: float, high: float, truth: float) -> bool:
    return low - TOLERANCE <= truth <= high + TOLERANCE


def judged(seed: int, folder: Path) -> Judged:
    """Run a program in all its forms, and read the plan of the slow one."""
    program = several(seed)
    slow = Run(_made(program, ()), Machine(seed=seed))
    path = folder / f"{seed}.json"
    slow.write(path)
    plan = longpole.read_trace(path).verdict().plan
    path.unlink()
    before_ns = steps_ns(slow)
    gains = {}
    mendable = [*program.forms]
    for number in range(len(mendable) + 1):
        for mended in combinations(mendable, number):
            form = program.program(mended)
            if form is not None:
                after_ns = steps_ns(Run(form, Machine(seed=seed)))
                gains[frozenset(mended)] = 1 - after_ns / before_ns
    lines, behind, mended = [], [], frozenset()
    is_planted = True
    for line in plan.lines:
        if line.then is None:
            continue
        own = {line.remedy, *line.parts}
        before, mended = gains.get(mended), mended | (own & {*mendable})
        after = gains.get(mended)
        is_own = own <= {*mendable} and None not in (before, after)
        is_planted = is_planted and is_own
        then = after - before if is_own else None
        lines.append((str(line.remedy), line.then.low, line.then.high, then))
        if is_planted:
            best = max(gain for some, gain in gains.items() if len(some) <= len(mended))
            behind.append(best - gains[mended])
    total = None
    if lines and is_planted:
        total = (plan.gain.low, plan.gain.high, gains[mended])
    return Judged(seed, program.patterns, tuple(lines), total, tuple(behind))


def _made(program: object, mended: tuple[str, ...]) -> object:
    found = program.program(mended)
    assert found is not None
    return found


def summary(rows: list[Judged]) -> Iterator[str]:
    """Yield what was missed, then the shares of what holds."""
    for row in rows:
        wrong = [line for line in row.lines if line[3] is not None and not _holds(*line[1:])]
        if wrong or not row.holds or max(row.behind, default=0.0) > TOLERANCE:
            lines = "; ".join(
                f"{name} {low:.3f}..{high:.3f} {'-' if truth is None else f'{truth:.3f}'}"
                for name, low, high, truth in row.lines
            )
            behind = " ".join(f"{it:.3f}" for it in row.behind)
            yield f"{row.seed} {'+'.join(row.patterns)}: {lines}; total {row.total}; {behind}"
    totals = [row.total for row in rows if row.total is not None]
    thens = [line[1:] for row in rows for line in row.lines if line[3] is not None]
    behind = [it for row in rows for it in row.behind]
    yield f"{len(rows)} programs, {len(totals)} with a total of planted reasons alone"
    yield f"total holds {_part(_holds(*it) for it in totals):.1%}"
    yield f"median width {median(high - low for low, high, _ in totals):.3f}"
    yield f"a line holds {_part(_holds(*it) for it in thens):.1%} of {len(thens)}"
    yield f"a prefix is near the best {_part(it <= TOLERANCE for it in behind):.1%}"


def _part(rows: object) -> float:
    found = list(rows)
    return sum(found) / max(len(found), 1)


if __name__ == "__main__":
    n_seeds, first = (int(text) for text in (*sys.argv[1:], "200", "0")[:2])
    with tempfile.TemporaryDirectory() as kept:
        found = [judged(first + seed, Path(kept)) for seed in range(n_seeds)]
    sys.stdout.write("\n".join(summary(found)) + "\n")
