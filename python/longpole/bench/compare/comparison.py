"""Two measurements of the same keys: faster, slower, the same, or not to be told.

A verdict needs two things. The difference must be certain: the rank test says so for all keys
together, and the interval of the change leaves out zero. And it must matter: the gate says how
large a change may be before anybody should care. Then

* `same`: the interval lies within the gate on both sides;
* `slower`, `faster`: the change is certain, and it may be as large as the gate;
* `inconclusive`: all else, too few samples first of all.

So a key passes when it was shown to be no slower than the gate allows, not when nothing was
shown. What no verdict can tell is said in `docs/comparing.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from longpole.bench.records.baselines import find_measurements
from longpole.bench.records.samples import Runs, gather

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.bench.compare.evidence import Evidence
    from longpole.bench.compare.stats import Interval, Summary
    from longpole.bench.records.samples import Measurements, Source

__all__ = ["Comparison", "Difference", "Verdict", "compare"]


class Verdict(StrEnum):
    """What is said of a key, and of all keys together."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one key.

    Parameters
    ----------
    key
        Of both measurements.
    verdict
        Faster, slower, same or inconclusive.
    reason
        Why, in a sentence.
    base, new
        What the samples of either side say; None where there is none.
    change
        Of the median, relative to the base: 0.05 is 5 % slower.
    interval
        Where the change lies.
    p_value
        Of the rank test, raised for the number of keys.
    warnings
        What makes the verdict doubtful.
    """

    key: str
    verdict: Verdict
    reason: str
    base: Summary | None = None
    new: Summary | None = None
    change: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """All keys of two measurements, those of the base first and in its order."""

    differences: tuple[Difference, ...]
    gate: float
    confidence: float
    warnings: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of all: slower, then inconclusive, then faster, then same."""
        found = {difference.verdict for difference in self.differences}
        for verdict in (Verdict.SLOWER, Verdict.INCONCLUSIVE, Verdict.FASTER, Verdict.SAME):
            if verdict in found:
                return verdict
        return Verdict.INCONCLUSIVE


def compare(
    base: Source, new: Source, gate: float = 0.03, *, confidence: float = 0.95, seed: int = 0
) -> Comparison:
    """Say of each key whether it became faster or slower, and how surely.

    Parameters
    ----------
    base, new
        Each a file of records, the name of a baseline, records, or samples by key.
    gate
        The smallest relative change that matters.
    confidence
        Of the intervals, and of all verdicts `slower` and `faster` together.
    seed
        Of the draws behind the intervals: the same samples always give the same answer.

    Raises
    ------
    FileNotFoundError
        There is neither a file nor a baseline of a name.
    ResultsError
        A file holds no record of a measurement.

    Examples
    --------
    >>> base = {"gemm": [100, 101, 99, 100, 102, 100, 101, 99]}
    >>> new = {"gemm": [110, 111, 109, 110, 112, 110, 111, 109]}
    >>> compare(base, new).differences[0].verdict
    <Verdict.SLOWER: 'slower'>
    >>> compare(base, base).verdict
    <Verdict.SAME: 'same'>
    """
    if not (gate >= 0 and 0 < confidence < 1):
        message = "a gate is not negative, and a confidence lies between 0 and 1"
        raise ValueError(message)
    from longpole.bench.compare.evidence import weigh_together

    base_side, new_side = gather(_located(base)), gather(_located(new))
    pairs = [(runs, new_side.runs.get(key, Runs())) for key, runs in base_side.runs.items()]
    evidence = weigh_together(pairs, confidence=confidence, seed=seed)
    return Comparison(
        differences=tuple(
            _difference(key, found, gate, confidence)
            for key, found in zip(base_side.runs, evidence, strict=True)
        ),
        gate=gate,
        confidence=confidence,
        warnings=tuple(_warnings(base_side, new_side)),
    )


def _located(source: Source) -> Source:
    return find_measurements(source) if isinstance(source, str) else source


def _difference(key: str, evidence: Evidence, gate: float, confidence: float) -> Difference:
    verdict, reason = _judge(evidence, gate, confidence)
    return Difference(
        key=key,
        verdict=verdict,
        reason=reason,
        base=evidence.base,
        new=evidence.new,
        change=evidence.change,
        interval=evidence.interval,
        p_value=evidence.p_value,
        warnings=evidence.warnings,
    )


def _judge(evidence: Evidence, gate: float, confidence: float) -> tuple[Verdict, str]:
    if evidence.interval is None or evidence.p_value is None:
        return Verdict.INCONCLUSIVE, evidence.obstacle or ""
    low, high = evidence.interval
    if -gate <= low and high <= gate:
        return Verdict.SAME, "any change is smaller than the gate"
    certain = evidence.p_value < 1 - confidence
    if certain and low > 0:
        return Verdict.SLOWER, f"slower for certain, {_extent(low, gate)}"
    if certain and high < 0:
        return Verdict.FASTER, f"faster for certain, {_extent(-high, gate)}"
    return Verdict.INCONCLUSIVE, "too noisy to rule a change in or out: more samples would tell"


def _extent(least: float, gate: float) -> str:
    return "and by more than the gate" if least > gate else "perhaps by more than the gate"


def _warnings(base: Measurements, new: Measurements) -> Iterator[str]:
    """Say what is true of the comparison as a whole."""
    added = [key for key in new.runs if key not in base.runs]
    if added:
        yield f"only in new, so not compared: {', '.join(added)}"
    for name in sorted(base.environment.keys() & new.environment.keys()):
        before, after = base.environment[name], new.environment[name]
        if before.isdisjoint(after):
            yield f"{name} differs: {_listed(before)} in base, {_listed(after)} in new"
    for side, measurements in (("base", base), ("new", new)):
        if measurements.n_skipped_lines:
            yield f"{side}: lines that are no records: {measurements.n_skipped_lines}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
