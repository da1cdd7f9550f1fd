"""How the gain of a remedy is computed: what it changes in the dependency graph, and where."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Insert, RemoveWait, Replace, Scale
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.words.wording import count, duration, duration_range, share, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.answer import Remedy
    from longpole.cli.answer.windows import Found
    from longpole.engine.critical_path import Change
    from longpole.report.blocks import Block, Cell
    from longpole.trace.trace import Trace

_MOST_SEGMENTS: Final = 10
_WIDEST: Final = 40


def remedy_blocks(trace: Trace, found: Found, remedy: Remedy, n_steps: int) -> list[Block]:
    """Show the changes from which the gain of a remedy is computed, and what they apply to."""
    if not remedy.changes and not remedy.hopeful_changes:
        return []
    return [
        Sentence("Computed from these changes of the dependency graph:"),
        _changes(trace, remedy, n_steps),
        *_segments(trace, found, remedy),
        Notes([_in_python(found, remedy)]),
    ]


def _changes(trace: Trace, remedy: Remedy, n_steps: int) -> Table:
    """List the changes of the lower bound, and those of the upper bound if they differ."""
    least, most = remedy.changes, remedy.hopeful_changes
    sets = {"at least": least, "at most": most} if least != most else {"always": least}
    number_of = f"number in {n_steps} steps" if n_steps > 1 else "number"
    columns = (Column("bound"), Column("change"), Column("of"), Column(number_of, "count"))
    rows: list[Sequence[Cell]] = [
        (bound, *row) for bound, changes in sets.items() for row in _alike(trace, changes)
    ]
    return Table(columns, rows)


def _alike(trace: Trace, changes: Sequence[Change]) -> Iterator[tuple[str, str, int | None]]:
    """Yield the changes grouped by effect and kind: effect, what they apply to, number."""
    groups: dict[tuple[type, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((type(change), _kind_of(trace, change)), []).append(change)
    for (_, what), alike in groups.items():
        parts = [change.events or change.time_ranges for change in alike]
        number_of = sum(len(rows) for rows in parts if rows is not None)
        yield _effect(alike), what, number_of if all(rows is not None for rows in parts) else None


def _kind_of(trace: Trace, change: Change) -> str:
    if change.time_ranges is not None:
        return "parts of threads"
    if change.kind is not None:
        return change.kind
    [name] = trace.core.event_names([next(iter(change.events or (0,)))])
    return f"{short_name(name, _WIDEST)} and its like" if change.events else "all work"


def _effect(alike: Sequence[Change]) -> str:
    """Describe the effect of changes of one kind."""
    first = alike[0]
    if isinstance(first, RemoveWait):
        return "no wait"
    if isinstance(first, Drop):
        return "takes no time"
    if isinstance(first, Scale):
        factors = sorted(float(it.by) for it in alike if isinstance(it, Scale))
        least, most = (f"{factor:.2g}" for factor in (factors[0], factors[-1]))
        return f"time x {least}" if least == most else f"time x {least} to {most}"
    times_ns = [it.time_ns for it in alike if isinstance(it, Replace | Insert)]
    times = duration_range(min(times_ns), max(times_ns))
    return f"takes {times}" if isinstance(first, Replace) else f"{times} added"


class _Changed(NamedTuple):
    """What changes apply to."""

    events: dict[str | None, set[int]]
    """Events, by the kind of their time; None for any."""
    spans: dict[int, list[tuple[int, int]]]
    """Start and end of time ranges, by lane; sorted, and they do not overlap."""
    kinds: set[str]
    """Kinds of which all time changes."""

    def has(self, kind: str, event: int | None, lane: int | None, start_ns: int) -> bool:
        """Whether they apply to a segment."""
        known = (self.events.get(name, ()) for name in (None, kind))
        spans = [] if lane is None else self.spans.get(lane, [])
        place = bisect_right(spans, start_ns, key=itemgetter(0)) - 1
        is_inside = place >= 0 and start_ns < spans[place][1]
        return kind in self.kinds or is_inside or any(event in events for events in known)


def _changed(trace: Trace, changes: Sequence[Change]) -> _Changed:
    found = _Changed({}, {}, set())
    time_ranges: list[tuple[int, int, int]] = []
    places = trace.events.select("lane", "start_ns", "duration_ns")
    for change in changes:
        if isinstance(change, Insert):
            continue
        if change.time_ranges is not None:
            time_ranges.extend(change.time_ranges)
        elif change.events is not None:
            found.events.setdefault(change.kind, set()).update(change.events)
            if change.kind is None and not isinstance(change, RemoveWait):
                rows = places[list(change.events)].drop_nulls().rows()
                time_ranges.extend((lane, at, at + length) for lane, at, length in rows)
        elif change.kind is not None:
            found.kinds.add(change.kind)
    for lane, start_ns, end_ns in sorted(time_ranges):
        spans = found.spans.setdefault(lane, [])
        if spans and start_ns <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end_ns, spans[-1][1]))
        else:
            spans.append((start_ns, end_ns))
    return found


def _segments(trace: Trace, found: Found, remedy: Remedy) -> list[Block]:
    """Show the longest segments of the path to which the changes apply.

    Waits are not among them: the path runs through what they wait for.
    """
    changed = _changed(trace, [*remedy.changes, *remedy.hopeful_changes])
    columns = ("kind", "event", "lane", "start_ns", "duration_ns", "name")
    path = found.path
    rows = [row for row in path.segments.select(columns).rows() if changed.has(*row[:4])]
    if not rows:
        return []
    total_ns = sum(row[4] for row in rows)
    longest = sorted(rows, key=lambda row: -row[4])[:_MOST_SEGMENTS]
    which = f"; the {len(longest)} longest" if len(rows) > len(longest) else ""
    table = Table(
        (
            Column("time", "duration"),
            Column("share", "share"),
            Column("kind"),
            Column("name", "name"),
            Column("event", "event"),
        ),
        [(it[4], it[4] / path.length_ns, it[0], it[5], it[1]) for it in longest],
    )
    told = (
        f"They change {duration(total_ns)} ({share(total_ns / path.length_ns)}) of the critical "
        f"path of {_shown(found)}, in {count(len(rows), 'segment')}{which}:"
    )
    return [Sentence(told), table]


def _shown(found: Found) -> str:
    return found.name if found.is_part else f"the {found.name}"


def _in_python(found: Found, remedy: Remedy) -> str:
    """Return the code that returns the gain, and the path of the shown window."""
    step = "" if found.step is None else f"step={found.step}"
    return (
        "In Python: `[remedy, *_] = [it for it in trace.verdict().remedies if it.remedy == "
        f'"{remedy.remedy}"]` has the gain; `trace.critical_path({step}).what_if(remedy.changes)` '
        f"applies the changes to {_shown(found)} alone."
    )
