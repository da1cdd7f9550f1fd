"""Compare two measurements of the same keys: faster, slower, the same, or inconclusive.

A run, one process, is the unit: its samples yield one number, and only the spread of these numbers
between runs determines the certainty of a change. They yield an interval of the change by exact
ranks; the verdict follows from the interval and the gate, the smallest change that matters:

* `same`: the interval lies within the gate on both sides;
* `slower`, `faster`: it excludes zero or, if the sides were measured one after the other, lies
entirely beyond the gate; for all keys together (Holm);
* `inconclusive`: all else, in particular too few runs.

So a key passes if it was shown to be no slower than the gate allows, not if nothing was shown.
`docs/comparing.md` lists what no verdict can show.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from longpole.bench.comparison.differences import Comparison, Difference, Verdict
from longpole.bench.records.baselines import find_measurements
from longpole.bench.records.samples import Runs, gather
from longpole.rows.statistics import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.bench.comparison.evidence import Evidence
    from longpole.bench.records.record import Record
    from longpole.bench.records.samples import Measurements, Source


@runtime_checkable
class Timed(Protocol):
    """What `measure` returns: one run of one key."""

    key: str

    def record(self) -> Record:
        """Return the record of the run."""
        ...


def compare(
    base: Source | Timed | Iterable[Timed],
    new: Source | Timed | Iterable[Timed],
    gate: float = 0.03,
    *,
    confidence: float = 0.95,
    base_key: str | None = None,
    new_key: str | None = None,
) -> Comparison:
    """Determine for each key whether it became faster or slower, and how certain that is.

    Parameters
    ----------
    base, new
        For each side a file of records, the name of a baseline, records, a `Timing` or several, or
        times by key, one per run. Both may be the same file, with `base_key` and `new_key`. The
        keys of two `Timing`s may differ.
    gate
        The smallest relative change that matters.
    confidence
        Confidence of all verdicts together, over all planned looks.
    base_key, new_key
        Compare these keys instead of keys with the same name. A name followed by points of axes
        (`kernels:old n=64`) stands for all of its points.

    Raises
    ------
    FileNotFoundError
        A name is neither a file nor a baseline.
    ResultsError
        A file contains no measurement.

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
        message = "the gate must not be negative, and the confidence must lie between 0 and 1"
        raise ValueError(message)
    base_side = gather(_located(base))
    new_side = base_side if new is base else gather(_located(new))
    if isinstance(base, Timed) and isinstance(new, Timed) and base_key is new_key is None:
        base_key, new_key = base.key, new.key
    named = base_key is not None or new_key is not None
    pairs = _pairs(base_side, new_side, base_key, new_key) if named else None
    return _compare(base_side, new_side, pairs, gate, 1 - confidence)


def _compare(
    base: Measurements,
    new: Measurements,
    pairs: list[tuple[str, str]] | None,
    gate: float,
    level: float,
) -> Comparison:
    from longpole.bench.comparison.evidence import weigh

    agree = not any(True for _ in _environment_changes(base, new))
    found = [
        (
            (key, new_key),
            weigh(
                base.runs.get(key, Runs()),
                new.runs.get(new_key, Runs()),
                gate=gate,
                level=level,
                environments_agree=agree,
            ),
        )
        for key, new_key in pairs or [(key, key) for key in base.runs]
    ]
    return Comparison(
        differences=tuple(_differences(found, gate)),
        gate=gate,
        confidence=1 - level,
        warnings=tuple(_warnings(base, new, only_common=pairs is None)),
    )


def _pairs(
    base: Measurements, new: Measurements, base_key: str | None, new_key: str | None
) -> list[tuple[str, str]]:
    """Pair the points of one key with those of another."""
    old_name, new_name = base_key or new_key or "", new_key or base_key or ""
    old_points, new_points = _points_of(base, old_name), _points_of(new, new_name)
    points = [point for point in old_points if point in new_points] or [""]
    return [(old_name + point, new_name + point) for point in points]


def _points_of(measurements: Measurements, name: str) -> list[str]:
    return [
        key.removeprefix(name)
        for key in measurements.runs
        if key == name or key.startswith(f"{name} ")
    ]


def _located(source: Source | Timed | Iterable[Timed]) -> Source:
    if isinstance(source, str):
        return find_measurements(source)
    if isinstance(source, Timed):
        return [source.record().to_dict()]
    if isinstance(source, list | tuple) and any(isinstance(each, Timed) for each in source):
        return [each.record().to_dict() for each in source]
    return source  # type: ignore[return-value]


def _differences(
    found: list[tuple[tuple[str, str], Evidence]], gate: float
) -> Iterator[Difference]:
    """Judge each key; a change has to be significant for all keys together."""
    from longpole.rows.statistics.samples import holm

    p_values = [evidence.p_value if evidence.limits is not None else None for _, evidence in found]
    raised = iter(holm([each for each in p_values if each is not None]))
    for (keys, evidence), p_value in zip(found, p_values, strict=True):
        yield _difference(keys, evidence, gate, None if p_value is None else next(raised))


def _difference(
    keys: tuple[str, str], evidence: Evidence, gate: float, p_value: float | None
) -> Difference:
    key, new_key = keys
    verdict, reason = _judge(evidence, gate, p_value)
    limits = evidence.limits
    return Difference(
        key=key,
        verdict=verdict,
        reason=reason,
        base=evidence.base,
        new=evidence.new,
        change=None if evidence.estimate is None else math.expm1(evidence.estimate),
        interval=None if limits is None else Interval(*map(math.expm1, limits)),
        p_value=p_value,
        n_runs=evidence.n_runs,
        design=evidence.design,
        is_interleaved=not evidence.is_strict,
        smallest_change=evidence.smallest_change(),
        runs_needed=evidence.runs_for(gate),
        warnings=evidence.warnings,
        new_key=new_key if new_key != key else None,
    )


def _judge(evidence: Evidence, gate: float, p_value: float | None) -> tuple[Verdict, str]:
    if evidence.limits is None or p_value is None:
        return Verdict.INCONCLUSIVE, evidence.obstacle or ""
    low, high = evidence.limits
    up, down = math.log1p(gate), math.log1p(-gate) if gate < 1 else -math.inf
    if down <= low and high <= up:
        return Verdict.SAME, _within_gate(low, high)
    least_up, least_down = (up, down) if evidence.is_strict else (0.0, 0.0)
    is_certain = p_value <= evidence.level
    if low > least_up and is_certain:
        return Verdict.SLOWER, f"certainly slower, {_extent(low > up)}"
    if high < least_down and is_certain:
        return Verdict.FASTER, f"certainly faster, {_extent(high < down)}"
    return Verdict.INCONCLUSIVE, _too_noisy(evidence, gate)


def _within_gate(low: float, high: float) -> str:
    if low > 0:
        return "certainly slower, within the gate"
    if high < 0:
        return "certainly faster, within the gate"
    return "any change is smaller than the gate"


def _extent(is_beyond: bool) -> str:  # noqa: FBT001 - a private function with one argument
    return "and by more than the gate" if is_beyond else "perhaps by more than the gate"


def _too_noisy(evidence: Evidence, gate: float) -> str:
    smallest, n_needed = evidence.smallest_change(), evidence.runs_for(gate)
    parts = [f"too noisy for {evidence.n_runs} runs of each side"]
    if smallest is not None:
        parts.append(f"the smallest change they would detect is {100 * smallest:.1f} %")
    if n_needed is not None and n_needed > evidence.n_runs:
        parts.append(f"about {n_needed} runs of each side would detect {100 * gate:g} %")
    if evidence.is_strict:
        parts.append(
            "the sides were measured apart, so only a change beyond the gate counts: "
            "measure both in one call (`bench time OLD NEW`)"
        )
    return "; ".join(parts)


def _warnings(base: Measurements, new: Measurements, *, only_common: bool) -> Iterator[str]:
    """Yield warnings about the comparison as a whole."""
    added = [key for key in new.runs if key not in base.runs] if only_common else []
    if added:
        yield f"only in new, so not compared: {', '.join(added)}"
    yield from _environment_changes(base, new)
    for side, measurements in (("base", base), ("new", new)):
        if measurements.n_skipped_lines:
            yield f"{side}: lines that are not records: {measurements.n_skipped_lines}"
        if measurements.n_repeated:
            yield f"{side}: runs that occur twice: {measurements.n_repeated}"


def _environment_changes(base: Measurements, new: Measurements) -> Iterator[str]:
    for name in sorted(base.environment.keys() & new.environment.keys()):
        before, after = base.environment[name], new.environment[name]
        if before.isdisjoint(after):
            yield f"{name} differs: {_listed(before)} in base, {_listed(after)} in new"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
