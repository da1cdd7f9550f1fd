"""Finds the operators that captured the kernels of CUDA graphs, for remedies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.flops.inputs import INPUT_ARGUMENTS
from longpole.remedies.captured import FIRST, CapturedKernels, CapturedOperator, Run
from longpole.trace.enclosing import enclosing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.remedies.captured import Around
    from longpole.trace.captures import GraphTrace

_CATEGORIES: Final = ("cpu_op", "Operator")
_KEYS: Final = ("source", "launch", "operator")


def captured_kernels(trace: GraphTrace) -> CapturedKernels | None:
    """Return the innermost captured operator of each kernel of a graph; None if none is known."""
    sources = [trace, *trace.capture_traces]
    parts = []
    nodes = trace.graph_nodes.filter(pl.col("captured_call").is_not_null())
    for (number,), calls in nodes.group_by("capture", maintain_order=True):
        where = sources[int(str(number))]
        found = enclosing(
            where.core, calls["captured_call"], _operators(where)["event"], "innermost"
        )
        columns = ("event", pl.col("capture").alias("source"), "launch")
        parts.append(calls.select(*columns, found.alias("operator")).drop_nulls("operator"))
    rows = pl.concat(parts).sort("event") if parts else pl.DataFrame()
    if rows.is_empty():
        return None
    distinct = rows.select(_KEYS).unique(maintain_order=True).with_row_index("run")
    of_kernel = rows.join(distinct, on=_KEYS).select("event", pl.col("run").cast(pl.Int64) + FIRST)
    around_of = cache(lambda source: _around(sources[source]))
    described = {
        int(str(number)): _described(sources[int(str(number))], int(str(number)), part["operator"])
        for (number,), part in distinct.group_by("source")
    }
    return CapturedKernels(
        [
            Run(launch, described[source][operator])
            for source, launch, operator in distinct.select(_KEYS).iter_rows()
        ],
        dict(of_kernel.iter_rows()),
        lambda operator: around_of(operator.source)(operator.event),
    )


def _operators(trace: GraphTrace) -> pl.DataFrame:
    return trace.events.filter(pl.col("kind").cast(pl.String) == "operator")


def _described(
    trace: GraphTrace, number: int, operators: pl.Series
) -> Mapping[int, CapturedOperator]:
    """Return operators of a trace by event, with their inputs."""
    chosen = operators.unique()
    texts: dict[int, dict[str, str]] = {}
    for category in _CATEGORIES:
        table = trace.args(category, INPUT_ARGUMENTS)
        if table is None:
            continue
        for row in table.filter(pl.col("event").is_in(chosen.implode())).iter_rows(named=True):
            event = row.pop("event")
            texts[event] = {name: str(value) for name, value in row.items() if value is not None}
    columns = ("event", pl.col("name").cast(pl.String), "start_ns", "duration_ns")
    rows = trace.events.filter(pl.col("event").is_in(chosen.implode())).select(columns)
    return {
        event: CapturedOperator(
            number, event, name or "", start_ns, start_ns + (length_ns or 0), texts.get(event, {})
        )
        for event, name, start_ns, length_ns in rows.iter_rows()
    }


def _around(trace: GraphTrace) -> Callable[[int], Sequence[Around]]:
    """Return what lists an event and those that enclose it, innermost first."""
    kinds, names, parents = (trace.events[it].to_list() for it in ("kind", "name", "parent"))

    @cache
    def around_event(event: int) -> Sequence[Around]:
        found: list[Around] = []
        row: int | None = event
        while row is not None:
            found.append((row, str(kinds[row]), str(names[row])))
            row = parents[row]
        return tuple(found)

    return around_event
