"""Measures how an inference server spends its iterations: decode, prefill and mixed batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.rows.frames import frame_schema
from longpole.tables.between_iterations import before_launch, between
from longpole.tables.impossible_values import has_impossible_times
from longpole.tables.iterations import iterations, launched_in, marks_of
from longpole.tables.served import IterationKernel, IterationKind, Serving, SlowIteration
from longpole.tables.serving_words import (
    Measured,
    sentence_of,
    sentence_without_times,
    why_slow,
)
from longpole.tables.token_times import token_times
from longpole.words.recording import options_for

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

_N_SLOWEST: Final = 3
_SLOW: Final = 1.2
"""An iteration is slow if it takes this multiple of the median of its kind."""

# Values that depend on when the device ran; null if its times are wrong.
_RESTING: Final = (
    "length_ns",
    "end_ns",
    "launch_delay_ns",
    "gap_ns",
    "scheduler_wait_ns",
    "launch_wait_ns",
)

_MEDIANS: Final = (
    "host_ns",
    "before_launch_ns",
    "blocked_ns",
    "launch_delay_ns",
    "replay_ns",
    "gap_ns",
    "device_ns",
    "sampling_ns",
    "detokenizing_ns",
)


def serving(trace: Trace, *, top: int | None = None) -> Serving:
    """Measure the iterations of an inference server, by kind.

    Iterations are found as by `longpole.iterations`. Graph nodes have the operators of their
    capture if `read_trace` found its trace. The summary of a server's trace contains the answer.

    Parameters
    ----------
    trace
        The trace.
    top
        Number of kernels to list; by default all.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder()
    >>> for at in range(0, 500, 100):
    ...     builder = builder.annotation("step[DECODE bs=8]", (at, at + 40))
    ...     call, work = (at + 20, at + 30), (at + 32, at + 90)
    ...     builder = builder.launch("model", call=call, work=work, by="cudaGraphLaunch")
    >>> print(serving(builder.read()))
    Decode steps of 8 requests take 100 µs each (5 in the trace): 80,000 tokens/s. The device \
waits 30 % of the time for launches while the host is inside an iteration: shorten what the host \
does before the launch (20.0 µs of each).
    """
    rows, marked = iterations(trace), marks_of(trace)
    is_withheld = has_impossible_times(trace)
    if is_withheld:
        rows = rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in _RESTING)
    kinds = _kinds(rows)
    main = rows.filter(pl.col("kind").eq_missing(_first(kinds, "kind")))
    servers = tuple(rows["server"].drop_nulls().unique().sort())
    has_device = trace.warning_counts["device_work"] > 0
    record = None if has_device else options_for(trace.core).device
    kernels = _kernels(trace, main)
    waits = {"between": between(trace, main), "before_launch": before_launch(trace, main)}
    measured = Measured(servers, kinds, kernels, rows, **waits)
    listed = {
        **{name: frame.head(_N_SLOWEST) for name, frame in waits.items()},
        "kinds": kinds,
        "slowest": _slowest(rows),
        "kernels": kernels if top is None else kernels.head(top),
    }
    fields: dict[str, Any] = {name: tuple(frame.to_dicts()) for name, frame in listed.items()}
    if has_device:
        fields |= token_times(rows)
    return Serving(
        sentence=sentence_without_times(measured) if is_withheld else sentence_of(measured, record),
        servers=servers,
        mark=marked[0] if marked else None,
        n_iterations=rows.height,
        n_kernels=kernels.height,
        **fields,
    )


def _first(frame: pl.DataFrame, column: str) -> Any:
    return frame[column][0] if frame.height else None


def _kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """Summarise each kind; shares and rates are over the iterations with a known length."""
    known = pl.col("length_ns").is_not_null()
    total_ns = pl.col("length_ns").sum()

    def share(name: str) -> pl.Expr:
        part = pl.col(name).filter(known)
        has_all = (total_ns > 0) & (part.count() == known.sum())
        # A share above 1 means that the times are wrong.
        is_part = part.sum() <= total_ns
        return pl.when(has_all & is_part).then(part.sum() / total_ns).otherwise(None)

    def rate(name: str) -> pl.Expr:
        n_tokens = pl.col(name).filter(known)
        has_all = (total_ns > 0) & (n_tokens.count() == known.sum())
        return pl.when(has_all).then(1e9 * n_tokens.sum() / total_ns).otherwise(None)

    alone_ns = pl.max_horizontal("host_ns", "device_ns").sum()
    found = rows.group_by("kind").agg(
        pl.col("requests", "prefill_tokens", "decode_tokens", "length_ns", *_MEDIANS).median(),
        pl.col("n_graph_launches").median(),
        count=pl.len(),
        most_requests=pl.col("requests").max(),
        total_ns=pl.when(known.any()).then(total_ns).otherwise(alone_ns),
        device_share=share("device_ns"),
        scheduler_share=share("scheduler_wait_ns"),
        launch_share=share("launch_wait_ns"),
        prefill_tokens_per_second=rate("prefill_tokens"),
        decode_tokens_per_second=rate("decode_tokens"),
    )
    schema = frame_schema(IterationKind)
    ordered = found.sort("total_ns", "kind", descending=[True, False])
    return ordered.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def _slowest(rows: pl.DataFrame) -> pl.DataFrame:
    """List the slowest iterations of each kind, and how they differ from the median."""
    found = []
    for (_, *_), alike in rows.drop_nulls("length_ns").group_by("kind", maintain_order=True):
        ordered = alike.sort("length_ns", "iteration").to_dicts()
        median = ordered[(len(ordered) - 1) // 2]
        slow = [row for row in reversed(ordered) if row["length_ns"] > _SLOW * median["length_ns"]]
        found += [
            {**row, "median_ns": median["length_ns"], "why": why_slow(row, median)}
            for row in slow[:_N_SLOWEST]
        ]
    slowest = sorted(found, key=lambda row: (-row["length_ns"], row["iteration"]))
    schema = frame_schema(SlowIteration)
    return pl.DataFrame([{name: row[name] for name in schema} for row in slowest], schema=schema)


def _kernels(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Rank the activities launched by some iterations, by operator and name."""
    schema = frame_schema(IterationKernel)
    if not rows.height:
        return pl.DataFrame(schema=schema)
    operators = trace.events.select(operator="event", launched_by="name")
    works = (
        launched_in(trace)
        .join(rows.select("iteration"), on="iteration", how="semi")
        .join(trace.events.select("event", "name"), on="event")
        .join(trace.launches.select("event", "operator"), on="event", how="left")
        .join(operators, on="operator", how="left")
        .join(trace.graph_nodes.select("event", "operator_name"), on="event", how="left")
        .with_columns(operator=pl.coalesce("operator_name", pl.col("launched_by").cast(pl.String)))
    )
    total = pl.col("duration_ns").sum()
    ranked = (
        works.group_by("operator", "name")
        .agg(count=pl.len(), duration_ns=total)
        .with_columns(share=pl.col("duration_ns") / total)
        .sort("duration_ns", "name", "operator", descending=[True, False, False])
    )
    return ranked.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
