"""A comparison for people: the verdict, what changed, and what became of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.diff.sentences import KINDS, percent
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.analyses.diff.values import Change, Findings
    from longpole.report.blocks import Block, Cell

__all__ = ["diff_blocks"]

_LEAST_GAIN: Final = 0.005
_LEAST_PATH: Final = 0.002
_BECAME: Final = ("renamed", "reshaped", "fused", "split", "replaced", "added", "removed")
_COUNTS: Final = {
    "launches": "launches",
    "gpu_activities": "GPU activities",
    "blocking_calls": "blocking calls",
    "operators": "operators",
}
_CHANGES: Final = (
    Column("what changed"),
    Column("name", "name"),
    Column("base", "duration"),
    Column("new", "duration"),
    Column("change", "change"),
    Column("count", "number"),
    Column("effect", "number"),
)


def diff_blocks(diff: Findings, top: int) -> list[Block]:
    """Show a comparison, with the `top` changes."""
    shown = [change for change in diff.changes if change.stands_out][:top]
    tables = [_setups(diff), _lengths(diff)]
    if diff.is_related:
        tables += [_changes(shown), _path(diff), _gains(diff), _counts(diff)]
    return [
        Sentence(diff.sentence),
        *(table for table in tables if table.rows),
        Notes([*diff.reasons, *_notes(diff, len(shown))]),
    ]


def _setups(diff: Findings) -> Table:
    """Show in what the machines and the software of the two sides differ."""
    columns = (Column("what differs"), Column("base", "name"), Column("new", "name"))
    rows: list[list[Cell]] = [[row.what, row.base, row.new] for row in diff.setups if row.differs]
    return Table(columns, rows)


def _lengths(diff: Findings) -> Table:
    """Show how long steps take, and how much they differ."""
    first = "step" if diff.base.unit == "step" else diff.base.unit
    columns = (
        Column("side"),
        Column(f"mean {first}", "duration"),
        Column("median", "duration"),
        Column("noise of steps", "share"),
        Column("steps", "count"),
        Column("runs", "count"),
    )
    rows: list[list[Cell]] = [
        [name, side.mean_ns, side.median_ns, side.step_noise, side.n_steps, side.n_runs]
        for name, side in (("base", diff.base), ("new", diff.new))
    ]
    return Table(columns, rows)


def _changes(changes: list[Change]) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{KINDS[change.kind]}{_relation(change)}",
            None if change.kind == "data_loading" else change.name,
            change.base_ns if change.base_names else None,
            change.new_ns if change.new_names else None,
            change.change if change.base_names and change.new_names else None,
            None if change.kind == "data_loading" else _numbers(change),
            _effect(change),
        ]
        for change in changes
    ]
    return Table(_CHANGES, rows)


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
    """Show what holds each side up, as its verdict has it."""
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
    columns = (Column("number in a step"), Column("base", "number"), Column("new", "number"))
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
    return "With 95 % confidence, the change lies"


def _signed(time_ns: float) -> str:
    whole = round(time_ns)
    return f"{'+' if whole > 0 else ''}{duration(whole)}"


def _notes(diff: Findings, n_shown: int) -> Iterator[str]:
    if not diff.is_related:
        return
    if diff.interval is not None and diff.n_differences:
        low, high = diff.interval
        limits = f"{percent(low)} and {percent(high)}"
        yield f"{_of(diff)} between {limits}, the gate is {share(diff.gate)}."
    n_certain = sum(change.stands_out for change in diff.changes)
    if n_certain > n_shown:
        more = count(n_certain - n_shown, "more change")
        yield f"{more} beyond the noise of the steps: see --top and --json."
    if n_shown:
        yield (
            "Times and counts are a step's; the effect is what the change alone does to the step, "
            "by the graph of the critical path timed anew."
        )
    if diff.similarity < 1:
        yield f"{share(diff.similarity)} of the launches or operators of both sides correspond."
    for name, side in (("base", diff.base), ("new", diff.new)):
        yield f"Verdict on {name}: {side.verdict.sentence}"
