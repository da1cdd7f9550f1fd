"""The finals: finalists run in turns, and are compared by runs like any two sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from longpole.bench.comparison.compare import compare
from longpole.bench.comparison.differences import LOOKS, Verdict
from longpole.bench.tune.space import label_of
from longpole.rows.statistics import Interval
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench.comparison.differences import Difference
    from longpole.bench.tune.space import Point


class Turns(Protocol):
    """Makes a run in which all points take turns; returns the costs of each, None for a failure."""

    def __call__(self, points: Sequence[Point], number: int) -> list[list[float] | None]:
        """Make a run."""
        ...


@dataclass(frozen=True, slots=True)
class Finalist(Data):
    """A candidate that was measured in turns with the others."""

    label: str
    point: Mapping[str, Any]
    value: float
    """Median over its runs."""
    n_runs: int
    is_tied: bool
    """Whether it is indistinguishable from the winner, or worse by at most the gate; True for the
    winner."""
    worse_by: float | None = None
    """How much worse it is than the winner, as a fraction of the latter; None for the winner."""
    worse_interval: Interval | None = None
    """Confidence interval of `worse_by`; None with too few runs."""
    is_baseline: bool = False


@dataclass(slots=True)
class Finals:
    """Runs of the finalists so far: costs by label, a list of turns per run."""

    points: list[Point]
    gate: float
    confidence: float
    looks: Sequence[int]
    runs: dict[str, list[list[float]]] = field(default_factory=dict)

    @property
    def leader(self) -> str:
        """Return the finalist with the smallest median."""
        return min(self.runs, key=lambda label: (self.cost(label), label))

    def cost(self, label: str) -> float:
        """Return the median cost of a finalist over its runs."""
        return median(median(run) for run in self.runs[label])

    def differences(self) -> dict[str, Difference]:
        """Compare the winner with each of the others.

        The confidence is divided among the comparisons: whichever finalist is truly the best, the
        probability that it is called worse than any other stays within the limit, although the
        winner is chosen from the same runs.
        """
        if not self.runs:
            return {}
        winner = self.leader
        others = [label for label in self.runs if label != winner]
        return {
            label: compare(
                self._rows(winner),
                self._rows(label),
                self.gate,
                confidence=1 - (1 - self.confidence) / len(others),
                base_key=winner,
                new_key=label,
            ).differences[0]
            for label in others
        }

    def undecided(self) -> set[str]:
        """Return the finalists neither distinguished from the winner nor known to be as good."""
        return {
            label
            for label, difference in self.differences().items()
            if difference.verdict is Verdict.INCONCLUSIVE
        }

    def _rows(self, label: str) -> list[dict[str, Any]]:
        """Return the runs of a finalist as the records that a comparison needs."""
        return [
            {
                "key": label,
                "outcome": "ok",
                "run": str(number),
                "pair": str(number),
                "samples_ns": costs,
                "sampling": {"looks": list(self.looks)},
            }
            for number, costs in enumerate(self.runs[label])
        ]


def hold_finals(points: Sequence[Point], turns: Turns, gate: float, confidence: float) -> Finals:
    """Measure points in turns until the best is distinguished or after the last look.

    A point that fails is dropped, and so is one that is decided at a look.
    """
    finals = Finals(list(points), gate, confidence, _looks(len(points)))
    alive = list(points)
    n_made = 0
    for look in finals.looks:
        for number in range(n_made, look):
            found = turns(alive, number)
            failed = [each for each, costs in zip(alive, found, strict=True) if costs is None]
            for point, costs in zip(alive, found, strict=True):
                if costs is not None:
                    finals.runs.setdefault(label_of(point), []).append(costs)
            for point in failed:
                finals.runs.pop(label_of(point), None)
            alive = [point for point in alive if point not in failed]
        n_made = look
        undecided = finals.undecided()
        if not undecided:
            break
        alive = [point for point in alive if label_of(point) in {finals.leader, *undecided}]
    return finals


def _looks(n_points: int) -> tuple[int, ...]:
    """Return the planned looks: the first comes one run later for each doubling of the points."""
    first = LOOKS[0] + max(0, n_points - 2).bit_length()
    return tuple(sorted({first, *LOOKS[1:]}))


def finalists_of(
    finals: Finals, value_of: Callable[[float], float], baseline: str
) -> list[Finalist]:
    """Compare each finalist with the winner, best first."""
    if not finals.runs:
        return []
    winner, differences = finals.leader, finals.differences()
    by_label = {label_of(point): point for point in finals.points}
    ranked = sorted(finals.runs, key=lambda label: (label != winner, finals.cost(label), label))
    return [
        Finalist(
            label=label,
            point=dict(by_label[label]),
            value=value_of(finals.cost(label)),
            n_runs=len(finals.runs[label]),
            is_tied=label == winner or differences[label].verdict is not Verdict.SLOWER,
            worse_by=None if label == winner else differences[label].change,
            worse_interval=None if label == winner else differences[label].interval,
            is_baseline=label == baseline,
        )
        for label in ranked
    ]
