"""The critical path in time order, with consecutive segments of one operator in one row."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.report.blocks import Column, Table
from longpole.words.data import Row
from longpole.words.kernel_names import kernel_label
from longpole.words.path_kinds import name_outside_operators
from longpole.words.wording import duration, operator_name, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.engine.critical_path.path import CriticalPath
    from longpole.report.blocks import Cell
    from longpole.trace.trace import Trace

_ON_DEVICE: Final = frozenset(
    (
        *("kernel", "copy", "communication", "launch", "kernel_delay", "stream_overlap"),
        *("event_wait", "graph_gap"),
    )
)
_STEP: Final = "ProfilerStep#"
_MOST_NAMES: Final = 2
_WIDEST: Final = 40
_INPUTS: Final = ("Input Dims", "Input dims")


class PathRow(Row):
    """Consecutive segments of a path that belong to one operator, function or annotation."""

    start_ns: int
    """Time from the start of the window."""
    duration_ns: int
    share: float
    """Time as a fraction of the window."""
    side: str
    """`device` or `host`."""
    name: str
    """The outermost operator around the segments, or around the call that launched them; for data
    loading its annotation; otherwise the name of the segments.
    """
    annotation: str | None
    """The innermost annotation around the segments, except steps."""
    kind: str
    """The kind that takes the most of its time."""
    count: int
    """Number of segments."""
    event: int | None
    """The event of the longest segment."""
    inputs: str | None
    """The sizes of the inputs of that operator, as recorded."""


class _Segment(NamedTuple):
    side: str
    name: str
    annotation: str | None
    kind: str
    event: int | None
    operator: int | None
    start_ns: int
    duration_ns: int


def in_order(path: CriticalPath, trace: Trace) -> list[PathRow]:
    """Return the sections of a path in time order; they cover its window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::linear", (0, 20)).operator("aten::mm", (5, 20))
    >>> trace = builder.launch("gemm", call=(6, 9), work=(10, 60)).read()
    >>> [(row["side"], row["name"]) for row in in_order(trace.critical_path(), trace)]
    [('host', 'aten::linear'), ('device', 'aten::linear')]
    """
    start_ns, _ = path.window
    length_ns = max(path.length_ns, 1)
    sizes = _sizes(trace)
    found = []
    for (side, name, annotation), alike in groupby(_segments(path, trace), key=lambda it: it[:3]):
        segments = list(alike)
        duration_ns = sum(segment.duration_ns for segment in segments)
        longest = max(segments, key=lambda segment: segment.duration_ns)
        found.append(
            PathRow(
                start_ns=segments[0].start_ns - start_ns,
                duration_ns=duration_ns,
                share=duration_ns / length_ns,
                side=side,
                name=name,
                annotation=annotation,
                kind=_most([(segment.kind, segment.duration_ns) for segment in segments])[0][0],
                count=len(segments),
                event=longest.event,
                inputs=sizes.get(longest.operator) if longest.operator is not None else None,
            )
        )
    return found


def _sizes(trace: Trace) -> dict[int, str]:
    """Return the input sizes of operators, if recorded."""
    arguments = trace.args("cpu_op")
    column = next((it for it in _INPUTS if arguments is not None and it in arguments.columns), None)
    if arguments is None or column is None:
        return {}
    return dict(arguments.select("event", arguments[column].cast(str)).drop_nulls().rows())


def _segments(path: CriticalPath, trace: Trace) -> Iterator[_Segment]:
    """Return the segments of a path with the operator, function or annotation of each."""
    around = _Around(trace)
    columns = ("kind", "event", "name", "start_ns", "duration_ns")
    for kind, event, name, start_ns, duration_ns in path.segments.select(columns).rows():
        side = "device" if kind in _ON_DEVICE else "host"
        operator, annotation = (None, None) if event is None else around.find(event)
        known = None if operator is None else around.name(operator)
        if kind == "data_loading":
            known, operator = annotation, None
        told = known or _name_of(kind, name)
        yield _Segment(side, told, annotation, kind, event, operator, start_ns, duration_ns)


def _name_of(kind: str, name: str | None) -> str:
    """Return the name of a segment outside operators."""
    told = name_outside_operators(kind, name)
    return kernel_label(told) or told


class _Around:
    """The outermost operator and the innermost annotation around events."""

    def __init__(self, trace: Trace) -> None:
        events = trace.events.select("parent", "kind", "name")
        self._parents = events["parent"].to_list()
        self._kinds = events["kind"].cast(str).to_list()
        self._names = events["name"].cast(str).to_list()
        launches = trace.launches.select("event", "call")
        self._calls = dict(launches.drop_nulls().rows())
        self._known: dict[int, tuple[int | None, str | None]] = {}

    def name(self, event: int) -> str | None:
        name: str | None = self._names[event]
        return name

    def find(self, event: int) -> tuple[int | None, str | None]:
        if event not in self._known:
            self._known[event] = self._find(event)
        return self._known[event]

    def _find(self, event: int) -> tuple[int | None, str | None]:
        operator: int | None = None
        annotation: str | None = None
        place: int | None = self._calls.get(event, event)
        while place is not None:
            kind, name = self._kinds[place], self._names[place]
            if kind == "operator":
                operator = place
            elif kind == "annotation" and annotation is None and not name.startswith(_STEP):
                annotation = name
            place = self._parents[place]
        return operator, annotation


def _most(parts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sum the time of each name, longest first."""
    total_ns: dict[str, int] = {}
    for name, duration_ns in parts:
        total_ns[name] = total_ns.get(name, 0) + duration_ns
    return sorted(total_ns.items(), key=lambda row: -row[1])


def sections_table(sections: Sequence[PathRow], top: int) -> Table:
    """Show the `top` longest sections in time order; the others between them are combined."""
    ranked = sorted(range(len(sections)), key=lambda place: -sections[place]["duration_ns"])
    chosen = set(ranked[:top])
    rows = []
    for _, alike in groupby(
        enumerate(sections), key=lambda pair: pair[0] if pair[0] in chosen else None
    ):
        run = [row for _, row in alike]
        rows.append(_alone(run[0]) if len(run) == 1 else _together(run))
    columns = [
        Column("start", "duration"),
        Column("time", "duration"),
        Column("share", "share"),
        Column("side"),
        Column("operator or event", "name"),
        Column("mostly"),
        Column("event", "event"),
    ]
    return Table(columns, rows)


def _alone(row: PathRow) -> Sequence[Cell]:
    name = operator_name(row["name"], row["inputs"])
    times = row["start_ns"], row["duration_ns"], row["share"]
    return (*times, row["side"], name, row["kind"], row["event"])


def _together(run: Sequence[PathRow]) -> Sequence[Cell]:
    """Combine short sections into one row: the names with most of their time, and the longest."""
    names = _most([(row["name"], row["duration_ns"]) for row in run])
    sides = {row["side"] for row in run}
    longest = max(run, key=lambda row: row["duration_ns"])
    told = [f"{short_name(name, _WIDEST)} {duration(of_ns)}" for name, of_ns in names[:_MOST_NAMES]]
    rest = ", …" if len(names) > _MOST_NAMES else ""
    return (
        run[0]["start_ns"],
        sum(row["duration_ns"] for row in run),
        sum(row["share"] for row in run),
        sides.pop() if len(sides) == 1 else "both",
        f"{len(run):,} parts: {', '.join(told)}{rest}",
        _most([(row["kind"], row["duration_ns"]) for row in run])[0][0],
        longest["event"],
    )
