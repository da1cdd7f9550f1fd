"""Joins the nodes of CUDA graphs with the calls that captured them.

A replayed kernel is linked to the launch of its graph but not to an operator: the operators ran
once, while the graph was captured. A trace of the capture contains them, around calls that launched
nothing. Node and call are joined by the number of the node if both have it, else by order, since
the nodes of a graph are numbered as they were captured.

Limits: without node numbers the order is known only if the graph runs on one stream. A graph is
joined only if exactly one capture has the same number and kinds of nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import polars as pl

from longpole.trace.stacks import Operators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SCHEMA: Final[dict[str, pl.DataType | type[pl.DataType]]] = {
    "event": pl.UInt32,
    "launch": pl.UInt32,
    "graph": pl.Int64,
    "graph_node": pl.Int64,
    "annotation": pl.String,
    "capture": pl.UInt32,
    "captured_call": pl.UInt32,
    "operator_name": pl.String,
    "operators": pl.List(pl.String),
    "joined_by": pl.String,
}
_NODE: Final = "graph node id"
_GRAPH: Final = "graph id"
_ANNOTATION: Final = "name"
_CALLS: Final = ("runtime", "driver")
_OF_BORDER: Final = ("process", "thread", "name", "start_ns", "duration_ns")


class _Trace(Protocol):
    """The parts of a trace used here."""

    @property
    def events(self) -> pl.DataFrame: ...
    @property
    def launches(self) -> pl.DataFrame: ...
    @property
    def api_roles(self) -> pl.DataFrame: ...
    @property
    def categories(self) -> list[str | None]: ...
    def args(
        self, category: str | None, names: Sequence[str] | None = None
    ) -> pl.DataFrame | None: ...


class _Captured(NamedTuple):
    """A call that added a node to a graph."""

    call: int
    kind: str
    node: int | None
    operators: tuple[str, ...]


class _Node(NamedTuple):
    """A GPU activity of a launched graph."""

    event: int
    kind: str
    node: int | None
    stream: tuple[int | None, int | None]
    start_ns: int


class _Graph(NamedTuple):
    """The nodes of one graph launch, in the order of their capture if known."""

    launch: int
    graph: int | None
    nodes: list[_Node]
    is_ordered: bool


Capture = tuple[int, "list[_Captured]"]
"""The number of a trace (0 for the analysed one), and the nodes of one capture in it."""


def graph_nodes(trace: _Trace, capture_traces: Sequence[_Trace]) -> pl.DataFrame:
    """List each GPU activity of a graph launch, with the columns of `Trace.graph_nodes`."""
    graphs = _graphs(trace)
    if not graphs:
        return _frame([])
    sources = [trace, *capture_traces]
    captures = [
        (number, captured)
        for number, source in enumerate(sources)
        for captured in _captures(source)
    ]
    annotations = _arguments(trace, _ANNOTATION)
    chosen = _fitting(graphs, captures)
    of_node = _by_node(captures)
    rows = []
    for graph in graphs:
        number, captured = chosen.get(_key(graph), (0, []))
        for place, node in enumerate(graph.nodes):
            known = None if node.node is None else of_node.get(node.node)
            found = known or ((number, captured[place]) if captured else None)
            joined_by = None if found is None else "node_id" if known else "order"
            rows.append((graph, node, annotations.get(node.event), found, joined_by))
    return _frame(rows)


def _frame(
    rows: Iterable[tuple[_Graph, _Node, object, tuple[int, _Captured] | None, str | None]],
) -> pl.DataFrame:
    """Return rows as the frame of `Trace.graph_nodes`."""
    table = []
    for graph, node, annotation, found, joined_by in rows:
        number, call, operators = None, None, None
        if found is not None:
            number, call, operators = found[0], found[1].call, list(found[1].operators)
        table.append(
            (
                node.event,
                graph.launch,
                graph.graph,
                node.node,
                None if annotation is None else str(annotation),
                number,
                call,
                operators[-1] if operators else None,
                operators,
                joined_by,
            )
        )
    return pl.DataFrame(table, schema=_SCHEMA, orient="row").sort("event")


def _by_node(captures: Sequence[Capture]) -> dict[int, tuple[int, _Captured]]:
    """Return captured calls by node number, for numbers that only one call has."""
    of_node: defaultdict[int, list[tuple[int, _Captured]]] = defaultdict(list)
    for number, captured in captures:
        for call in captured:
            if call.node is not None:
                of_node[call.node].append((number, call))
    return {node: calls[0] for node, calls in of_node.items() if len(calls) == 1}


def _key(graph: _Graph) -> tuple[object, ...]:
    """Return the identity of a graph: its number, else its nodes."""
    if graph.graph is not None:
        return (graph.graph,)
    return (None, *((node.kind, node.stream) for node in graph.nodes))


def _fitting(
    graphs: Sequence[_Graph], captures: Sequence[Capture]
) -> dict[tuple[object, ...], Capture]:
    """Choose the capture of each graph: in order, among captures with its nodes, if equally many.

    Several captures of one graph that ran the same operators are equivalent.
    """
    alike: defaultdict[tuple[str, ...], dict[tuple[object, ...], None]] = defaultdict(dict)
    for graph in graphs:
        if graph.is_ordered:
            alike[tuple(node.kind for node in graph.nodes)].setdefault(_key(graph))
    chosen: dict[tuple[object, ...], Capture] = {}
    for kinds, keys in alike.items():
        fitting = [it for it in captures if tuple(call.kind for call in it[1]) == kinds]
        if len({tuple(call.operators for call in captured) for _, captured in fitting}) == 1:
            chosen |= dict.fromkeys(keys, fitting[0])
        elif len(fitting) == len(keys):
            chosen |= dict(zip(keys, fitting, strict=True))
    return chosen


# Launched graphs.


def _graphs(trace: _Trace) -> list[_Graph]:
    """List graph launches with their nodes, in order of graph and time."""
    roles = trace.api_roles.filter(pl.col("role") == "graph_launch").select(call="event")
    if roles.is_empty():
        return []
    works = (
        trace.launches.join(roles, on="call", how="semi")
        .select("event", "call")
        .join(trace.events.select("event", "kind", "device", "stream", "start_ns"), on="event")
        .sort("call", "start_ns", "event")
    )
    nodes, graph_of = _arguments(trace, _NODE), _arguments(trace, _GRAPH)
    launches: defaultdict[int, list[_Node]] = defaultdict(list)
    for event, call, kind, device, stream, start_ns in works.iter_rows():
        node = nodes.get(event)
        launches[call].append(
            _Node(event, kind, node if isinstance(node, int) else None, (device, stream), start_ns)
        )
    found = []
    for call, of_call in launches.items():
        graph = graph_of.get(of_call[0].event)
        number = graph if isinstance(graph, int) else None
        found.append(_Graph(call, number, *_in_order(of_call)))
    return sorted(found, key=lambda it: (it.graph or 0, it.nodes[0].start_ns))


def _in_order(nodes: list[_Node]) -> tuple[list[_Node], bool]:
    """Sort nodes in capture order, and return whether that order is known."""
    numbers = {node.node for node in nodes}
    if None not in numbers and len(numbers) == len(nodes):
        return sorted(nodes, key=lambda node: node.node or 0), True
    return nodes, len({node.stream for node in nodes}) == 1


# Captured graphs.


def _captures(trace: _Trace) -> Iterator[list[_Captured]]:
    """List the calls of each capture that added nodes to a graph, in time order.

    Other threads of the process, such as that of autograd, take part in a capture.
    """
    is_border = pl.col("name").cast(pl.String).str.contains("BeginCapture|EndCapture")
    borders = trace.events.select("kind", *_OF_BORDER).filter(_is_call()).filter(is_border)
    if not borders.height:
        return
    having = set(trace.launches["call"].drop_nulls())
    nodes, operators = _arguments(trace, _NODE), Operators(trace.events)
    calls = _node_calls(trace)
    starts_ns = [start_ns for _, _, _, start_ns, _, _ in calls]
    for process, begin_ns, end_ns in _spans(borders):
        captured = []
        first, last = bisect_left(starts_ns, begin_ns), bisect_left(starts_ns, end_ns)
        for event, name, of_process, _, parent, role in calls[first:last]:
            if of_process == process and event not in having and parent not in having:
                node = nodes.get(event)
                number = node if isinstance(node, int) else None
                kind = _kind(name, role)
                captured.append(_Captured(event, kind, number, operators.around(parent)))
        if captured:
            yield captured


def _kind(name: str, role: str) -> str:
    if "memset" in name.lower():
        return "fill"
    return "copy" if role in {"copy", "blocking_copy"} else "kernel"


_Call = tuple[int, str, object, int, "int | None", str]


def _node_calls(trace: _Trace) -> list[_Call]:
    """List launch, memcpy and memset calls that are not inside another call."""
    columns = ("event", "kind", "name", "process", "start_ns", "parent")
    roles = trace.api_roles.select("event", pl.col("role").cast(pl.String))
    of_calls = (
        trace.events.select(columns)
        .filter(_is_call())
        .with_columns(pl.col("name").cast(pl.String))
        .join(roles, on="event")
    )
    launches = pl.col("role").is_in(["launch", "copy", "blocking_copy"])
    chosen = of_calls.filter(launches | pl.col("name").str.contains("(?i)memset"))
    inside = pl.col("parent").is_in(chosen["event"].implode())
    outer = chosen.filter(~inside.fill_null(value=False)).sort("start_ns", "event")
    return outer.select("event", "name", "process", "start_ns", "parent", "role").rows()


def _is_call() -> pl.Expr:
    return pl.any_horizontal(pl.col("kind") == kind for kind in _CALLS)


def _spans(borders: pl.DataFrame) -> Iterator[tuple[object, int, int]]:
    """Yield process, start and end of each capture: from the end of a call to the next start."""
    open_ns: dict[tuple[object, object], int] = {}
    for process, thread, name, start_ns, duration_ns in (
        borders.sort("start_ns").select(_OF_BORDER).iter_rows()
    ):
        if "BeginCapture" in str(name):
            open_ns.setdefault((process, thread), start_ns + (duration_ns or 0))
        elif (begin_ns := open_ns.pop((process, thread), None)) is not None:
            yield process, begin_ns, start_ns


def _arguments(trace: _Trace, name: str) -> dict[int, object]:
    """Return an argument of GPU activities and of calls by event, if present."""
    found: dict[int, object] = {}
    for category in trace.categories:
        table = trace.args(category, [name])
        if table is not None and name in table.columns:
            found |= dict(table.select("event", name).drop_nulls().iter_rows())
    return found
