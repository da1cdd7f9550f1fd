"""Recording overhead: the time that the profiler added to each class of event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict

from longpole.engine.windows import noun_of
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.words.data import Row
from longpole.words.wording import duration, duration_range, whole_percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.report.blocks import Block

CostStatus = Literal["estimated", "measured", "given", "unknown"]

_WITHOUT: Final = "Without the profiler the"

SAID_ABOVE: Final = 0.05
"""Below this share of the step, the summary does not mention the overhead."""

SPEED_CHANGED: Final = (
    "the program's speed changed while it was recorded: without the profiler, its step took "
    "{before} before and {after} after"
)
"""What a drift of the timed steps shows."""

# Steps timed before and after recording that differ by a larger factor show another speed.
_DRIFTS: Final = 1.10

_CLASSES: Final = {
    "outer_operator": "operators called from Python",
    "nested_operator": "operators called by operators",
    "launch": "launches",
    "graph_launch": "launches of graphs",
    "call": "other runtime API calls",
    "python_function": "Python functions",
    "annotation": "annotations",
}
_SOURCES: Final = {
    "wrappers": "operators that only call another one",
    "gaps": "gaps between neighbours",
    "launches": "gaps between launches",
    "operators": "cost of an operator, and what is usual",
    "graph_launches": "launches of graphs that take longer than usual",
    "unknown": "nothing: not subtracted",
}
_NOT_ESTIMATED: Final = {
    "profiler": "only traces of torch.profiler show what recording cost",
    "few_operators": "the trace has too few operators that only call another one",
    "no_wrappers": "operators that only call another one take longer than any profiler needs",
    "coarse": (
        "the times of the trace are whole microseconds: too coarse for the cost of one event"
    ),
}


class OverheadParts(TypedDict):
    """Recording overhead as found by the core."""

    not_estimated: str | None
    """Reason why the overhead is unknown."""
    unit: str
    """Unit of the default window."""
    classes: list[dict[str, Any]]
    lengths_ns: tuple[int, int, int, int] | None
    """The median step as recorded, without the profiler, and the lower and upper bound of the
    latter."""
    run_percent: int
    """Difference between two runs of one program, in addition to these bounds."""
    factor: float
    misfit: tuple[str, int | None] | None
    """Reason why no factor explains the given step time: `longer` than recorded, or `shorter` than
    the time that remains.
    """


class ClassCost(Row):
    """Cost of recording the events of one class."""

    event_class: str
    """`outer_operator`, `nested_operator`, `launch`, `graph_launch`, `call`,
    `python_function`, `annotation`."""
    count: int
    """Number of events in the whole trace."""
    cost_ns: int
    """Cost of one event, as subtracted."""
    least_ns: int
    most_ns: int
    source: str
    """How it was estimated: `wrappers` (operators that only call one other operator), `gaps`
    (between neighbours), `launches` (gaps between two launches), `operators` (the cost of an
    operator and a typical ratio), `graph_launches` (their time beyond the usual), `unknown`
    (nothing is subtracted)."""
    n_samples: int


class RecordingCost(Row):
    """Recording overhead, and the length of a step without it."""

    unit: str
    """Unit of the times: `step`, or the closest unit that the trace has."""
    status: CostStatus
    """`estimated` from the trace alone, `measured` when the trace was recorded, `given` by the
    user, or `unknown`."""
    reason: str | None
    """Reason why the overhead is unknown."""
    recorded_step_ns: int | None
    """The median step as recorded."""
    step_ns: int | None
    """The median step without the profiler."""
    least_step_ns: int | None
    most_step_ns: int | None
    """Bounds of the latter, not longer than the recorded step unless they were measured. If the
    cost is unknown, the step with the usual cost at most, and as recorded."""
    run_spread: float | None
    """Fraction by which two runs of one program differ, in addition to the bounds."""
    factor: float | None
    """Factor applied to the costs of all classes, and to their bounds, to match a measured or given
    time."""
    timed_ns: tuple[int, ...]
    """Mean steps that were timed without the profiler when the trace was recorded."""
    misfit: str | None
    """Reason why these, or a given time, do not fit the recorded steps and are not used; null if
    they do."""
    nearest: str | None
    """Why the step takes another time than the given one: no cost of recording explains it, and
    this is the nearest time that one does."""
    drift_ns: tuple[int, int] | None
    """Median steps timed without the profiler before and after recording, if they show that the
    speed of the program changed."""
    classes: list[ClassCost]


def unknown_cost(reason: str) -> RecordingCost:
    """Return an unknown overhead, with the reason."""
    return RecordingCost(
        unit="step",
        status="unknown",
        reason=reason,
        recorded_step_ns=None,
        step_ns=None,
        least_step_ns=None,
        most_step_ns=None,
        run_spread=None,
        factor=None,
        timed_ns=(),
        misfit=None,
        nearest=None,
        drift_ns=None,
        classes=[],
    )


def recording_cost_of(
    parts: OverheadParts, status: CostStatus, bounds_ns: tuple[int, int] | None
) -> RecordingCost:
    """Convert the core's result to an answer.

    Parameters
    ----------
    parts
        Result of the core.
    status
        Source of the step time.
    bounds_ns
        Shortest and longest step time measured without a profiler.
    """
    if parts["not_estimated"] is not None or parts["lengths_ns"] is None:
        return _unknown(parts)
    recorded_ns, usual_ns, least_ns, most_ns = parts["lengths_ns"]
    factor, run_spread = parts["factor"], None
    if bounds_ns is None:
        run_spread = parts["run_percent"] / 100
    else:
        least_ns, most_ns = bounds_ns
    classes = [_class(row, factor) for row in parts["classes"]]
    return RecordingCost(
        unit=parts["unit"],
        status=status,
        reason=None,
        recorded_step_ns=recorded_ns,
        step_ns=usual_ns,
        least_step_ns=least_ns,
        most_step_ns=most_ns,
        run_spread=run_spread,
        factor=factor,
        timed_ns=(),
        misfit=None,
        nearest=None,
        drift_ns=None,
        classes=classes,
    )


def _unknown(parts: OverheadParts) -> RecordingCost:
    """Return an unknown overhead, with the step at the usual cost at most if the core has it."""
    cost = unknown_cost(_NOT_ESTIMATED[parts["not_estimated"] or "profiler"])
    if parts["lengths_ns"] is not None:
        recorded_ns, _, least_ns, most_ns = parts["lengths_ns"]
        spread = parts["run_percent"] / 100
        lengths = {"least_step_ns": least_ns, "most_step_ns": most_ns, "run_spread": spread}
        cost |= {"unit": parts["unit"], "recorded_step_ns": recorded_ns, **lengths}  # type: ignore[typeddict-item]
    return cost


def _class(row: Mapping[str, Any], factor: float) -> ClassCost:
    return ClassCost(
        event_class=row["event_class"],
        count=row["count"],
        cost_ns=round(row["cost_ns"] * factor),
        least_ns=round(row["least_ns"] * factor),
        most_ns=round(row["most_ns"] * factor),
        source=row["source"],
        n_samples=row["n_samples"],
    )


class Timings(NamedTuple):
    """Mean steps that were timed without the profiler before and after recording."""

    before_ns: tuple[int, ...]
    after_ns: tuple[int, ...]

    @property
    def all_ns(self) -> tuple[int, ...]:
        """All of them."""
        return self.before_ns + self.after_ns

    @property
    def drift_ns(self) -> tuple[int, int] | None:
        """The medians before and after recording, if they show another speed.

        They do if each step of one side is longer than all of the other, and the medians differ by
        more than 10 %.

        Examples
        --------
        >>> Timings((22, 24), (33, 37)).drift_ns
        (23, 35)
        >>> Timings((22, 34), (33, 37)).drift_ns
        """
        before, after = self
        if not before or not after or (max(before) >= min(after) and max(after) >= min(before)):
            return None
        from statistics import median

        medians = round(median(before)), round(median(after))
        return medians if max(medians) > _DRIFTS * min(medians) else None


def timings_of(header: Sequence[tuple[str, str]]) -> Timings:
    """Return the steps timed without the profiler, from the header of a trace.

    Examples
    --------
    >>> timings_of([("longpole", '{"step_time_ns": {"before": [5], "after": [7]}}')])
    Timings(before_ns=(5,), after_ns=(7,))
    """
    for name, text in header:
        if name == "longpole":
            try:
                times = json.loads(text)["step_time_ns"]
                before, after = ([int(it) for it in times[side]] for side in ("before", "after"))
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
                break
            return Timings(*(tuple(it for it in side if it > 0) for side in (before, after)))
    return Timings((), ())


def explained_ns(parts: OverheadParts) -> tuple[int, int] | None:
    """Return the shortest and the longest step that some recording overhead explains.

    None unless a given step lies outside them.
    """
    if parts["misfit"] is None or parts["lengths_ns"] is None:
        return None
    kind, shortest_ns = parts["misfit"]
    recorded_ns = parts["lengths_ns"][0]
    return (recorded_ns, recorded_ns) if kind == "longer" else (shortest_ns or 0, recorded_ns)


def nearest(parts: OverheadParts, step_time_ns: int) -> int | None:
    """Return the step nearest to a given one that some recording overhead explains.

    None if the given step is more than 10 % away, which is more than two runs differ by.
    """
    explained = explained_ns(parts)
    if explained is None:
        return step_time_ns
    least_ns, most_ns = explained
    found_ns = min(max(step_time_ns, least_ns), most_ns)
    return found_ns if _alike(found_ns, step_time_ns) else None


def nearest_sentence(asked_ns: int, taken_ns: int) -> str:
    """Return why the step takes another time than the given one.

    Examples
    --------
    >>> told = nearest_sentence(11_200_000, 11_370_000)
    >>> print(told)  # doctest: +NORMALIZE_WHITESPACE
    11.2 ms were given; without any recording overhead, the recorded step takes 11.4 ms, which is
    used
    """
    asked, taken = duration(asked_ns), duration(taken_ns)
    what = (
        "as recorded, the step takes"
        if taken_ns < asked_ns
        else "without any recording overhead, the recorded step takes"
    )
    return f"{asked} were given; {what} {taken}, which is used"


def misfit(parts: OverheadParts, step_time_ns: int, timed_ns: Sequence[int] = ()) -> str | None:
    """Return why no recording overhead explains a given step time, or None.

    `timed_ns` are the step times measured at recording.
    """
    explained = explained_ns(parts)
    if explained is None:
        return None
    (least_ns, recorded_ns), asked = explained, duration(step_time_ns)
    is_longer = step_time_ns > recorded_ns
    other = "it may be of another machine, batch size or program"
    if timed_ns and min(timed_ns) <= _DRIFTS * step_time_ns <= _DRIFTS**2 * max(timed_ns):
        timed = duration_range(min(timed_ns), max(timed_ns))
        other = (
            f"like the steps that were timed when it was recorded ({timed}), it does not fit the "
            f"recorded steps, which were {'faster' if is_longer else 'slower'}"
        )
    if is_longer:
        took = f"the step takes {duration(recorded_ns)} as recorded, less than that"
    else:
        took = f"even without any recording overhead, the step takes {duration(least_ns)}"
    return f"the given step time of {asked} is not used: {took}; {other}"


def _alike(one_ns: int, other_ns: int) -> bool:
    """Whether two runs of one program on one machine may differ as much."""
    return max(one_ns, other_ns) <= _DRIFTS * min(one_ns, other_ns)


def is_told(cost: RecordingCost) -> bool:
    """Whether answers mention that the overhead was removed: it is known, and changes the step."""
    recorded_ns, step_ns = cost["recorded_step_ns"], cost["step_ns"]
    if not recorded_ns or step_ns is None:
        return False
    return cost["status"] != "estimated" or 1 - step_ns / recorded_ns > SAID_ABOVE


def range_of(cost: RecordingCost) -> list[str]:
    """Return the range of the step without the profiler, unless it is given, and as recorded."""
    known = [f"{duration(cost['recorded_step_ns'] or 0)} recorded", *unused_timings(cost)]
    if cost["status"] == "given":
        return [*([cost["nearest"]] if cost["nearest"] else []), *known]
    found = duration_range(cost["least_step_ns"] or 0, cost["most_step_ns"] or 0)
    if cost["status"] != "estimated":
        return [found, *known]
    runs = f"runs differ by up to {whole_percent(cost['run_spread'])}" if cost["run_spread"] else ""
    return [f"estimated {found}", *([runs] if runs else []), *known]


def unused_timings(cost: RecordingCost) -> list[str]:
    """Return the range of the timed steps, if they fit but something else tells the step time.

    Examples
    --------
    >>> cost = unknown_cost("")
    >>> cost["timed_ns"] = (6_520_000, 6_980_000)
    >>> unused_timings(cost)
    ['timed without the profiler: 6.52 to 6.98 ms']
    """
    times_ns = cost["timed_ns"]
    if not times_ns or cost["status"] == "measured" or cost["misfit"] is not None:
        return []
    return [f"timed without the profiler: {duration_range(min(times_ns), max(times_ns))}"]


def step_sentence(cost: RecordingCost) -> str | None:
    """Return the step time without the profiler, if that differs from the recording.

    Examples
    --------
    >>> cost = unknown_cost("")
    >>> cost.update(status="estimated", recorded_step_ns=98_000_000, step_ns=43_000_000)
    >>> cost.update(least_step_ns=38_000_000, most_step_ns=51_000_000)
    >>> print(step_sentence(cost))  # doctest: +NORMALIZE_WHITESPACE
    Without the profiler the median step takes about 43.0 ms (estimated 38.0 to 51.0 ms; 98.0 ms
    recorded).
    """
    if not is_told(cost):
        return None
    unit, taken = _median_of(noun_of(cost["unit"])), duration(cost["step_ns"] or 0)
    known = "; ".join(range_of(cost))
    if cost["status"] == "estimated":
        return f"{_WITHOUT} {unit} takes about {taken} ({known})."
    source = "given" if cost["status"] == "given" else "measured"
    return f"{_WITHOUT} {unit} takes {taken}, as {source} ({known})."


def _median_of(unit: str) -> str:
    """Return the unit with the word `median`, except for a whole trace, which has no median."""
    return unit if unit == "trace" else f"median {unit}"


def recorded_sentence(cost: RecordingCost) -> str | None:
    """Return how to get the times without the profiler, if those recorded are much longer.

    Examples
    --------
    >>> recorded_sentence(unknown_cost("few operators"))
    """
    told = step_sentence(cost)
    if told is None or 1 - (cost["step_ns"] or 0) / (cost["recorded_step_ns"] or 1) <= SAID_ABOVE:
        return None
    return (
        f"These times are as recorded. {told} Commands answer for that program, and so does "
        "`trace.without_profiler()`."
    )


def step_blocks(cost: RecordingCost | None) -> list[Block]:
    """Show the step time without the profiler, if that differs from the recording or was timed."""
    told = None if cost is None else step_sentence(cost)
    if cost is not None and cost["step_ns"] and unused_timings(cost):
        told = _step(cost)
    return [*([Notes([told])] if told else []), *timing_blocks(cost)]


def timing_blocks(cost: RecordingCost | None) -> list[Block]:
    """Show what is wrong with the step times measured without the profiler; empty if nothing is."""
    told = [] if cost is None else timing_notes(cost)
    return [Notes(told)] if told else []


def timing_notes(cost: RecordingCost) -> list[str]:
    """Return whether the measured step times show another speed, and why they were not used."""
    return [*filter(None, [drift_sentence(cost)]), *_misfit(cost)]


def _misfit(cost: RecordingCost) -> list[str]:
    why = cost["misfit"]
    return [f"{why[0].upper()}{why[1:]}."] if why else []


def unknown_blocks(cost: RecordingCost | None) -> list[Block]:
    """Show how much shorter the step may be, if the overhead is unknown and may matter.

    Examples
    --------
    >>> cost = unknown_cost("the trace has too few operators")
    >>> cost.update(recorded_step_ns=2_000_000, least_step_ns=1_000_000)
    >>> [[told]] = (notes.items for notes in unknown_blocks(cost))
    >>> print(told)  # doctest: +NORMALIZE_WHITESPACE
    What recording cost is unknown (the trace has too few operators): without the profiler, the step
    takes 1.00 to 2.00 ms. --step-time takes the time that you measured.
    """
    if cost is None:
        return []
    recorded_ns, least_ns = cost["recorded_step_ns"], cost["least_step_ns"]
    is_unknown = cost["status"] == "unknown" and recorded_ns is not None and least_ns is not None
    if not is_unknown or 1 - (least_ns or 0) / (recorded_ns or 1) <= SAID_ABOVE:
        return []
    took = duration_range(least_ns or 0, recorded_ns or 0)
    told = (
        f"What recording cost is unknown ({cost['reason']}): without the profiler, the "
        f"{noun_of(cost['unit'])} takes {took}. --step-time takes the time that you measured."
    )
    return [Notes([told])]


def drift_sentence(cost: RecordingCost) -> str | None:
    """Return how the speed of the program changed while it was recorded, if it did.

    Examples
    --------
    >>> cost = unknown_cost("")
    >>> cost["drift_ns"] = (22_400_000, 35_500_000)
    >>> print(drift_sentence(cost))  # doctest: +NORMALIZE_WHITESPACE
    The program's speed changed while it was recorded: without the profiler, its step took 22.4 ms
    before and 35.5 ms after.
    """
    if cost["drift_ns"] is None:
        return None
    before, after = map(duration, cost["drift_ns"])
    told = SPEED_CHANGED.format(before=before, after=after)
    return f"{told[0].upper()}{told[1:]}."


def cost_blocks(cost: RecordingCost) -> list[Block]:
    """Show the recording overhead: a table of classes, and the step time."""
    if cost["status"] == "unknown":
        why = f"What recording cost is unknown: {cost['reason']}."
        known = [f"{it.capitalize()}." for it in unused_timings(cost)]
        return [Sentence(" ".join([why, *known, *_misfit(cost)]))]
    columns = (
        Column("recording cost of", "name"),
        Column("one event", "duration"),
        Column("at least", "duration"),
        Column("at most", "duration"),
        Column("events", "count"),
        Column("learned from", "name"),
    )
    rows = [
        (
            _CLASSES[row["event_class"]],
            row["cost_ns"],
            row["least_ns"],
            row["most_ns"],
            row["count"],
            _SOURCES[row["source"]],
        )
        for row in cost["classes"]
    ]
    return [Table(columns, rows), Notes([_step(cost), *_misfit(cost)])]


def _step(cost: RecordingCost) -> str:
    found = step_sentence(cost)
    if found is not None:
        return found
    step, known = duration(cost["step_ns"] or 0), "; ".join(range_of(cost))
    return f"{_WITHOUT} {_median_of(cost['unit'])} takes {step} ({known})."
