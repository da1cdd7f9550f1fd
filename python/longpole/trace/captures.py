"""Joins the nodes of CUDA graphs with the calls that captured them.

A replayed kernel is linked to the launch of its graph but not to an operator: the operators ran
once, while the graph was captured. A trace of the capture contains them, around calls that launched
nothing. Node and call are joined by the number of the node if both have it, else by order, since
the nodes of a graph are numbered as they were captured.

Limits: without node numbers the order is known only if the graph runs on one stream. A graph is
joined only if exactly one capture has the same number and kinds of nodes. Servers capture a graph
for each of several batch sizes, with equal nodes: a launch belongs to the smallest size that holds
its batch, if the trace contains both. Otherwise it is not joined.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import polars as pl

from longpole.rows.frames import frame_of
from longpole.trace.enclosing import enclosing
from longpole.trace.stacks import Operators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from longpole.trace.enclosing import Core

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
_BORDERS: Final = "BeginCapture|EndCapture"
_SIZED: Final = r"^capture_(\d+)_(\w+)"
"""Annotation of a capture, of vLLM and SGLang: the size of its batch, and the mode."""
_SIZED_FILE: Final = re.compile(r"(?:^|_)bs_(\d+)_")
"""Name of the trace of a capture that SGLang writes for each batch size."""
_HOLD_TOKENS: Final = ("FULL", "PIECEWISE")
"""Modes of vLLM, whose sizes are numbers of tokens."""
_INPUTS: Final = ("Input Dims", "Input type")
_OF_BORDER: Final = ("process", "thread", "name", "start_ns", "duration_ns")


class GraphTrace(Protocol):
    """The parts of a trace that are used for its graphs; see `Trace`."""

    @property
    def core(self) -> Core:
        """The results of the core."""
        ...

    @property
    def path(self) -> Path | None:
        """Path of the trace."""
        ...

    @property
    def capture_traces(self) -> Sequence[GraphTrace]:
        """Traces of the captures of its graphs."""
        ...

    @property
    def graph_nodes(self) -> pl.DataFrame:
        """Each GPU activity of a graph launch, and the call that captured it."""
        ...

    @property
    def events(self) -> pl.DataFrame:
        """All events of the trace."""
        ...

    @property
    def launches(self) -> pl.DataFrame:
        """The launch of each GPU activity."""
        ...

    @property
    def api_roles(self) -> pl.DataFrame:
        """The role of each runtime API call."""
        ...

    @property
    def categories(self) -> list[str | None]:
        """The categories of its events."""
        ...

    def args(self, category: str | None, names: Sequence[str] | None = None) -> pl.DataFrame | None:
        """Return arguments of the events of a category."""
        ...


class _Captured(NamedTuple):
    """A call that added a node to a graph."""

    call: int
    kind: str
    node: int | None
    operators: tuple[str, ...]
    around: tuple[int, ...]
    """Events of these operators."""


class _Capture(NamedTuple):
    """The nodes of one capture."""

    source: int
    """Number of the trace with the capture; 0 for the analysed one."""
    calls: list[_Captured]
    size: int | None
    """Size of the batch for which the graph was captured."""
    mode: str | None

    def holds(self, batch: _Batch) -> bool | None:
        """Whether the graph is large enough for a batch; None if unknown."""
        size = batch.tokens if self.mode in _HOLD_TOKENS else batch.requests
        return None if size is None or self.size is None else size <= self.size


class _Batch(NamedTuple):
    """Numbers of tokens and requests that a server processes in a graph launch; None if unknown."""

    tokens: int | None
    requests: int | None
    """Requests, of a batch without prompts: those of prompts have several tokens."""


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
    batch: _Batch


def graph_nodes(trace: GraphTrace, capture_traces: Sequence[GraphTrace]) -> pl.DataFrame:
    """List each GPU activity of a graph launch, with the columns of `Trace.graph_nodes`."""
    graphs = _graphs(trace)
    if not graphs:
        return _frame([])
    sources = [trace, *capture_traces]
    captures = [it for number, source in enumerate(sources) for it in _captures(source, number)]
    annotations = _arguments(trace, _ANNOTATION)
    chosen = _fitting(graphs, captures, sources)
    of_node = _by_node(captures)
    rows = []
    for graph in graphs:
        capture = chosen.get(graph.launch)
        for place, node in enumerate(graph.nodes):
            known = None if node.node is None else of_node.get(node.node)
            found = known or (capture and (capture.source, capture.calls[place]))
            joined_by = None if found is None else "node_id" if known else "order"
            rows.append((graph, node, annotations.get(node.event), found, joined_by))
    return _frame(rows)


def has_captured_graphs(trace: GraphTrace) -> bool:
    """Whether a trace launches graphs, and their capture may be known."""
    if not (trace.api_roles["role"].cast(pl.String) == "graph_launch").any():
        return False
    names = trace.events["name"].unique().cast(pl.String)
    return bool(trace.capture_traces) or bool(names.str.contains(_BORDERS).any())


def needed_captures(trace: GraphTrace, files: Sequence[Path]) -> list[Path]:
    """Return the files with the captures of the batches of a trace; all if a size is unknown."""
    sizes = {path: _size_of_file(path) for path in files}
    captured = [size for size in sizes.values() if size is not None]
    launches = trace.api_roles.filter(pl.col("role").cast(pl.String) == "graph_launch")["event"]
    if not captured or launches.is_empty():
        return [*files]
    batches = _batches(trace, launches)
    known = (batches.get(launch, _Batch(None, None)).requests for launch in launches)
    requests = [batch for batch in known if batch is not None]
    if len(requests) < launches.len():
        return [*files]
    most = max(captured)
    needed = {min((it for it in captured if it >= batch), default=most) for batch in requests}
    return [path for path, size in sizes.items() if size in {None, *needed}]


def _size_of_file(path: Path) -> int | None:
    """Return the batch size of a capture by the name of its file; None if it holds none.

    Examples
    --------
    >>> from pathlib import Path
    >>> _size_of_file(Path("DecodeCudaGraphRunner_bs_104_rank0.json.gz"))
    104
    """
    found = _SIZED_FILE.search(path.name)
    return None if found is None else int(found[1])


class Unmatched(NamedTuple):
    """Launches of graphs that match no capture."""

    launches: int
    largest: int | None
    """Most tokens, else requests, of a batch that they process; None if unknown."""
    sizes: tuple[int, ...]
    """Captured batch sizes."""


def unmatched(trace: GraphTrace) -> Unmatched | None:
    """Return the launches without a capture; None if there are none, or no capture at all."""
    nodes = trace.graph_nodes
    matched = nodes.filter(pl.col("captured_call").is_not_null())["launch"]
    left = nodes.filter(~pl.col("launch").is_in(matched.implode()))["launch"].unique().sort()
    if left.is_empty() or not has_captured_graphs(trace):
        return None
    sources = [trace, *trace.capture_traces]
    captures = [it for number, source in enumerate(sources) for it in _captures(source, number)]
    sizes = sorted({it.size for it in captures if it.size is not None})
    batches = _batches(trace, left).values()
    counts = [it.requests if it.tokens is None else it.tokens for it in batches]
    largest = max((count for count in counts if count is not None), default=None)
    return Unmatched(left.len(), largest, tuple(sizes))


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


def _by_node(captures: Sequence[_Capture]) -> dict[int, tuple[int, _Captured]]:
    """Return captured calls by node number, for numbers that only one call has."""
    of_node: defaultdict[int, list[tuple[int, _Captured]]] = defaultdict(list)
    for capture in captures:
        for call in capture.calls:
            if call.node is not None:
                of_node[call.node].append((capture.source, call))
    return {node: calls[0] for node, calls in of_node.items() if len(calls) == 1}


def _fitting(
    graphs: Sequence[_Graph], captures: Sequence[_Capture], sources: Sequence[GraphTrace]
) -> dict[int, _Capture]:
    """Choose the capture of each launch, by the number and kinds of nodes, then by the batch size.

    Captures that ran the same operators with the same inputs are equivalent. If others are left,
    they are matched in order with equally many graphs, if graphs have numbers.
    """
    of_kinds: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, capture in enumerate(captures):
        of_kinds[tuple(call.kind for call in capture.calls)].append(number)
    sized = cache(partial(_sized, captures))
    rivals: defaultdict[tuple[int, ...], list[_Graph]] = defaultdict(list)
    for graph, batch in _with_batches(graphs):
        fitting = of_kinds.get(tuple(node.kind for node in graph.nodes), [])
        rivals[sized(tuple(fitting), batch)].append(graph)
    inputs = cache(lambda source: _texts_of_inputs(sources[source]))
    chosen: dict[int, _Capture] = {}
    for numbers, alike in rivals.items():
        left = [captures[number] for number in numbers]
        keys = list(dict.fromkeys(graph.graph for graph in alike))
        if left and _are_equivalent(left, inputs):
            chosen |= {graph.launch: left[0] for graph in alike}
        elif len(left) == len(keys) and None not in keys:
            of_key = dict(zip(keys, left, strict=True))
            chosen |= {graph.launch: of_key[graph.graph] for graph in alike}
    return chosen


def _are_equivalent(
    captures: Sequence[_Capture], inputs: Callable[[int], Mapping[int, str]]
) -> bool:
    """Whether captures ran the same operators with the same inputs."""
    if len(captures) == 1:
        return True
    if len({tuple(call.operators for call in it.calls) for it in captures}) > 1:
        return False
    texts = [
        tuple(inputs(it.source).get(event) for call in it.calls for event in call.around)
        for it in captures
    ]
    return len(set(texts)) == 1


def _with_batches(graphs: Sequence[_Graph]) -> Iterator[tuple[_Graph, _Batch]]:
    """Yield the graphs of known order, with the largest batch that each ran."""
    of_graph: defaultdict[int, list[_Batch]] = defaultdict(list)
    for graph in graphs:
        if graph.graph is not None:
            of_graph[graph.graph].append(graph.batch)
    largest = {graph: _largest(batches) for graph, batches in of_graph.items()}
    for graph in graphs:
        if graph.is_ordered:
            number = graph.graph
            yield graph, graph.batch if number is None else largest[number]


def _largest(batches: Sequence[_Batch]) -> _Batch:
    tokens, requests = (
        max((size for size in sizes if size is not None), default=None)
        for sizes in zip(*batches, strict=True)
    )
    return _Batch(tokens, requests)


def _sized(
    captures: Sequence[_Capture], fitting: tuple[int, ...], batch: _Batch
) -> tuple[int, ...]:
    """Return the captures of the smallest size that holds a batch; all if a size is unknown."""
    holding = {number: captures[number].holds(batch) for number in fitting}
    if None in holding.values():
        return fitting
    sizes = {number: captures[number].size or 0 for number in fitting if holding[number]}
    return tuple(number for number, size in sizes.items() if size == min(sizes.values()))


# Launched graphs.


def _graphs(trace: GraphTrace) -> list[_Graph]:
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
    batches = _batches(trace, roles["call"])
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
        batch = batches.get(call, _Batch(None, None))
        found.append(_Graph(call, number, *_in_order(of_call), batch))
    return sorted(found, key=lambda it: (it.graph or 0, it.nodes[0].start_ns))


def _batches(trace: GraphTrace, launches: pl.Series) -> dict[int, _Batch]:
    """Return the batch of each graph launch that is inside an annotation of a server."""
    found = trace.core.server_iterations()
    marks = pl.DataFrame() if found is None else frame_of(found[1])
    if marks.is_empty():
        return {}
    sizes = pl.struct("prefill_tokens", "decode_tokens", "requests")
    of_mark = dict(marks.select("event", sizes).iter_rows())
    inside = zip(
        launches, enclosing(trace.core, launches, marks["event"], "innermost"), strict=True
    )
    return {launch: _batch(**of_mark[mark]) for launch, mark in inside if mark is not None}


def _batch(prefill_tokens: int | None, decode_tokens: int | None, requests: int | None) -> _Batch:
    """Return the batch of an iteration.

    Examples
    --------
    >>> _batch(0, 8, 8), _batch(100, 1, 2)
    (_Batch(tokens=8, requests=8), _Batch(tokens=101, requests=None))
    >>> _batch(None, None, 4)
    _Batch(tokens=None, requests=4)
    """
    if prefill_tokens is None or decode_tokens is None:
        return _Batch(None, requests)
    return _Batch(prefill_tokens + decode_tokens, None if prefill_tokens else requests)


def _in_order(nodes: list[_Node]) -> tuple[list[_Node], bool]:
    """Sort nodes in capture order, and return whether that order is known."""
    numbers = {node.node for node in nodes}
    if None not in numbers and len(numbers) == len(nodes):
        return sorted(nodes, key=lambda node: node.node or 0), True
    return nodes, len({node.stream for node in nodes}) == 1


# Captured graphs.


def _captures(trace: GraphTrace, source: int) -> Iterator[_Capture]:
    """List the calls of each capture that added nodes to a graph, in time order.

    Other threads of the process, such as that of autograd, take part in a capture.
    """
    is_border = pl.col("name").cast(pl.String).str.contains(_BORDERS)
    borders = trace.events.select("event", "kind", *_OF_BORDER).filter(_is_call())
    borders = borders.filter(is_border)
    if not borders.height:
        return
    having = set(trace.launches["call"].drop_nulls())
    nodes, operators = _arguments(trace, _NODE), Operators(trace.events)
    marks = _marks(trace, borders["event"])
    unmarked = (None if trace.path is None else _size_of_file(trace.path), None)
    calls = _node_calls(trace)
    starts_ns = [start_ns for _, _, _, start_ns, _, _ in calls]
    for border, process, begin_ns, end_ns in _spans(borders):
        captured = []
        first, last = bisect_left(starts_ns, begin_ns), bisect_left(starts_ns, end_ns)
        for event, name, of_process, _, parent, role in calls[first:last]:
            if of_process == process and event not in having and parent not in having:
                node = nodes.get(event)
                number = node if isinstance(node, int) else None
                inside = operators.around(parent), operators.events_around(parent)
                captured.append(_Captured(event, _kind(name, role), number, *inside))
        if captured:
            yield _Capture(source, captured, *marks.get(border, unmarked))


def _marks(trace: GraphTrace, borders: pl.Series) -> dict[int, tuple[int, str]]:
    """Return the size and the mode of each capture that is inside an annotation with them."""
    is_annotation = pl.col("kind").cast(pl.String) == "annotation"
    names = trace.events.filter(is_annotation).select("event", pl.col("name").cast(pl.String))
    parts = pl.col("name").str.extract_groups(_SIZED)
    sized = names.select("event", parts.struct[0].cast(pl.Int64, strict=False), parts.struct[1])
    sized = sized.drop_nulls()
    if sized.is_empty():
        return {}
    of_mark = {mark: (size, mode.upper()) for mark, size, mode in sized.iter_rows()}
    inside = zip(borders, enclosing(trace.core, borders, sized["event"], "innermost"), strict=True)
    return {border: of_mark[mark] for border, mark in inside if mark is not None}


def _texts_of_inputs(trace: GraphTrace) -> dict[int, str]:
    texts: defaultdict[int, str] = defaultdict(str)
    for name in _INPUTS:
        for event, text in _arguments(trace, name).items():
            texts[event] += f" {text}"
    return texts


def _kind(name: str, role: str) -> str:
    if "memset" in name.lower():
        return "fill"
    return "copy" if role in {"copy", "blocking_copy"} else "kernel"


_Call = tuple[int, str, object, int, "int | None", str]


def _node_calls(trace: GraphTrace) -> list[_Call]:
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


def _spans(borders: pl.DataFrame) -> Iterator[tuple[int, object, int, int]]:
    """Yield first event, process, start and end of each capture.

    It lasts from the end of a call to the start of the next.
    """
    opened: dict[tuple[object, object], tuple[int, int]] = {}
    for event, process, thread, name, start_ns, duration_ns in (
        borders.sort("start_ns").select("event", *_OF_BORDER).iter_rows()
    ):
        if "BeginCapture" in str(name):
            opened.setdefault((process, thread), (event, start_ns + (duration_ns or 0)))
        elif (begun := opened.pop((process, thread), None)) is not None:
            border, begin_ns = begun
            yield border, process, begin_ns, start_ns


def _arguments(trace: GraphTrace, name: str) -> dict[int, object]:
    """Return an argument of GPU activities and of calls by event, if present."""
    found: dict[int, object] = {}
    for category in trace.categories:
        table = trace.args(category, [name])
        if table is not None and name in table.columns:
            found |= dict(table.select("event", name).drop_nulls().iter_rows())
    return found
