"""A comparison as blocks: the verdict, what changed, and which work replaced which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.diff.sentences import KINDS, percent, predicted
from longpole.report.blocks import (
    Column,
    Notes,
    Sentence,
    Table,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.analyses.diff.values import Change, Findings
    from longpole.report.blocks import Block, Cell

__all__ = ["diff_blocks"]

_LEAST_GAIN: Final = 0.005
_LEAST_PATH: Final = 0.002

# If this share of a step is on other kinds, the path of one step counts as different.
_OTHER_PATH: Final = 0.1

_BECAME: Final = ("renamed", "reshaped", "fused", "split", "replaced", "added", "removed")
_COUNTS: Final = {
    "launches": "launches",
    "gpu_activities": "GPU activities with a launch",
    "blocking_calls": "blocking calls",
    "operators": "operators",
}


def diff_blocks(diff: Findings, top: int) -> list[Block]:
    """Show a comparison, with the `top` changes."""
    if diff.is_lost:
        return [Sentence(diff.sentence), Notes(list(diff.reasons))]
    shown = [change for change in diff.changes if change.stands_out][:top]
    tables = [_setups(diff), _lengths(diff)]
    if diff.is_related:
        tables += [
            *(_changes(shown), _predictions(diff), _path(diff), _gains(diff), _counts(diff)),
        ]
    return [
        Sentence(diff.sentence),
        *(table for table in tables if table.rows),
        Notes([*diff.reasons, *_notes(diff, shown)]),
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
    columns: dict[Column, Value] = {
        Column("side"): lambda side: "base" if side is diff.base else "new",
        Column(f"mean {diff.base.unit}", "duration"): "mean_ns",
        Column("as recorded", "duration"): lambda side: (
            None if side.recorded_mean_ns == side.mean_ns else side.recorded_mean_ns
        ),
        Column("median", "duration"): "median_ns",
        Column("noise of steps", "share"): "step_noise",
        Column("steps", "count"): "n_steps",
        Column("runs", "count"): "n_runs",
    }
    return without_empty_columns(tabulated((diff.base, diff.new), columns))


def _changes(changes: list[Change]) -> Table:
    columns: dict[Column, Value] = {
        Column("what changed"): lambda it: f"{KINDS[it.kind]}{_relation(it)}",
        Column("name", "name"): lambda it: None if it.kind == "data_loading" else it.name,
        Column("base", "duration"): lambda it: it.base_ns if it.base_names else None,
        Column("new", "duration"): lambda it: it.new_ns if it.new_names else None,
        Column("change", "change"): lambda it: (
            it.change if it.base_names and it.new_names else None
        ),
        Column("count", "number"): lambda it: None if it.kind == "data_loading" else _numbers(it),
        Column("effect", "number"): _effect,
    }
    return without_empty_columns(tabulated(changes, columns))


def _relation(change: Change) -> str:
    return f", {change.relation}" if change.relation in _BECAME else ""


def _effect(change: Change) -> str | None:
    if change.effect_ns is None:
        return None
    effect_ns = round(change.effect_ns)
    return f"{'+' if effect_ns > 0 else ''}{duration(effect_ns)}"


def _numbers(change: Change) -> str:
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


def _path(diff: Findings) -> Table:
    """Show the critical path by kind; the changes sum to that of the mean step."""
    columns = (
        Column("critical path of a step"),
        Column("base", "duration"),
        Column("new", "duration"),
        Column("difference", "number"),
    )
    least = _LEAST_PATH * max(diff.base.mean_ns, diff.new.mean_ns)
    rows: list[list[Cell]] = [
        [row.kind, row.base_ns, row.new_ns, _signed(row.change_ns)]
        for row in diff.path
        if abs(row.change_ns) >= least
    ]
    rest_ns = sum(row.change_ns for row in diff.path if abs(row.change_ns) < least)
    if rows and rest_ns:
        rows.append(["all other kinds", None, None, _signed(rest_ns)])
    return Table(columns, rows)


def _gains(diff: Findings) -> Table:
    """Show what limits each side, according to its verdict."""
    columns = (
        Column("shorter without, up to"),
        Column("base", "share"),
        Column("new", "share"),
    )
    base, new = diff.base.verdict.gains, diff.new.verdict.gains
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


def _of(diff: Findings) -> str:
    if diff.new.n_steps == diff.new.n_runs == 1:
        return "Against each other step the change lies"
    if diff.base.n_runs == diff.new.n_runs == 1:
        return "By the steps of these two recordings, which are one run each, the change lies"
    return "With 95 % confidence, the change lies"


def _signed(time_ns: float) -> str:
    whole = round(time_ns)
    return f"{'+' if whole > 0 else ''}{duration(whole)}"


def _paths_of_one_step(diff: Findings) -> Iterator[str]:
    """Report where the path of one step, as in `longpole path`, contains other work."""
    for name, side in (("base", diff.base), ("new", diff.new)):
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


def _notes(diff: Findings, shown: list[Change]) -> Iterator[str]:
    if not diff.is_related:
        return
    if diff.interval is not None and diff.n_differences:
        low, high = diff.interval
        limits = f"{percent(low)} and {percent(high)}"
        yield f"{_of(diff)} between {limits}, the gate is {share(diff.gate)}."
    n_certain = sum(change.stands_out for change in diff.changes)
    if n_certain > len(shown):
        more = count(n_certain - len(shown), "more change")
        yield f"{more} beyond the noise of the steps: see --top and --json."
    if shown:
        limit = ", for the largest changes" if any(it.effect_ns is None for it in shown) else ""
        yield (
            "Times and counts are a step's, those of calls without their waits; the effect is what "
            f"the change alone does to the step, recomputed with the dependency graph{limit}."
        )
    yield from _paths_of_one_step(diff)
    if diff.similarity < 1:
        yield f"{share(diff.similarity)} of the launches or operators of both sides correspond."
    for name, side in (("base", diff.base), ("new", diff.new)):
        yield f"Verdict on {name}: {side.verdict.sentence}"
