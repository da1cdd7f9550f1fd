"""The sections of a page about a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.diff.sentences import percent
from longpole.cli.answer.overview import memory_words, tiles
from longpole.critical_path.explain import MEANINGS
from longpole.plot.diff_lanes import diff_lanes
from longpole.report.blocks import Bar, Column, Notes, Sentence, tabulated
from longpole.report.colors import color_of
from longpole.report.overview import Stack
from longpole.report.sections import Section
from longpole.wording import count, duration, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.diff import Diff
    from longpole.report.overview import Tiles
    from longpole.report.sections import Part
    from longpole.trace import Trace

__all__ = ["diff_sections"]

_MOST_WORK: Final = 200
_LEAST: Final = 0.01
_WORK: Final = {
    Column("kind"): "kind",
    Column("name", "name"): "name",
    Column("base count", "count"): "base_counts",
    Column("new count", "count"): "new_counts",
    Column("base", "duration"): "base_total_duration_ns",
    Column("new", "duration"): "new_total_duration_ns",
    Column("difference", "duration"): "diff_duration_ns",
    Column("count"): "counts_change_categories",
}


def diff_sections(
    found: Diff,
    base: Sequence[Trace],
    new: Sequence[Trace],
    *,
    top: int,
    step_name: str | None = None,
) -> list[Section]:
    """Show the verdict next to a step of each side, what changed, and all work by name."""
    _, *rest = found.blocks(top)
    headline, *more = _sentences(found)
    drawn = diff_lanes(found, base, new, step_name=step_name)
    return [
        Section(
            "verdict", "Verdict", [headline, *_figures(found), *more, *([drawn] if drawn else [])]
        ),
        Section("changes", "What changed", rest),
        Section("table", "All work by name", _all_work(found), is_folded=True),
    ]


def _sentences(found: Diff) -> list[Sentence]:
    """Split the answer: how much changed is the headline; what changed follows the figures."""
    first, stop, more = found.sentence.partition(". ")
    return [Sentence(f"{first}."), Sentence(more)] if stop else [Sentence(first)]


def _figures(found: Diff) -> list[Part]:
    """Return the figures of both sides and their critical paths as bars on one scale."""
    if found.is_lost:
        return []
    return [_tiles(found), *(_path_stacks(found) if found.is_related else [])]


def _tiles(found: Diff) -> Tiles:
    base, new = found.base, found.new
    memory = (base.peak_memory_bytes, new.peak_memory_bytes)
    limits = [side.verdict.limit for side in (base, new)]
    counts = {row.what: f"{number(row.base)} → {number(row.new)}" for row in found.counts}
    lengths = [duration(round(side.mean_ns)) for side in (base, new)]
    steps = " and ".join(count(side.n_steps, base.unit) for side in (base, new))
    return tiles(
        [
            (f"Mean {base.unit}", " → ".join(lengths), steps),
            ("Change", None if found.change is None else percent(found.change), _interval(found)),
            ("Limited by", " → ".join(dict.fromkeys(it[0] for it in limits if it)) or None, ""),
            ("Launches", counts.get("launches") if found.is_related else None, f"in a {base.unit}"),
            (
                "Memory peak",
                None
                if None in memory
                else " → ".join(dict.fromkeys(memory_words(it) for it in memory if it)),
                "allocated on a device",
            ),
        ]
    )


def _interval(found: Diff) -> str:
    if found.change_on_one_machine is not None:
        return f"{percent(found.change_on_one_machine)} at the speed of the base"
    if found.interval is None:
        return ""
    low, high = found.interval
    return f"between {percent(low)} and {percent(high)}"


def _path_stacks(found: Diff) -> list[Stack]:
    """Divide the mean critical path of each side by kind, with the same kinds on both sides."""
    sides = {
        "base": [(row.kind, row.base_ns) for row in found.path],
        "new": [(row.kind, row.new_ns) for row in found.path],
    }
    lengths = {name: sum(time_ns for _, time_ns in rows) for name, rows in sides.items()}
    if min(lengths.values()) <= 0:
        return []
    longest_ns = max(lengths.values())
    shown = {
        kind
        for name, rows in sides.items()
        for kind, time_ns in rows
        if time_ns >= _LEAST * lengths[name]
    }
    return [
        Stack(
            f"Critical path of {name}, {duration(round(lengths[name]))} in the mean",
            _bars([row for row in rows if row[0] in shown], lengths[name]),
            lengths[name] / longest_ns,
        )
        for name, rows in sides.items()
    ]


def _bars(rows: Sequence[tuple[str, float]], length_ns: float) -> list[Bar]:
    """Return the parts of a path of a given length; what is not in the rows is one part."""
    bars = [
        Bar(
            time_ns / length_ns,
            duration(round(time_ns)),
            f"{MEANINGS.get(kind, kind)} ({kind})",
            color_of(kind),
        )
        for kind, time_ns in rows
    ]
    rest_ns = length_ns - sum(time_ns for _, time_ns in rows)
    if round(rest_ns) > 0:
        bars.append(Bar(rest_ns / length_ns, duration(round(rest_ns)), "all other kinds", "wait"))
    return bars


def _all_work(found: Diff) -> list[Part]:
    """List the work of both sides by name, largest change first."""
    records = found.records()
    table = tabulated(records[:_MOST_WORK], _WORK)
    more = len(records) - len(table.rows)
    return [table, *([Notes([f"{count(more, 'more name')}."])] if more else [])]
