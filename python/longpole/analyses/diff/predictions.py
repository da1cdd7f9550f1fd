"""What the verdict on the base predicted of the remedies that the new side applied.

A remedy counts as applied where the new side shows it: the time or the number of what the remedy
removes fell by more than half, and that of the kernels, which it halves, to about half.

A gain is that of removing all of the target. Where a part f of it was removed, the length of the
step is convex in what remains, so that the gain is at least f times that of all, and at most that
of all.

Limits: the measured change is that of the whole step. Whatever else differs is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.diff.values import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.analyses.diff.sides import Side
    from longpole.analyses.diff.values import Change, Counts
    from longpole.verdict import Verdict
    from longpole.verdict.findings import Remedy
    from longpole.verdict.parts import RemedyKind

__all__ = ["gain_interval", "predictions"]

# What falls to this share of the base was removed.
_REMOVED: Final = 0.5

# What is twice as fast takes about half of the time.
_HALVED: Final = (0.4, 0.6)

# Of a step, a target with less time is not worth a prediction.
_LEAST: Final = 0.02

# The remedies that are judged by the time of some kinds of work.
# Noise: a gain beyond what was promised, as a share of the step.
_BEYOND: Final = 0.05

# A remedy that promised a smaller share of the step promised nothing.
_LEAST_PROMISED: Final = 0.005

_KINDS: Final[dict[RemedyKind, tuple[str, ...]]] = {
    "data_loading": ("data_loading",),
    "copies": ("copy",),
    "communication": ("communication",),
    "host_work": ("operator", "runtime", "host_gap"),
    "kernels": ("kernel",),
}
_ALLOCATING: Final = ("allocate", "stream_ordered_allocate", "free")


def gain_interval(remedy: Remedy) -> tuple[float, float]:
    """Give the least and the greatest gain that a verdict promises of a remedy."""
    low, high = (getattr(remedy, name, remedy.gain) for name in ("gain_low", "gain_high"))
    return (float(low), float(high))


def predictions(
    verdict: Verdict,
    base: Side,
    changes: Sequence[Change],
    counts: Sequence[Counts],
    measured: float | None,
) -> tuple[Prediction, ...]:
    """List the remedies that the new side evidently applied, with what was predicted of each.

    Parameters
    ----------
    verdict
        That on the base.
    base
        Whose steps it is about.
    changes, counts
        What differs in a step.
    measured
        The gain of the mean step, as a share; None where it is not known.
    """
    if measured is None or verdict.status == "inconclusive":
        return ()
    applied = [
        (remedy, target)
        for remedy in verdict.remedies
        if remedy.name is None
        and (target := _target(remedy.remedy, base, changes, counts)) is not None
        and _is_applied(remedy.remedy, *target)
    ]
    # What removes all of the host's work removes its parts, too: these are not judged again.
    kinds = {remedy.remedy for remedy, _ in applied}
    if "host_work" in kinds:
        applied = [row for row in applied if row[0].remedy not in {"allocation", "blocking_calls"}]
    # Remedies that promised nothing, or together less than was gained, are not what was done.
    highs = [_predicted(remedy, *target)[1] for remedy, target in applied]
    applied = [row for row, high in zip(applied, highs, strict=True) if high >= _LEAST_PROMISED]
    if measured > sum(highs) + _BEYOND:
        applied = []
    is_alone = len(applied) == 1
    return tuple(
        Prediction(remedy.remedy, *target, *_predicted(remedy, *target), measured, is_alone)
        for remedy, target in applied
    )


def _predicted(remedy: Remedy, base: float, new: float) -> tuple[float, float]:
    """Give the gain of so much of a remedy as was applied."""
    low, high = gain_interval(remedy)
    part = 1 - new / base
    if remedy.remedy == "kernels":
        part /= 1 - sum(_HALVED) / 2
    return min(part, 1.0) * low, max(part, 1.0) * high


def _is_applied(remedy: RemedyKind, base: float, new: float) -> bool:
    if remedy == "kernels":
        return _HALVED[0] * base <= new <= _HALVED[1] * base
    return new <= _REMOVED * base


def _target(
    remedy: RemedyKind, base: Side, changes: Sequence[Change], counts: Sequence[Counts]
) -> tuple[float, float] | None:
    """Measure what a remedy removes on both sides; None where there is too little to judge."""
    if remedy == "blocking_calls":
        found = next((row for row in counts if row.what == "blocking_calls"), None)
        return (found.base, found.new) if found is not None and found.base >= 1 else None
    times = [(row.base_ns, row.new_ns) for row in _targets(remedy, base, changes)]
    base_ns, new_ns = (sum(side) for side in zip(*times, strict=True)) if times else (0.0, 0.0)
    return (base_ns, new_ns) if base_ns >= _LEAST * base.mean_ns else None


def _targets(remedy: RemedyKind, base: Side, changes: Sequence[Change]) -> Iterator[Change]:
    if remedy == "allocation":
        names = _names_of_allocations(base)
        yield from (row for row in changes if row.kind == "runtime" and names & {*row.base_names})
    else:
        kinds = _KINDS.get(remedy, ())
        yield from (row for row in changes if row.kind in kinds)


def _names_of_allocations(side: Side) -> set[str | None]:
    """Name the calls that allocate and free memory."""
    import polars as pl

    role = pl.col("role").cast(pl.String)
    calls = side.trace.api_roles.filter(role.is_in(_ALLOCATING))["event"]
    return set(side.events["name"].gather(calls).cast(pl.String).unique())
