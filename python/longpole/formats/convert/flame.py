"""Flame graphs of host time, device time or the critical path.

Written in two formats that many viewers read: folded stacks (`a;b;c 42`, of Brendan Gregg's
flamegraph.pl) and the JSON of speedscope.
"""

from __future__ import annotations

import json
from array import array
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from longpole.engine.question import Question
from longpole.engine.windows import window_of
from longpole.trace.contexts import ContextTimes, context_times
from longpole.trace.kept import kept
from longpole.trace.sweeps import activities
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import polars as pl

    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

Stack = tuple[tuple[str, ...], int]
"""Names from the outermost to the innermost, and a time in ns."""

Frame = tuple[int, str, int]
"""Number of enclosing callers, name, and time in ns."""

Time = Literal["host", "device", "path"]
"""The time that a flame graph shows."""

_FRAMES: Final = ("annotation", "operator", "python", "call", "other")
_MOST_NAMES: Final = 1_000
_DEEPER: Final = "(deeper)"
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def flame(
    trace: Trace,
    window: Window | None = None,
    *,
    time: Time = "host",
) -> Iterator[Stack]:
    """Sum a time by stacks of threads, annotations, Python functions, operators and calls.

    `"host"` is the time of threads; the time of a stack is the self time of its last name.
    `"device"` is the time of GPU activities, each below the call that launched it; concurrent
    activities each count in full. `"path"` is the critical path of the window, in which each wait
    is below its kind of wait. The times add up to the time of threads, of GPU activities, or of the
    path.

    Stacks are sorted by name. A stack of more than 1,000 names ends with `(deeper)`, which has the
    time of everything below.

    Raises
    ------
    ValueError
        `time` is not one of these three.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 20))
    >>> trace = builder.launch("gemm", call=(5, 9), work=(9, 50)).read()
    >>> print("".join(folded(flame(trace, time="device"))), end="")
    thread 1;aten::mm;cudaLaunchKernel;gemm 41000
    """
    return _stacks(frames(trace, window, time=time))


def frames(
    trace: Trace,
    window: Window | None = None,
    *,
    time: Time = "host",
    path: CriticalPath | None = None,
) -> Iterator[Frame]:
    """Return the flame graph as a tree: each frame once, after its caller, with its self time.

    `path` is the critical path of the window, if already known.
    """
    ways: dict[str, Callable[[Trace, Window, _Sums], None]] = {
        "host": _host,
        "device": _device,
        "path": partial(_path, path=path),
    }
    add_up = ways.get(time)
    if add_up is None:
        message = f'time is "host", "device" or "path", not {time!r}'
        raise ValueError(message)
    window = window_of(trace, window)
    sums = _Sums()
    if window is not None:
        add_up(trace, window, sums)
    return sums.frames()


def folded(stacks: Iterable[Stack]) -> Iterator[str]:
    r"""Format stacks as lines of names and nanoseconds, as `flamegraph.pl` reads them.

    A semicolon in a name becomes a colon, and terminal control characters are escaped.

    Examples
    --------
    >>> list(folded([(("main", "f;g"), 5)]))
    ['main;f:g 5\n']
    """
    for stack, ns in stacks:
        yield f"{';'.join(escape(name).replace(';', ':') for name in stack)} {ns}\n"


def speedscope(stacks: Iterable[Stack], name: str = "longpole") -> Iterator[str]:
    """Format stacks as the JSON text of a speedscope profile, for speedscope.app.

    The text is returned in chunks, so that a large profile does not have to fit in memory.

    Examples
    --------
    >>> import json
    >>> stacks = [(("main", "f"), 5), (("main",), 2)]
    >>> profile = json.loads("".join(speedscope(stacks)))["profiles"][0]
    >>> profile["samples"], profile["weights"], profile["endValue"]
    ([[0, 1], [0]], [5, 2], 7)
    """
    names: dict[str, int] = {}
    weights = array("q")
    head = {"$schema": _SCHEMA, "exporter": "longpole", "name": name, "activeProfileIndex": 0}
    facts = {"type": "sampled", "name": name, "unit": "nanoseconds", "startValue": 0}
    yield f'{json.dumps(head)[:-1]}, "profiles": [{json.dumps(facts)[:-1]}, "samples": ['
    for stack, ns in stacks:
        numbers = [names.setdefault(frame, len(names)) for frame in stack]
        yield f"{',' if weights else ''}\n{json.dumps(numbers)}"
        weights.append(ns)
    yield f'], "endValue": {sum(weights)}, "weights": ['
    yield from _listed(map(str, weights))
    yield ']}], "shared": {"frames": ['
    yield from _listed(json.dumps({"name": frame}) for frame in names)
    yield "]}}\n"


def _listed(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f",\n{text}" if number else text


def _stacks(found: Iterable[Frame]) -> Iterator[Stack]:
    names: list[str] = []
    for depth, name, ns in found:
        names[depth:] = [name]
        if ns:
            yield tuple(names), ns


class _Sums:
    """Times by stack, stored as a tree: a name is stored once for each parent."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, str], int] = {}
        self._ns: list[int] = []
        self._depths: list[int] = []

    def node(self, parent: int, name: str) -> int:
        """Return the tree node of a name below another node; -1 is the root."""
        depth = 0 if parent < 0 else self._depths[parent] + 1
        if depth > _MOST_NAMES:
            return parent
        key = (parent, name if depth < _MOST_NAMES else _DEEPER)
        node = self._nodes.setdefault(key, len(self._ns))
        if node == len(self._ns):
            self._ns.append(0)
            self._depths.append(depth)
        return node

    def add(self, node: int, ns: int) -> None:
        self._ns[node] += ns

    def frames(self) -> Iterator[Frame]:
        """List the frames of the tree, sorted by name, each after its caller."""
        below: dict[int, list[tuple[str, int]]] = {}
        for (parent, name), node in self._nodes.items():
            below.setdefault(parent, []).append((name, node))
        pending = [iter(sorted(below.get(-1, ())))]
        while pending:
            name, node = next(pending[-1], ("", -1))
            if node < 0:
                pending.pop()
                continue
            yield len(pending) - 1, name, self._ns[node]
            pending.append(iter(sorted(below.get(node, ()))))


def _host(trace: Trace, window: Window, sums: _Sums) -> None:
    nodes = _Nodes(trace, window, sums)
    for context, ns in nodes.self_times():
        sums.add(nodes.of_context(context), ns)


def _device(trace: Trace, window: Window, sums: _Sums) -> None:
    import polars as pl

    works = window.clip(activities(trace))
    launchers = works.select(launcher=pl.coalesce("call", "operator"))["launcher"]
    nodes = _Nodes(trace, window, sums).of_events(launchers)
    for node, (name, ns) in zip(nodes, works.select("name", "inside_ns").iter_rows(), strict=True):
        sums.add(sums.node(node, name or "(no name)"), ns)


def _path(trace: Trace, window: Window, sums: _Sums, *, path: CriticalPath | None = None) -> None:
    import polars as pl

    path = path_of(trace, window) if path is None else path
    launchers = trace.launches.select("event", launcher=pl.coalesce("call", "operator"))
    texts = pl.col("kind", "name").cast(pl.String)
    segments = path.segments.with_columns(
        texts, is_work=pl.col("event").is_in(trace.launches["event"].implode())
    ).join(launchers, on="event", how="left", maintain_order="left")
    on_thread = pl.when("is_work").then("launcher").otherwise("event")
    nodes = _Nodes(trace, window, sums).of_events(segments.select(on_thread).to_series())
    columns = ("is_work", "kind", "name", "duration_ns")
    rows = segments.select(columns).iter_rows()
    for node, (is_work, kind, name, ns) in zip(nodes, rows, strict=True):
        innermost = sums.node(node, name or "(no name)") if is_work else node
        sums.add(sums.node(innermost, f"[{kind}]"), ns)


def path_of(trace: Trace, window: Window) -> CriticalPath:
    """Return the path of a step up to the end of the step, not of its last waiting thread."""
    return trace.path_of(question_of(trace, window), "period", "binding")


def question_of(trace: Trace, window: Window) -> Question:
    """Return the question about a window, which may be that of a step or given by two times."""
    if window.kind == "trace":
        return Question(whole=True)
    is_step = window.step is not None and window.step in trace.steps["step"]
    asked = Question(step=window.step) if is_step else Question()
    _, _, (span, _), _ = trace.scope(asked)
    return asked if span == window.span else Question(between=window.span)


@kept
def _contexts(trace: Trace, window: Window) -> ContextTimes:
    return context_times(trace, window, *_FRAMES)


class _Nodes:
    """The stacks of the events of threads, each including the event itself.

    Only the stacks that are looked up are added: a window has few of those of a trace.
    """

    def __init__(self, trace: Trace, window: Window, sums: _Sums) -> None:
        self._times = _contexts(trace, window)
        columns = ("parent", "name", "lane")
        self._parents, self._names, self._lanes = (
            self._times.tree[column].to_list() for column in columns
        )
        self._threads = {
            lane: label or f"thread {thread}"
            for lane, label, thread in trace.lanes.select("lane", "label", "thread").iter_rows()
        }
        self._sums = sums
        self._known: dict[int, int] = {}

    def self_times(self) -> Iterator[tuple[int, int]]:
        """Yield each context that has self time, with that time in ns."""
        tree = self._times.tree.select("context", "self_ns")
        yield from tree.filter(tree["self_ns"] != 0).iter_rows()

    def of_events(self, events: pl.Series) -> Iterator[int]:
        """Yield the stack of each event."""
        found = (
            events.alias("event")
            .to_frame()
            .join(self._times.events, on="event", how="left", maintain_order="left")
        )
        for context in found["context"]:
            is_known = context is not None
            yield self.of_context(context) if is_known else self._sums.node(-1, "(not known)")

    def of_context(self, context: int) -> int:
        """Return the stack of a context, below the thread."""
        around: list[int] = []
        at: int | None = context
        while at is not None and at not in self._known:
            around.append(at)
            at = self._parents[at]
        for inner in reversed(around):
            parent = self._parents[inner]
            below = (
                self._sums.node(-1, self._threads[self._lanes[inner]])
                if parent is None
                else self._known[parent]
            )
            self._known[inner] = self._sums.node(below, self._names[inner] or "(no name)")
        return self._known[context]
