"""A comparison as blocks: the verdict, what changed, and which work replaced which."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from longpole.diffs.notes import details_of, notes_of
from longpole.diffs.sentences import mean_of, predicted
from longpole.report.blocks import (
    Column,
    Notes,
    Sentence,
    Table,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.words.wording import count, duration, duration_range, listing, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.diffs.values import Change, Findings, PathChange
    from longpole.report.blocks import Block, Cell

# Rows of the changes and of the kinds of time, if the answer is to fit on one screen.
_FEW_ROWS: Final = 5
_FEW_KINDS: Final = 4

_LEAST_GAIN: Final = 0.005
_LEAST_PATH: Final = 0.002

# Changes of a smaller share of the step are counted but not shown.
_LEAST_SHOWN: Final = 0.001

_BECAME: Final = {"reshaped": "reshaped", "added": "added", "removed": "removed"}

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
    "exposed": ("without kernels", "without kernels"),
    "wait": ("wait", "waits"),
    "handover": ("outside operators", "outside operators"),
}
"""Short names of the kinds, which leave space in a table for the names and the effect."""
_UNCOUNTED: Final = frozenset({"data_loading", "exposed", "handover"})
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
    shown = worth[: _few(worth) if top is None else top]
    work = _changes(diff, shown) if diff.is_related else None
    path = _path(diff, _FEW_KINDS if top is None else None) if diff.is_one_program else None
    tables = [_setups(diff), _lengths(diff), work]
    if top is not None and diff.is_one_program:
        tables.append(_predictions(diff))
    tables.append(path)
    if top is not None and diff.is_one_program:
        tables += _details(diff).values()
    left_out = _left_out(diff, len(shown)) if top is None else _not_listed(diff, len(shown))
    return [
        Sentence(diff.sentence),
        *(table for table in tables if table is not None and table.rows),
        Notes([*notes_of(diff, shown, is_brief=top is None), *left_out]),
    ]


def _few(changes: list[Change]) -> int:
    """Return how many changes fit on one screen; work that replaced other work takes two rows."""
    rows = accumulate(1 + (it.relation in _REPLACED) for it in changes)
    return sum(n_rows <= _FEW_ROWS for n_rows in rows)


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
                None if it.kind in _UNCOUNTED else _numbers(it, is_part=is_part),
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
        Column("remedy"): lambda it: it.remedy,
        Column("came true"): lambda it: "yes" if it.came_true else "no",
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


def _gains(diff: Findings) -> Table:
    """Show what limits each side, according to its verdict."""
    columns = (
        Column("shorter without, up to"),
        Column("base", "share"),
        Column("new", "share"),
    )
    base, new = (
        {side: gain.high for side, gain in verdict.gains.items()}
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


def _signed(time_ns: float) -> str:
    whole = round(time_ns)
    return f"{'+' if whole > 0 else ''}{duration(whole)}"


def _left_out(diff: Findings, n_shown: int) -> Iterator[str]:
    """Count what does not fit on one screen, and name the options that show it."""
    if not diff.is_one_program:
        return
    n_worth = len(_worth_showing(diff)) if diff.is_related else 0
    n_kinds = len(_moved_kinds(diff)[_FEW_KINDS:])
    rest = [
        count(n_worth - n_shown, "change") if n_worth > n_shown else "",
        f"{count(n_kinds, 'kind')} of time" if n_kinds else "",
        "the predicted gains" if any(not row.is_alone for row in diff.predictions) else "",
        *_details(diff),
        count(len(details_of(diff)), "note"),
    ]
    top = max(n_worth, _FEW_ROWS)
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
