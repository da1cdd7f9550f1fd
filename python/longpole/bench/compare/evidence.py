"""What the samples of two sides say about the change between them, before any verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longpole.bench.compare import stats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.bench.records.samples import Runs

__all__ = ["Evidence", "weigh", "weigh_together"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Either the change, its interval and its p-value, or the obstacle that stands before them."""

    base: stats.Summary | None
    new: stats.Summary | None
    obstacle: str | None = None
    change: float | None = None
    interval: stats.Interval | None = None
    p_value: float | None = None
    warnings: tuple[str, ...] = ()


def weigh_together(
    pairs: Iterable[tuple[Runs, Runs]], *, confidence: float, seed: int
) -> list[Evidence]:
    """Weigh pairs of runs, with p-values that hold for all of them together."""
    evidence = [weigh(base, new, confidence=confidence, seed=seed) for base, new in pairs]
    raised = iter(stats.holm([found.p_value for found in evidence if found.p_value is not None]))
    return [
        found if found.p_value is None else replace(found, p_value=next(raised))
        for found in evidence
    ]


def weigh(base: Runs, new: Runs, *, confidence: float, seed: int) -> Evidence:
    """Weigh the runs of one key on two sides."""
    evidence = Evidence(
        base=_summary(base, confidence, seed),
        new=_summary(new, confidence, seed),
        obstacle=_obstacle(base, new, confidence),
    )
    evidence = replace(evidence, warnings=tuple(_doubts(base, new, evidence)))
    if evidence.base is None or evidence.new is None or evidence.obstacle:
        return evidence
    return replace(
        evidence,
        change=evidence.new.median_ns / evidence.base.median_ns - 1,
        interval=_interval(base, new, confidence, seed),
        p_value=stats.mann_whitney(base.samples_ns, new.samples_ns).p_value,
    )


def _summary(runs: Runs, confidence: float, seed: int) -> stats.Summary | None:
    if not runs.samples_ns:
        return None
    return stats.summarise(runs.samples_ns, confidence=confidence, seed=seed)


def _obstacle(base: Runs, new: Runs, confidence: float) -> str | None:
    """Say why two sides cannot be compared, if so."""
    for side, runs in (("base", base), ("new", new)):
        if not runs.samples_ns:
            return f"no run in {side} succeeded{_failures(runs)}"
    if base.conditions != new.conditions:
        ways = [", ".join(sorted(runs.conditions)) for runs in (base, new)]
        return f"measured in different ways: {ways[0]} in base, {ways[1]} in new"
    n_base, n_new = len(base.samples_ns), len(new.samples_ns)
    fewest = stats.fewest_samples(confidence)
    if min(n_base, n_new) < fewest:
        return (
            f"too few samples: {n_base} in base, {n_new} in new, {fewest} are needed on each side"
        )
    return None


def _interval(base: Runs, new: Runs, confidence: float, seed: int) -> stats.Interval:
    if base.samples_ns == new.samples_ns:
        return stats.Interval(0.0, 0.0)
    return stats.change_interval(base.samples_ns, new.samples_ns, confidence=confidence, seed=seed)


def _doubts(base: Runs, new: Runs, evidence: Evidence) -> Iterator[str]:
    """Say what the verdict should be doubted for."""
    sides = (("base", base, evidence.base), ("new", new, evidence.new))
    for side, runs, summary in sides:
        if summary is not None and (failures := _failures(runs)):
            yield f"{side}: left out{failures}"
    if base.samples_ns and base.samples_ns == new.samples_ns:
        yield "both sides hold the same samples"
        return
    for side, _, summary in sides:
        if summary is not None:
            yield from (f"{side}: {warning}" for warning in summary.warnings)


def _failures(runs: Runs) -> str:
    counts = ((runs.n_failed, "failed"), (runs.n_unusable, "without a usable duration"))
    words = [f"{count} {what}" for count, what in counts if count]
    return f" ({', '.join(words)})" if words else ""
