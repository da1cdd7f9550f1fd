"""Flame graphs of host time, device time or the critical path: what to open in a viewer.

Two formats that many viewers read: folded stacks (`a;b;c 42`, of Brendan Gregg's flamegraph.pl)
and the JSON of speedscope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.contexts import context_times
from longpole.windows import choose_window
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["Stack", "flame", "folded", "speedscope"]

Stack = tuple[tuple[str, ...], int]
"""Names from the outermost on, and a time in ns."""

_FRAMES: Final = ("annotation", "operator", "python", "call", "other")
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def flame(
    trace: Trace,
    window: Window | None = None,
    *,
    time: Literal["host", "device", "path"] = "host",
) -> list[Stack]:
    """Add up a time by stacks of threads, annotations, Python functions, operators and calls.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    time
        `"host"` is the time of threads; the leaf is what ran with nothing inside it.
        `"device"` is the time of GPU activities, each below the call that launched it; those
        that run at the same time count each. `"path"` is the critical path of the window, in
        which waits stand below the kind of wait.

    Returns
    -------
    list of Stack
        In order of the names. Times sum to the time of threads, of GPU activities, or of the path.

    Raises
    ------
    ValueError
        `time` is none of the three.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 20))
    >>> trace = builder.launch("gemm", call=(5, 9), work=(9, 50)).read()
    >>> print(folded(flame(trace, time="device")), end="")
    thread 1;aten::mm;cudaLaunchKernel;gemm 41000
    """
    make: dict[str, Callable[[Trace, Window], Iterator[Stack]]]
    make = {"host": _host, "device": _device, "path": _path}
    if time not in make:
        message = f'time is "host", "device" or "path", not {time!r}'
        raise ValueError(message)
    window = window or choose_window(trace)
    if window is None:
        return []
    sums: dict[tuple[str, ...], int] = {}
    for stack, ns in make[time](trace, window):
        sums[stack] = sums.get(stack, 0) + ns
    return sorted((stack, ns) for stack, ns in sums.items() if ns)


def folded(stacks: Sequence[Stack]) -> str:
    r"""Write stacks as lines of names and nanoseconds, as `flamegraph.pl` reads them.

    A semicolon in a name becomes a colon, and what a terminal would obey is escaped.

    Examples
    --------
    >>> folded([(("main", "f;g"), 5)])
    'main;f:g 5\n'
    """
    return "".join(
        f"{';'.join(escape(name).replace(';', ':') for name in stack)} {ns}\n"
        for stack, ns in stacks
    )


def speedscope(stacks: Sequence[Stack], name: str = "longpole") -> dict[str, Any]:
    """Give stacks as the JSON object of a speedscope profile, to be opened at speedscope.app.

    Examples
    --------
    >>> profile = speedscope([(("main", "f"), 5), (("main",), 2)])["profiles"][0]
    >>> profile["samples"], profile["weights"], profile["endValue"]
    ([[0, 1], [0]], [5, 2], 7)
    """
    names: dict[str, int] = {}
    samples = [[names.setdefault(frame, len(names)) for frame in stack] for stack, _ in stacks]
    weights = [ns for _, ns in stacks]
    profile = {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    return {
        "$schema": _SCHEMA,
        "exporter": "longpole",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": frame} for frame in names]},
        "profiles": [profile],
    }


def _host(trace: Trace, window: Window) -> Iterator[Stack]:
    tree = context_times(trace, window, *_FRAMES).tree
    stacks = _stacks(trace, tree.select("parent", "name", "lane").rows())
    yield from zip(stacks, tree["self_ns"].to_list(), strict=True)


def _device(trace: Trace, window: Window) -> Iterator[Stack]:
    stack_of = _Stacks(trace, window)
    works = window.clip(trace.events.join(trace.launches, on="event"))
    columns = ("name", "call", "operator", "inside_ns")
    for name, call, operator, ns in works.select(columns).iter_rows():
        launcher = call if call is not None else operator
        yield (*stack_of(launcher), name or "(no name)"), ns


def _path(trace: Trace, window: Window) -> Iterator[Stack]:
    import polars as pl

    stack_of = _Stacks(trace, window)
    path = trace.critical_path(between=(window.start_ns, window.end_ns))
    launchers = trace.launches.select("event", launcher=pl.coalesce("call", "operator"))
    texts = pl.col("kind", "name").cast(pl.String)
    segments = path.segments.with_columns(texts).join(launchers, on="event", how="left")
    is_work = segments["event"].is_in(trace.launches["event"].implode())
    columns = ("event", "launcher", "kind", "name", "duration_ns")
    rows = segments.select(columns).iter_rows()
    for (event, launcher, kind, name, ns), work in zip(rows, is_work, strict=True):
        if work:
            yield (*stack_of(launcher), name or "(no name)", f"[{kind}]"), ns
        else:
            yield (*stack_of(event), f"[{kind}]"), ns


class _Stacks:
    """The names around each event of a thread, with its own."""

    def __init__(self, trace: Trace, window: Window) -> None:
        times = context_times(trace, window, *_FRAMES)
        self._stacks = _stacks(trace, times.tree.select("parent", "name", "lane").rows())
        self._contexts = dict(times.events.iter_rows())

    def __call__(self, event: int | None) -> tuple[str, ...]:
        context = None if event is None else self._contexts.get(event)
        return ("(not known)",) if context is None else self._stacks[context]


def _stacks(
    trace: Trace, tree: Sequence[tuple[int | None, str | None, int]]
) -> list[tuple[str, ...]]:
    """Give each row of a tree its names, below the thread."""
    threads = {
        lane: label or f"thread {thread}"
        for lane, label, thread in trace.lanes.select("lane", "label", "thread").iter_rows()
    }
    stacks: list[tuple[str, ...]] = []
    for parent, name, lane in tree:
        around = (threads[lane],) if parent is None else stacks[parent]
        stacks.append((*around, name or "(no name)"))
    return stacks
