"""Times of chains of frames, with those that captured the kernels of CUDA graphs.

The frames that captured a graph do not run when it is launched. Their chains become rows below the
frame that launched it, with times on devices only.

Limits: kernels of graphs that a backward pass launched stay with the frame that launched them,
because they also belong to a forward operator.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from longpole.engine.windows import Window
from longpole.rows.selection import matching
from longpole.trace.captures import has_captured_graphs
from longpole.trace.contexts import context_times
from longpole.trace.sweeps import activities, around

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.trace.contexts import ContextTimes, Frame
    from longpole.trace.trace import Trace

_OWN: Final = ("n_self", "device_self_ns")
_TOTALS: Final = ("n_activities", "device_ns")
_CHAIN: Final = ("below", "source", "context")
_NONE: Final = -1


def graph_context_times(
    trace: Trace,
    window: Window,
    *frames: Frame,
    annotation_names: str | None = None,
    by_inputs: bool = False,
    where: pl.Expr | str | None = None,
) -> ContextTimes:
    """Measure the time of each chain of frames within a window, through CUDA graphs.

    The parameters are those of `context_times`. The column `source` of `tree` is 0 for frames of
    this trace, else the number of the trace of a capture, to which `first` then belongs.

    Raises
    ------
    ValueError
        A pattern or condition is invalid.
    """
    measure = partial(context_times, annotation_names=annotation_names, by_inputs=by_inputs)
    of_trace = pl.lit(0, pl.UInt32).alias("source")
    if not has_captured_graphs(trace):
        times = measure(trace, window, *frames, where=where)
        return replace(times, tree=times.tree.with_columns(of_trace))
    works = matching(activities(trace), where)
    nodes = _captured_nodes(trace, window.clip(works))
    captured = {
        source: measure(*_whole(trace, source), *frames) for source in nodes["source"].unique()
    }
    nodes = _with_contexts(nodes, captured)
    others = works["event"].filter(~works["event"].is_in(nodes["event"].implode()))
    times = measure(trace, window, *frames, where=pl.col("event").is_in(others.implode()))
    tree = times.tree.with_columns(of_trace)
    if nodes.is_empty():
        return replace(times, tree=tree)
    trees = {source: it.tree for source, it in captured.items()}
    return replace(times, tree=_joined(tree, _sums(nodes, times.events), trees))


def _captured_nodes(trace: Trace, works: pl.DataFrame) -> pl.DataFrame:
    """List the activities of graphs with a known captured call, except those of backward passes."""
    known = trace.graph_nodes.filter(pl.col("captured_call").is_not_null())
    nodes = known.select("event", "launch", "captured_call", source="capture").join(
        works.select("event", "inside_ns"), on="event", maintain_order="left"
    )
    backward = trace.backward_links["backward"]
    return nodes.filter(around(trace, nodes["launch"], backward, "innermost").is_null())


def _whole(trace: Trace, source: int) -> tuple[Trace, Window]:
    """Return the trace of a source, and all of it as a window."""
    found = trace if source == 0 else trace.capture_traces[source - 1]
    ends_ns = (pl.col("start_ns") + pl.col("duration_ns").fill_null(0)).max()
    start_ns, end_ns = found.events.select(pl.col("start_ns").min(), end_ns=ends_ns).row(0)
    return found, Window("trace", None, start_ns, end_ns, "")


def _with_contexts(nodes: pl.DataFrame, captured: Mapping[int, ContextTimes]) -> pl.DataFrame:
    """Add the `context` around the captured call of each node; leave out nodes without one."""
    of_source = nodes.schema["source"]
    contexts = [
        it.events.select("context", captured_call="event", source=pl.lit(source, of_source))
        for source, it in captured.items()
    ]
    if not contexts:
        return nodes.with_columns(context=pl.lit(None, pl.UInt32))
    return nodes.join(pl.concat(contexts), on=["source", "captured_call"], maintain_order="left")


class _Chain(NamedTuple):
    """A chain of frames of a capture, below the context that launched its graph."""

    below: int
    source: int
    context: int


_Sums = dict[_Chain, tuple[int, int]]
"""Number and time of the activities of each chain."""


def _sums(nodes: pl.DataFrame, contexts: pl.DataFrame) -> _Sums:
    launching = contexts.select(launch="event", below=pl.col("context").cast(pl.Int64))
    located = nodes.join(launching, on="launch", how="left")
    sums = (
        located.with_columns(pl.col("below").fill_null(_NONE))
        .group_by(*_CHAIN)
        .agg(count=pl.len(), ns=pl.col("inside_ns").sum())
        .sort(*_CHAIN)
    )
    return {_Chain(*chain): (count, ns) for *chain, count, ns in sums.iter_rows()}


def _joined(tree: pl.DataFrame, sums: _Sums, trees: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Add the chains of captures to a tree, and their times to the frames around them."""
    own = tree["parent"].to_list()
    parents = {source: it["parent"].to_list() for source, it in trees.items()}
    totals: dict[_Chain, list[int]] = {}
    launching: dict[int, list[int]] = {}
    for chain, figures in sums.items():
        for context in _upwards(parents[chain.source], chain.context):
            _add(totals.setdefault(chain._replace(context=context), [0, 0]), figures)
        for context in _upwards(own, chain.below):
            _add(launching.setdefault(context, [0, 0]), figures)
    chains = sorted(totals)
    row_of = {chain: tree.height + place for place, chain in enumerate(chains)}
    below = [
        chain.below if (parent := parents[chain.source][chain.context]) is None
        else row_of[chain._replace(context=parent)]
        for chain in chains
    ]  # fmt: skip
    added = _rows_of(chains, trees, tree)
    times = [(*sums.get(chain, (0, 0)), *totals[chain]) for chain in chains]
    device = pl.DataFrame(times, schema=dict.fromkeys(_OWN + _TOTALS, pl.Int64), orient="row")
    numbers = pl.DataFrame(
        {"context": list(row_of.values()), "parent": [None if it == _NONE else it for it in below]},
        schema={name: tree.schema[name] for name in ("context", "parent")},
    )
    added = added.with_columns(*device, *numbers)
    return pl.concat([_with_launched(tree, launching), added.select(tree.columns)])


def _rows_of(
    chains: Sequence[_Chain], trees: Mapping[int, pl.DataFrame], own: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows of chains, without their times."""
    keys = pl.DataFrame(chains, schema=dict.fromkeys(_CHAIN, pl.Int64), orient="row")
    described = pl.concat(
        it.with_columns(pl.col("context").cast(pl.Int64), source=pl.lit(source, pl.Int64))
        for source, it in trees.items()
    )
    rows = keys.join(described, on=["source", "context"], maintain_order="left")
    parents, names = own["parent"].to_list(), own["name"].to_list()
    around_names = {it: {names[each] for each in _upwards(parents, it)} for it in keys["below"]}
    is_outermost = [
        is_outermost and name not in around_names[below]
        for below, name, is_outermost in rows.select("below", "name", "is_outermost").iter_rows()
    ]
    times = [name for name in own.columns if name == "count" or name.endswith("_ns")]
    return rows.with_columns(pl.lit(0, pl.Int64).alias(name) for name in times).with_columns(
        pl.col("source").cast(pl.UInt32), is_outermost=pl.Series(is_outermost)
    )


def _with_launched(tree: pl.DataFrame, launching: Mapping[int, Sequence[int]]) -> pl.DataFrame:
    """Add to the totals of frames those of the graphs that they launched."""
    added = pl.DataFrame(
        [launching.get(context, (0, 0)) for context in range(tree.height)],
        schema=dict.fromkeys(_TOTALS, pl.Int64),
        orient="row",
    )
    return tree.with_columns(pl.col(name) + added[name] for name in _TOTALS)


def _upwards(parents: Sequence[int | None], context: int) -> Iterator[int]:
    """Yield a context and those around it, innermost first; nothing for no context."""
    found = None if context == _NONE else context
    while found is not None:
        yield found
        found = parents[found]


def _add(sums: list[int], figures: tuple[int, int]) -> None:
    for place, figure in enumerate(figures):
        sums[place] += figure
