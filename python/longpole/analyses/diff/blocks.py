"""A comparison as blocks: the verdict, what changed, and which work replaced which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.analyses.diff.sentences import mean_of, percent, predicted
from longpole.critical_path.explain import MEANINGS
from longpole.report.blocks import (
    Column,
    Notes,
    Sentence,
    Table,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.wording import count, duration, duration_range, listing, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.analyses.diff.values import Change, DiffSide, Findings, PathChange
    from longpole.report.blocks import Block, Cell

__all__ = ["diff_blocks"]

# Rows of the changes and of the kinds of time, if the answer is to fit on one screen.
_FEW_CHANGES: Final = 5
_FEW_KINDS: Final = 4

# From this share on, what corresponds on both sides is not mentioned on one screen.
_MOSTLY_ALIKE: Final = 0.95

_LEAST_GAIN: Final = 0.005
_LEAST_PATH: Final = 0.002

# Changes of a smaller share of the step are counted but not shown.
_LEAST_SHOWN: Final = 0.001

# The path has moved if its time of one kind changed by at least this share of the step, and at most
# this fraction of the change is a change of the work itself.
_LEAST_SHIFT: Final = 0.05
_OF_SHIFT: Final = 0.2

# If the recorded steps lie outside the range of the timed ones by a larger share, that is said.
_OTHER_LENGTH: Final = 0.02

# The path of one step counts as different if it spends at least this share of the step on other
# kinds.
_OTHER_PATH: Final = 0.1

_EFFECT: Final = "what the change alone does to the step, recomputed with the dependency graph"

_BECAME: Final = {"reshaped": "reshaped", "added": "added", "removed": "removed"}
# From this share of the change on, other shapes are its cause.
_MOSTLY: Final = 0.5

_LESS: Final = {"added": "more", "removed": "fewer"}
"""Words for added and removed work if both sides have other work of the same name."""
_REPLACED: Final = {
    "renamed": "replaced by",
    "replaced": "replaced by",
    "fused": "fused into",
    "split": "split into",
}
_WORDS: Final = {
    "kernel": ("kernel", "kernels"),
    "copy": ("copy", "copies"),
    "communication": ("communication", "communications"),
    "operator": ("operator", "operators"),
    "runtime": ("API call", "API calls"),
    "host_gap": ("outside operators", "outside operators"),
    "data_loading": ("data loading", "data loading"),
}
"""Short names of the kinds, which leave space in a table for the names and the effect."""
_COUNTS: Final = {
    "launches": "launches",
    "gpu_activities": "GPU activities with a launch",
    "blocking_calls": "blocking calls",
    "operators": "operators",
}


def diff_blocks(diff: Findings, top: int | None = None) -> list[Block]:
    """Show a comparison on one screen or, with the number of changes to list, in full."""
    if diff.is_lost:
        return [Sentence(diff.sentence), Notes(list(diff.reasons))]
    worth = _worth_showing(diff) if diff.is_related else []
    shown = worth[: _FEW_CHANGES if top is None else top]
    work = _changes(diff, shown) if diff.is_related else None
    path = _path(diff, _FEW_KINDS if top is None else None) if diff.is_one_program else None
    is_clear = top is None and all(row.is_alone for row in diff.predictions)
    applied = _predictions(diff) if diff.is_one_program and not is_clear else None
    tables = [_setups(diff), _lengths(diff), work, applied, path]
    if top is not None and diff.is_one_program:
        tables += _details(diff).values()
    return [
        Sentence(diff.sentence),
        *(table for table in tables if table is not None and table.rows),
        Notes([*_notes(diff, shown, is_brief=top is None)]),
    ]


def _details(diff: Findings) -> dict[str, Table]:
    """Return the tables that have no room on one screen, by what they show."""
    tables = {
        "the gains of both sides": _gains(diff),
        "the numbers of launches and operators": _counts(diff),
    }
    return {what: table for what, table in tables.items() if table.rows}


def _worth_showing(diff: Findings) -> list[Change]:
    """Return the changes beyond the noise that are long enough to matter for a step."""
    least_ns = _LEAST_SHOWN * max(diff.base.mean_ns, diff.new.mean_ns)
    return [
        change
        for change in diff.changes
        if change.stands_out and max(abs(change.change_ns), abs(change.effect_ns or 0)) >= least_ns
    ]


def _setups(diff: Findings) -> Table:
    """Show the differences in machine and software."""
    columns = {
        Column("what differs"): "what",
        Column("base", "name"): "base",
        Column("new", "name"): "new",
    }
    return tabulated([row for row in diff.setups if row.differs], columns)


def _lengths(diff: Findings) -> Table:
    """Show the length of the steps, and its spread."""
    source = diff.range_sources.pop() if len(diff.range_sources) == 1 else "possible"
    columns: dict[Column, Value] = {
        Column("side"): lambda side: "base" if side is diff.base else "new",
        Column(f"{mean_of(diff)}{diff.base.unit}", "duration"): "mean_ns",
        Column("as recorded", "duration"): lambda side: (
            None if side.recorded_mean_ns == side.mean_ns else side.recorded_mean_ns
        ),
        Column(f"{source} range"): lambda side: (
            None if side.range_ns is None else duration_range(*map(round, side.range_ns))
        ),
        Column("median", "duration"): lambda side: (
            None if side.timed_ns or side.given_ns else side.median_ns
        ),
        Column("noise", "share"): "step_noise",
        Column("timings", "count"): lambda side: len(side.timed_ns) or None,
        Column("steps", "count"): "n_steps",
        Column("runs", "count"): "n_runs",
    }
    return without_empty_columns(tabulated((diff.base, diff.new), columns))


def _changes(diff: Findings, changes: list[Change]) -> Table:
    """Show the changes; work that replaced other work has a row of its own below it."""
    columns = (
        Column("what changed"),
        Column("name", "name"),
        Column("base", "duration", is_needed=True),
        Column("new", "duration", is_needed=True),
        Column("effect", "number", is_needed=True),
        Column("change", "change"),
        Column("count", "number"),
    )
    rows: list[list[Cell]] = []
    for it in changes:
        is_replaced, is_part = it.relation in _REPLACED, diff.is_part(it)
        base, new = (_first(names) for names in (it.base_names, it.new_names))
        rows.append(
            [
                _what(it, is_part=is_part),
                base if is_replaced else base or new,
                it.base_ns if it.base_names else None,
                it.new_ns if it.new_names else None,
                _effect(it),
                it.change if it.base_names and it.new_names else None,
                None if it.kind == "data_loading" else _numbers(it, is_part=is_part),
            ]
        )
        if is_replaced:
            number = f" {len(it.new_names)}" if len(it.new_names) > 1 else ""
            rows.append([f"{_REPLACED[it.relation]}{number}", new, *[""] * 5])
    return without_empty_columns(Table(columns, rows))


def _what(change: Change, *, is_part: bool) -> str:
    """Return the kind of a change, how many names it has, and what became of it."""
    one, several = _WORDS[change.kind]
    number = len(change.base_names)
    what = one if number <= 1 else f"{number} {several}"
    if change.relation not in _BECAME:
        return what
    words = _LESS if is_part else _BECAME
    return f"{what}, {words[change.relation]}"


def _first(names: tuple[str | None, ...]) -> str | None:
    """Return the first name, which is that of the longest work."""
    return names[0] if names else None


def _effect(change: Change) -> str | None:
    if change.effect_ns is None:
        return None
    effect_ns = round(change.effect_ns)
    return f"{'+' if effect_ns > 0 else ''}{duration(effect_ns)}"


def _numbers(change: Change, *, is_part: bool) -> str:
    """Return both counts; of added or removed work that is a part, how much more or less it is."""
    if is_part:
        more = change.new_count - change.base_count
        return f"{'+' if more > 0 else '-'}{_number(abs(more))}"
    old, now = _number(change.base_count), _number(change.new_count)
    return old if old == now else f"{old} -> {now}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _predictions(diff: Findings) -> Table:
    """Show the predicted and the measured gain of the applied remedies."""
    columns: dict[Column, Value] = {
        Column("remedy applied"): lambda it: it.remedy,
        Column("predicted"): predicted,
        Column("measured", "share"): lambda it: it.measured if it.is_alone else None,
        Column("measured together", "share"): lambda it: None if it.is_alone else it.measured,
    }
    return without_empty_columns(tabulated(diff.predictions, columns))


def _path(diff: Findings, most: int | None) -> Table:
    """Show the time of each kind, and the change of its part of the critical path."""
    columns = (
        Column("time in a step"),
        Column("base", "duration"),
        Column("new", "duration"),
        Column("path, base", "duration"),
        Column("path, new", "duration"),
        Column("path, change", "number", is_needed=True),
    )
    shown = _moved_kinds(diff)[:most]
    rows: list[list[Cell]] = [
        [
            row.kind,
            row.base_work_ns,
            row.new_work_ns,
            row.base_ns,
            row.new_ns,
            _signed(row.change_ns),
        ]
        for row in shown
    ]
    rest_ns = sum(row.change_ns for row in diff.path if row not in shown)
    if rows and rest_ns:
        rows.append(["all other kinds", *[None] * 4, _signed(rest_ns)])
    return Table(columns, rows)


def _moved_kinds(diff: Findings) -> list[PathChange]:
    """Return the kinds of which the critical path has clearly more or less."""
    least = _LEAST_PATH * max(diff.base.mean_ns, diff.new.mean_ns)
    return [row for row in diff.path if abs(row.change_ns) >= least]


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


def _overlaps(diff: Findings) -> Iterator[str]:
    """Explain why the path has more or less of a kind of work that itself changed little."""
    moved = _moved_paths(diff)
    for is_more, where in (
        (True, "ran at the same time as other work before, which hides it less now"),
        (False, "now runs at the same time as other work, which hides it"),
    ):
        kinds = [MEANINGS[row.kind] for row in moved if (row.change_ns > 0) == is_more]
        if kinds:
            more = "more" if is_more else "less"
            takes = "each takes" if kinds[1:] else "it takes"
            yield (
                f"The critical path has {more} of {listing(kinds)}, though {takes} about as long as "
                f"before: {'this work' if kinds[1:] else 'it'} {where}."
            )


def _from_to(base_ns: float, new_ns: float) -> str:
    return f"{duration(round(base_ns))} to {duration(round(new_ns))}"


def _gains(diff: Findings) -> Table:
    """Show what limits each side, according to its verdict."""
    columns = (
        Column("shorter without, up to"),
        Column("base", "share"),
        Column("new", "share"),
    )
    base, new = (
        verdict.gains | {side: bounds.high for side, bounds in verdict.bounds.items()}
        for verdict in (diff.base.verdict, diff.new.verdict)
    )
    rows: list[list[Cell]] = [
        [side, max(gain, 0.0), max(new.get(side, 0.0), 0.0)]
        for side, gain in base.items()
        if max(gain, new.get(side, 0.0)) >= _LEAST_GAIN
    ]
    return Table(columns, rows)


def _counts(diff: Findings) -> Table:
    columns = (Column("mean number in a step"), Column("base", "number"), Column("new", "number"))
    rows: list[list[Cell]] = [
        [_COUNTS[row.what], _number(row.base), _number(row.new)] for row in diff.counts
    ]
    base, new = diff.base.peak_memory_bytes, diff.new.peak_memory_bytes
    if base is not None and new is not None:
        rows.append(["peak device memory, MiB", f"{base / 2**20:,.1f}", f"{new / 2**20:,.1f}"])
    return Table(columns, rows)


def _interval(diff: Findings) -> Iterator[str]:
    """Return the interval of the change, with what it is based on."""
    if diff.interval is None or not diff.n_differences:
        return
    low, high = map(percent, diff.interval)
    if diff.machine_matters:
        based = "At the speed of the base"
    elif diff.is_one_recording:
        based = "Against each other step"
    elif diff.base.timed_ns:
        based = "By these timings"
    elif diff.base.n_runs == diff.new.n_runs == 1:
        based = "By the steps of these two runs"
    else:
        based = "With 95 % confidence"
    yield f"{based}, the change lies between {low} and {high}; the gate is {share(diff.gate)}."


def _signed(time_ns: float) -> str:
    whole = round(time_ns)
    return f"{'+' if whole > 0 else ''}{duration(whole)}"


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


def _interpreter_lock(diff: Findings) -> Iterator[str]:
    """Warn that recording slows down a contended interpreter lock by more than the range shows."""
    names = [
        name
        for name, side in _named(diff)
        if any(it.remedy == "interpreter_lock" and it.named for it in side.verdict.remedies)
    ]
    if names:
        its = "their steps" if names[1:] else "its step"
        yield (
            f"Threads of {listing(names)} compete for the interpreter lock, which recording makes "
            f"worse by an unknown amount: without the profiler, {its} may be much shorter."
        )


def _side_notes(diff: Findings) -> Iterator[str]:
    """Return what holds for one side; once if both are of one recording."""
    if diff.base.notes == diff.new.notes:
        yield from diff.base.notes
        return
    for name, side in (("base", diff.base), ("new side", diff.new)):
        for told in side.notes:
            yield f"Of the {name}: {told[0].lower()}{told[1:]}"


def _limits(diff: Findings) -> str:
    """Return in a few words what limits each side."""
    unknown = {
        "no_device": ("unknown", "no GPU activity is recorded"),
        "inconclusive": ("unknown", "the trace does not show it"),
    }
    told: dict[tuple[str, str], list[str]] = {}
    for name, side in _named(diff):
        limit = side.verdict.limit or unknown.get(side.verdict.status, ("unknown", "see --json"))
        told.setdefault(limit, []).append(name)
    parts = [
        f"{what} in {'both' if names[1:] else names[0]} ({how})"
        for (what, how), names in told.items()
    ]
    return f"What limits the step: {', '.join(parts)}."


def _left_out(diff: Findings, n_shown: int, n_notes: int) -> Iterator[str]:
    """Count what does not fit on one screen, and name the options that show it."""
    n_worth = len(_worth_showing(diff)) if diff.is_related else 0
    n_kinds = len(_moved_kinds(diff)[_FEW_KINDS:])
    rest = [
        count(n_worth - n_shown, "change") if n_worth > n_shown else "",
        f"{count(n_kinds, 'kind')} of time" if n_kinds else "",
        *_details(diff),
        count(n_notes, "note"),
    ]
    top = max(n_worth, _FEW_CHANGES)
    more = "".join(f", and {told}" for told in _small(diff))
    yield f"Left out: {listing([*filter(None, rest)])} (see --top {top}){more}."


def _not_listed(diff: Findings, n_shown: int) -> Iterator[str]:
    """Count the changes beyond those requested."""
    n_more = len(_worth_showing(diff)) - n_shown if diff.is_related else 0
    if n_more:
        yield f"{count(n_more, 'more change')} beyond the noise of the steps: see --top and --json."
    for told in _small(diff):
        yield f"Left out: {told}."


def _small(diff: Findings) -> Iterator[str]:
    """Count the changes that are certain but too small to show."""
    n_small = sum(it.stands_out for it in diff.changes) - len(_worth_showing(diff))
    if diff.is_related and n_small:
        least = share(_LEAST_SHOWN)
        yield f"{count(n_small, 'change')} of less than {least} of the step (see --json)"


def _of_cost(diff: Findings) -> Iterator[str]:
    """Return the range of the change that the cost of recording leaves."""
    if diff.change_range is None or not diff.n_differences:
        return
    limits = " and ".join(map(percent, diff.change_range))
    if diff.range_sources == {"measured"}:
        yield f"The steps timed without the profiler leave the change between {limits}."
    else:
        yield f"What recording cost is estimated, and leaves the change between {limits}."


def _legend(shown: list[Change], *, is_brief: bool) -> Iterator[str]:
    """Explain the columns of the changes."""
    if shown and is_brief:
        yield f"Effect: {_EFFECT}."
        return
    if shown:
        limit = ", for the largest changes" if any(it.effect_ns is None for it in shown) else ""
        yield (
            "Times and counts are a step's, those of calls without their waits; the effect is "
            f"{_EFFECT}{limit}."
        )
    if any(max(len(it.base_names), len(it.new_names)) > 1 for it in shown):
        yield "Of several names, the one that takes longest is shown; --json has all."


def _notes(diff: Findings, shown: list[Change], *, is_brief: bool) -> Iterator[str]:
    """Return what the verdict rests on, then what the tables mean, then what holds for one side."""
    if not diff.is_one_program:
        yield from (*diff.reasons, *_side_notes(diff))
        return
    yield from (*_interval(diff), *diff.reasons, *_of_cost(diff))
    yield from (*_legend(shown, is_brief=is_brief), *_other_shapes(diff), *_overlaps(diff))
    details = [
        *_paths_of_one_step(diff),
        *(f"Verdict on {name}: {side.verdict.sentence}" for name, side in _named(diff)),
    ]
    if diff.is_related and diff.similarity < (_MOSTLY_ALIKE if is_brief else 1):
        yield f"{share(diff.similarity)} of the launches or operators of both sides correspond."
    yield from (*_recorded_steps(diff), *_side_notes(diff), *_interpreter_lock(diff))
    if is_brief:
        yield _limits(diff)
        yield from _left_out(diff, len(shown), len(details))
    else:
        yield from (*details, *_not_listed(diff, len(shown)))


def _named(diff: Findings) -> list[tuple[Literal["base", "new"], DiffSide]]:
    return [("base", diff.base), ("new", diff.new)]
