"""Critical paths as blocks for a terminal or report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.report.blocks import (
    Bar,
    Chart,
    Column,
    Notes,
    Sentence,
    Table,
    Value,
    color_of,
    tabulated,
)
from longpole.words.data import Row
from longpole.words.kernel_names import kernel_label
from longpole.words.path_kinds import MEANINGS, name_outside_operators
from longpole.words.wording import clock_error, count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.report.blocks import Block

_SMALLEST_SHARE: Final = 0.01
_DOUBT: Final = "which may have another cause or follows an unexplained gap"
_RECORD_LAUNCHES: Final = (
    "Record three or more launches of the graph, which show what its nodes wait for."
)
_ALWAYS_TOLD: Final = frozenset({"unexplained", "graph_gap"})
_NAMES: Final[dict[Column, Value]] = {
    Column("share", "share"): "share",
    Column("time", "duration"): "duration_ns",
    Column("count", "count"): "count",
    Column("kind"): "kind",
}
_SUMS: Final = ("duration_ns", "count", "share")
_EVENT: Final = Column("event", "event")


class KindTotal(Row):
    """The time of one kind on a path."""

    kind: str | None
    duration_ns: int
    share: float
    """Time as a fraction of the window."""
    count: int


class NameTotal(KindTotal):
    """The time of one kind and name on a path."""

    name: str | None
    longest_event: int | None


class _PathSummary(Protocol):
    """The values that an explanation of a path is made of."""

    @property
    def length_ns(self) -> int: ...
    @property
    def times(self) -> str: ...
    @property
    def inferred_ns(self) -> int: ...
    @property
    def doubtful_ns(self) -> int: ...
    @property
    def undecided_ns(self) -> int: ...
    @property
    def clock_shifts(self) -> tuple[tuple[int | None, int | None, int], ...]: ...
    @property
    def status(self) -> str: ...
    @property
    def damage(self) -> object | None: ...
    @property
    def kind_totals(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def name_totals(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def waits(self) -> tuple[int, int]: ...
    def operators_of(self, events: Sequence[int]) -> Sequence[str | None]: ...


def path_blocks(path: _PathSummary, top: int) -> list[Block]:
    """Show a path: a chart of its kinds, the `top` names that take the most time, and warnings."""
    blocks: list[Block] = [
        Sentence(f"Total {duration(path.length_ns)} {path.times}:"),
        kinds_chart(path),
    ]
    names = _together(path.name_totals)[:top]
    if names:
        blocks.append(_names(path, names))
    notes = _notes(path)
    return [*blocks, Notes(notes)] if notes else blocks


def _together(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add up the rows of segments outside operators that have the same name, longest first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        name = name_outside_operators(row["kind"], row["name"])
        same = found.setdefault(
            (row["kind"], name), {**row, "name": name} | dict.fromkeys(_SUMS, 0)
        )
        for each in _SUMS:
            same[each] += row[each]
        if same["longest_event"] is None:
            same["longest_event"] = row["longest_event"]
    return sorted(found.values(), key=lambda row: -row["duration_ns"])


def _name_of(row: Mapping[str, Any]) -> str | None:
    """Return the name of a row; XProf calls a launch as its kernel."""
    name: str | None = row["name"]
    kernel = kernel_label(name) if name is not None and row["kind"] == "runtime" else None
    return name if kernel is None else f"launch of {kernel}"


def _names(path: _PathSummary, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Show the names that take the most time; GPU activities by operator, if known."""
    launched = [
        row["longest_event"]
        for row in rows
        if row["longest_event"] is not None and row["kind"] != "communication"
    ]
    known = dict(zip(launched, path.operators_of(launched), strict=True))
    operators = [known.get(row["longest_event"]) for row in rows]
    columns, texts = [*_NAMES], tabulated(rows, _NAMES).rows
    names = [_name_of(row) for row in rows]
    if any(operators):
        columns += [Column("name or operator", "name"), Column("kernel of the longest", "name")]
        shown = [
            [operator or name, name if operator else None]
            for operator, name in zip(operators, names, strict=True)
        ]
    else:
        columns.append(Column("name", "name"))
        shown = [[name] for name in names]
    events = [row["longest_event"] for row in rows]
    cells = [[*row, *name, event] for row, name, event in zip(texts, shown, events, strict=True)]
    return Table([*columns, _EVENT], cells)


def kinds_chart(path: _PathSummary) -> Chart:
    """Return the parts of a path by kind, largest first; small ones are combined."""
    kinds = [(row["kind"], row["duration_ns"], row["share"]) for row in path.kind_totals]
    rows = [row for row in kinds if row[2] >= _SMALLEST_SHARE or row[0] in _ALWAYS_TOLD]
    bars = [
        Bar(part, duration(time_ns), f"{MEANINGS.get(kind, kind)} ({kind})", color_of(kind))
        for kind, time_ns, part in rows
    ]
    rest_ns = path.length_ns - sum(time_ns for _, time_ns, _ in rows)
    if rest_ns:
        bars.append(Bar(rest_ns / path.length_ns, duration(rest_ns), "all other kinds", "wait"))
    return Chart(bars)


def _notes(path: _PathSummary) -> list[str]:
    """Report the uncertain parts of the path."""
    notes = [_inferred(path), _doubtful(path), *_shifted(path), _early(path), _undecided(path)]
    if path.status == "inconclusive":
        notes.append(
            "More than a tenth of the path is unexplained: its other shares may be too small."
        )
    return [note for note in notes if note is not None]


def _inferred(path: _PathSummary) -> str | None:
    n_inferred, n_waits = path.waits
    parts = []
    if n_inferred:
        of = "all" if n_inferred == n_waits > 1 else f"{n_inferred:,} of"
        waits = "the only wait" if n_waits == 1 else f"{of} {count(n_waits, 'wait')}"
        parts.append(f"{waits} on the path")
    if path.inferred_ns:
        of = "its time" if parts else "the path"
        parts.append(f"{share(path.inferred_ns / path.length_ns)} of {of}")
    return f"Inferred, not recorded: {' and '.join(parts)}." if parts else None


def _doubtful(path: _PathSummary) -> str | None:
    if not path.doubtful_ns >= _SMALLEST_SHARE * path.length_ns > 0:
        return None
    return f"Doubtful: {share(path.doubtful_ns / path.length_ns)} of the path, {_DOUBT}."


def _early(path: _PathSummary) -> str | None:
    n_early = path.counts.get("clock_skew", 0)
    if not n_early:
        return None
    return (
        f"{count(n_early, 'GPU activity', 'GPU activities')} began before "
        f"{'the call that launched it' if n_early == 1 else 'the calls that launched them'}: "
        "the clocks of host and device differ."
    )


def _undecided(path: _PathSummary) -> str | None:
    if not path.undecided_ns >= _SMALLEST_SHARE * path.length_ns > 0:
        return None
    part = share(path.undecided_ns / path.length_ns)
    # In a damaged trace, the launches that were not found may be among the missing records.
    advice = "" if path.damage else f" {_RECORD_LAUNCHES}"
    return (
        f"Undecided: {part} of the path leads to graph nodes that ended at the same time.{advice}"
    )


def _shifted(path: _PathSummary) -> Iterator[str]:
    """Yield a note for each device whose timestamps the path shifts."""
    shifts_ns: dict[int | None, list[int]] = {}
    for device, _, shift_ns in path.clock_shifts:
        shifts_ns.setdefault(device, []).append(shift_ns)
    for device, own_ns in shifts_ns.items():
        name = "A device" if device is None else f"Device {device}"
        if len(own_ns) == 1:
            has = f"has a clock {clock_error(own_ns[0])}"
        else:
            jumps = count(len(own_ns) - 1, "time")
            least, most = clock_error(max(own_ns)), clock_error(min(own_ns))
            has = f"has a clock that jumps {jumps}, between {least} and {most}"
        yield f"{name} {has}; its activities are moved by that."
