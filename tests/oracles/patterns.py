"""Judge the remedies on simulated programs that are slow for one known reason.

``python -m oracles.patterns [NUMBER] [FIRST]`` from `tests` prints what was missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import longpole

from .simulator.machine import Machine
from .simulator.patterns import pair
from .simulator.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLERANCE = 0.03
_WORTH = 0.05


class Judged(NamedTuple):
    """What was said of a slow program, and what mending it gained."""

    seed: int
    pattern: str
    named: tuple[tuple[str, float, float], ...]
    gain: float
    still_named: bool
    """Whether the remedy is named on the mended program, too, for a gain worth mending."""

    @property
    def is_worth(self) -> bool:
        """Whether mending gains enough to be advised."""
        return self.gain >= _WORTH

    @property
    def is_first(self) -> bool:
        """Whether the remedy of the pattern is named first."""
        return bool(self.named) and self.named[0][0] == self.pattern

    @property
    def holds(self) -> bool:
        """Whether the interval of the remedy holds the gain; False if it is not named."""
        return any(
            name == self.pattern and low - TOLERANCE <= self.gain <= high + TOLERANCE
            for name, low, high in self.named
        )


def judged(seed: int, folder: Path) -> Judged:
    """Run both forms of a program, and read what the trace of the slow one advises."""
    programs = pair(seed)
    runs = [Run(program, Machine(seed=seed)) for program in (programs.slow, programs.mended)]
    verdicts = []
    for number, run in enumerate(runs):
        path = folder / f"{seed}.{number}.json"
        run.write(path)
        verdicts.append(longpole.read_trace(path).verdict())
        path.unlink()
    named, still = (
        tuple((row.remedy, row.gain.low, row.gain.high) for row in verdict.remedies if row.named)
        for verdict in verdicts
    )
    before_ns, after_ns = (steps_ns(run) for run in runs)
    is_still_named = any(name == programs.pattern and high >= _WORTH for name, _, high in still)
    return Judged(seed, programs.pattern, named, 1 - after_ns / before_ns, is_still_named)


def steps_ns(run: Run) -> int:
    """Return the time from the end of the first step to that of the last."""
    windows = [window for window in run.truth.windows if window.name.startswith("step ")]
    ends = [window.end_ns for window in windows if not window.name.endswith("period")]
    return max(ends) - min(ends)


def _summary(rows: list[Judged]) -> Iterator[str]:
    worth = [row for row in rows if row.is_worth]
    for row in worth:
        if not (row.is_first and row.holds) or row.still_named:
            text = ", ".join(f"{name} {low:.3f}..{high:.3f}" for name, low, high in row.named)
            still = " still named" if row.still_named else ""
            yield f"{row.seed} {row.pattern} {row.gain:.3f}: {text}{still}"
    n_first, n_hold = sum(row.is_first for row in worth), sum(row.holds for row in worth)
    yield f"{len(rows)} programs, {len(worth)} worth mending"
    yield f"named first {n_first / len(worth):.1%}, interval holds {n_hold / len(worth):.1%}"


if __name__ == "__main__":
    n_seeds, first = (int(text) for text in (*sys.argv[1:], "500", "0")[:2])
    with tempfile.TemporaryDirectory() as kept:
        found = [judged(first + seed, Path(kept)) for seed in range(n_seeds)]
    sys.stdout.write("\n".join(_summary(found)) + "\n")
