"""Table `counters`: performance counters of kernels, with their operators."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.core_counters import counters_of
from longpole.tables.needs import COUNTERS
from longpole.trace.counters import matched_counters, n_wrong_counters
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.jobs.trace_set import TraceSet
    from longpole.trace.trace import Trace

    Source = Trace | str | os.PathLike[str]


@table(
    needs_arguments=True,
    needs=(COUNTERS,),
    empty="No kernel with counters was launched in it.",
)
def counters(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Join the performance counters of each kernel with the operators that launched it.

    Parameters
    ----------
    window
        From `choose_window`: only kernels whose launching call began in it, and ranges without a
        call, whose times are artificial; by default all.
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        As `Trace.counters_by_operator`; of an Ascend device, the counters of `kernel_details.csv`
        next to the timeline.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 20)).call("cudaLaunchKernel", (5, 9))
    >>> counter = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    >>> trace = builder.event(
    ...     ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=0, dur=9,
    ...     args={counter: 64},
    ... ).read()
    >>> counters(trace).select("kernel_name", "bottom_level_op", "flops").row(0)
    ('gemm', 'aten::mm', 128)
    """
    found = counters_of(trace)
    if window is not None:
        # The number of an event is its row in `events`.
        begin_ns = trace.events["start_ns"].gather(found["call"])
        begun = begin_ns.is_between(window.start_ns, window.end_ns)
        found = found.filter(begun | found["call"].is_null())
    return matching(found, where)


def unmatched_counters(trace: Trace) -> str | None:
    """Return how kernels and counted ranges differ in number; None if each range has its kernel.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().call("cudaLaunchKernel", (1, 2)).call("cudaLaunchKernel", (3, 4))
    >>> unmatched_counters(
    ...     builder.event(
    ...         ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=0, dur=9, args={}
    ...     ).read()
    ... )
    '2 kernels were launched and 1 range has counters: 1 range is matched to no kernel'
    """
    n_kernels, n_ranges, n_pairs = matched_counters(trace)
    if n_pairs == n_ranges:
        return None
    launched = f"{count(n_kernels, 'kernel')} {'was' if n_kernels == 1 else 'were'} launched"
    counted = f"{count(n_ranges, 'range')} {'has' if n_ranges == 1 else 'have'} counters"
    left = n_ranges - n_pairs
    alone = f"{count(left, 'range')} {'is' if left == 1 else 'are'} matched to no kernel"
    return f"{launched} and {counted}: {alone}"


def invalid_counters(trace: Trace) -> str | None:
    """Return how many ranges have a counter that is not a count; None if there are none."""
    n_ranges = n_wrong_counters(trace)
    if not n_ranges:
        return None
    ranges = f"{count(n_ranges, 'range')} {'has' if n_ranges == 1 else 'have'}"
    return f"{ranges} a counter whose value is not a count"


def get_counter_data_with_operators(
    traces: TraceSet | Source | Iterable[Source] | Mapping[int, Source],
    ranks: Iterable[int] | None = None,
) -> list[pl.DataFrame]:
    """Join the counters of kernels with their operators, one data frame per rank.

    Parameters
    ----------
    traces
        A trace or its path, a folder or pattern of traces, the result of `read_traces`, or several
        traces or paths. The keys of a mapping are the ranks; otherwise the trace contains the rank.
    ranks
        Ranks to return, in this order; by default all, in the given order.

    Returns
    -------
    list of DataFrame
        `Trace.counters_by_operator` of each rank, empty if it has no counters. `to_pandas()`
        needs `longpole[pandas]`.

    Raises
    ------
    ValueError
        A rank has no trace.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> frames = get_counter_data_with_operators(TraceBuilder().read())
    >>> [frame.height for frame in frames]
    [0]
    """
    found = _ranks_of(traces)
    if ranks is not None:
        of_rank = dict(found)
        asked = list(ranks)
        missing = [rank for rank in asked if rank not in of_rank]
        if missing:
            message = f"no trace of rank {missing[0]}; there are {sorted(map(str, of_rank))}"
            raise ValueError(message)
        found = [(rank, of_rank[rank]) for rank in asked]
    return [read().counters_by_operator() for _, read in found]


def _ranks_of(
    traces: TraceSet | Source | Iterable[Source] | Mapping[int, Source],
) -> list[tuple[int | None, Callable[[], Trace]]]:
    """List the ranks with a function that returns the trace; a `TraceSet` reads one at a time."""
    from longpole.jobs.joining import read_traces
    from longpole.jobs.trace_set import TraceSet
    from longpole.trace.trace import Trace

    if isinstance(traces, str | os.PathLike) and not Path(traces).is_file():
        traces = read_traces(traces)
    if isinstance(traces, TraceSet):
        return [(rank, partial(traces.trace, rank)) for rank in traces.rank_numbers]
    if isinstance(traces, Trace | str | os.PathLike):
        traces = [traces]
    if hasattr(traces, "items"):
        return [(rank, partial(_opened, source)) for rank, source in traces.items()]
    return [(trace.rank, partial(_opened, trace)) for trace in map(_opened, traces)]


def _opened(source: Source) -> Trace:
    from longpole.formats.read import read_trace
    from longpole.trace.trace import Trace

    return source if isinstance(source, Trace) else read_trace(source)
