"""What a verdict about two sides rests on, and what holds for one side, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.diffs.sentences import percent
from longpole.remedies.catalogue import remedy_of
from longpole.words.path_kinds import MEANINGS
from longpole.words.wording import count, duration, duration_range, listing, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.diffs.values import Change, DiffSide, Findings, PathChange

# From this share on, what corresponds on both sides is not mentioned on one screen.
_MOSTLY_ALIKE: Final = 0.95

# The path has moved if its time of one kind changed by at least this share of the step, and at most
# this fraction of the change is a change of the work itself.
_LEAST_SHIFT: Final = 0.05
_OF_SHIFT: Final = 0.2

# If the recorded steps lie outside the range of the timed ones by a larger share, that is said.
_OTHER_LENGTH: Final = 0.02

# The path of one step counts as different if it spends at least this share of the step on other
# kinds.
_OTHER_PATH: Final = 0.1

# From this share of the change on, other shapes are its cause.
_MOSTLY: Final = 0.5

_NOT_RECORDED: Final = "Times of work and of the path are without the profiler."
_ONE_COST: Final = (
    "Of operators that both sides call equally often, the cost of recording is the same share of "
    "the time on both sides, so these change as in the recordings."
)
_EFFECT: Final = "what the change alone does to the step, recomputed with the dependency graph"


def notes_of(diff: Findings, shown: list[Change], *, is_brief: bool) -> Iterator[str]:
    """Return what the verdict rests on, then what the tables mean, then what holds for one side.

    Parameters
    ----------
    diff
        The comparison.
    shown
        The listed changes.
    is_brief
        Whether the answer must fit on one screen.
    """
    if not diff.is_one_program:
        yield from (*diff.reasons, *_side_notes(diff))
        return
    yield from (*_interval(diff), *diff.reasons)
    yield from (*_legend(diff, shown, is_brief=is_brief), *_other_shapes(diff), *_overlaps(diff))
    alike = diff.similarity if diff.is_related else None
    if alike is not None and alike < (_MOSTLY_ALIKE if is_brief else 1):
        yield f"{share(alike)} of the launches or operators of both sides correspond."
    yield from (*_recorded_steps(diff), *_side_notes(diff), *_interpreter_lock(diff))
    yield from [_limits(diff)] if is_brief else details_of(diff)


def details_of(diff: Findings) -> list[str]:
    """Return the notes that have no room on one screen."""
    return [
        *_paths_of_one_step(diff),
        *(f"Verdict on {name}: {side.verdict.sentence}" for name, side in _named(diff)),
    ]


def _interval(diff: Findings) -> Iterator[str]:
    """Return the interval of the change, with what it is based on."""
    if diff.interval is None or not diff.n_differences:
        return
    low, high = map(percent, diff.interval)
    if diff.is_one_recording:
        based = "Against each other step"
    elif diff.base.timed_ns:
        based = "By these timings"
    elif diff.base.n_runs == diff.new.n_runs == 1:
        based = "By the steps of these two runs"
    else:
        based = "By these runs"
    rest = _at_any_cost(diff)
    lies = f"the change lies between {low} and {high}; the gate is {share(diff.gate)}"
    yield f"{based}{rest}, {lies}."


def _at_any_cost(diff: Findings) -> str:
    """Return what else the interval allows for."""
    is_estimated = "estimated" in diff.range_sources
    allowed = [
        *(["at every possible cost of recording"] if is_estimated else []),
        *(["at equal speed of the machine"] if diff.machine_matters else []),
    ]
    return f", {listing(allowed)}" if allowed else ""


def _are_without_profiler(diff: Findings) -> bool:
    """Whether the cost of recording is removed from both sides."""
    return all(side.mean_ns < side.recorded_mean_ns for side in (diff.base, diff.new))


def _legend(diff: Findings, shown: list[Change], *, is_brief: bool) -> Iterator[str]:
    """Explain the columns of the changes, and the times of work."""
    if any(side.mean_ns != side.recorded_mean_ns for side in (diff.base, diff.new)):
        yield _NOT_RECORDED
    if shown and is_brief:
        yield f"Effect: {_EFFECT}."
        return
    if shown:
        limit = ", for the largest changes" if any(it.effect_ns is None for it in shown) else ""
        yield (
            "Times and counts are a step's, those of calls without their waits; the effect is "
            f"{_EFFECT}{limit}."
        )
    if any(it.kind == "operator" for it in shown) and _are_without_profiler(diff):
        yield _ONE_COST
    if any(max(len(it.base_names), len(it.new_names)) > 1 for it in shown):
        yield "Of several names, the one that takes longest is shown; --json has all."


def _other_shapes(diff: Findings) -> Iterator[str]:
    """Warn that a step with other shapes does other work."""
    certain = [change for change in diff.changes if change.stands_out]
    reshaped = [change for change in certain if change.relation == "reshaped"]
    part_ns, whole_ns = (
        sum(abs(change.change_ns) for change in each) for each in (reshaped, certain)
    )
    if reshaped and part_ns >= _MOSTLY * whole_ns:
        yield (
            "Most of the change is of work with other shapes. If the sides differ in batch size or "
            "sequence length, compare the time of a sample or token instead."
        )


def _overlaps(diff: Findings) -> Iterator[str]:
    """Explain why the path has more or less of a kind of work that itself changed little."""
    moved = _moved_paths(diff)
    for is_more, why in (
        (True, "ran at the same time as other work, which hides it less now"),
        (False, "now runs at the same time as other work, which hides it"),
    ):
        kinds = [MEANINGS[row.kind] for row in moved if (row.change_ns > 0) == is_more]
        if kinds:
            yield (
                f"The critical path has {'more' if is_more else 'less'} of {listing(kinds)}. In "
                f"all, this work takes about as long as before: it {why}."
            )


def _moved_paths(diff: Findings) -> list[PathChange]:
    """Return the kinds of work that changed little, but not their part of the path."""
    least = _LEAST_SHIFT * max(diff.base.mean_ns, diff.new.mean_ns)
    return [
        row
        for row in diff.path
        if row.base_work_ns is not None
        and row.new_work_ns is not None
        and abs(row.change_ns) >= least
        and abs(row.new_work_ns - row.base_work_ns) <= _OF_SHIFT * abs(row.change_ns)
    ]


def _recorded_steps(diff: Findings) -> Iterator[str]:
    """Warn that the recorded steps, which the tables are about, differ from the timed ones."""
    for name, side in _named(diff):
        known = _known_length(side)
        length_ns = sum(getattr(row, f"{name}_ns") for row in diff.path)
        if known is None or not length_ns:
            continue
        (least_ns, most_ns), how = known
        if (1 - _OTHER_LENGTH) * least_ns <= length_ns <= (1 + _OTHER_LENGTH) * most_ns:
            continue
        yield (
            f"The tables of work are about the recorded steps, which take "
            f"{duration(round(length_ns))} without the profiler in {name}; the {how} "
            f"{duration_range(round(least_ns), round(most_ns))}."
        )


def _known_length(side: DiffSide) -> tuple[tuple[float, float], str] | None:
    """Return the least and most time of a step as timed or given, and which of both it is."""
    if side.given_ns is not None:
        return (side.given_ns, side.given_ns), "given time is"
    if side.range_source == "measured" and side.range_ns is not None:
        return side.range_ns, "timed steps take"
    return None


def _side_notes(diff: Findings) -> Iterator[str]:
    """Return what holds for one side; once if both are of one recording."""
    if diff.base.notes == diff.new.notes:
        yield from diff.base.notes
        return
    for name, side in (("base", diff.base), ("new side", diff.new)):
        for told in side.notes:
            yield f"Of the {name}: {told[0].lower()}{told[1:]}"


def _interpreter_lock(diff: Findings) -> Iterator[str]:
    """Warn that recording slows down a contended interpreter lock by more than the range shows."""
    names = [
        name
        for name, side in _named(diff)
        if any(it.named and remedy_of(it.remedy).is_worse_recorded for it in side.verdict.remedies)
    ]
    if names:
        its = "their steps" if names[1:] else "its step"
        yield (
            f"Threads of {listing(names)} compete for the interpreter lock, which recording makes "
            f"worse by an unknown amount: without the profiler, {its} may be much shorter."
        )


def _limits(diff: Findings) -> str:
    """Return in a few words what limits each side."""
    unknown = {
        "no_device": ("unknown", "no GPU activity is recorded"),
        "inconclusive": ("unknown", "the trace does not show it"),
    }
    told: dict[tuple[str, str], list[str]] = {}
    for name, side in _named(diff):
        limit = side.verdict.limited_by or unknown.get(
            side.verdict.status, ("unknown", "see --json")
        )
        told.setdefault(limit, []).append(name)
    parts = [
        f"{what} in {'both' if names[1:] else names[0]} ({how})"
        for (what, how), names in told.items()
    ]
    return f"What limits the step: {', '.join(parts)}."


def _paths_of_one_step(diff: Findings) -> Iterator[str]:
    """Report if the path of one step, as in `longpole path`, contains other work."""
    for name, side in _named(diff):
        times = [
            (row.kind, getattr(row, f"{name}_ns"), getattr(row, f"{name}_alone_ns"))
            for row in diff.path
        ]
        kind, together_ns, alone_ns = max(times, key=lambda row: abs(row[1] - row[2]))
        if side.n_steps > 1 and abs(together_ns - alone_ns) >= _OTHER_PATH * side.mean_ns:
            yield (
                f"The critical path of {name} goes through {count(side.n_steps, 'step')} together: "
                f"{kind} is {duration(round(together_ns))} of a step. On the path of the median "
                f"step alone (`longpole path`) it is {duration(round(alone_ns))}: host and device "
                "run at the same time, and the later of the two at the end of a window is on its "
                "path."
            )


def _named(diff: Findings) -> list[tuple[Literal["base", "new"], DiffSide]]:
    return [("base", diff.base), ("new", diff.new)]
