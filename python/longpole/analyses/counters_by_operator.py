"""Table `counters_by_operator`: performance counters of kernels with the operators above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.selection import matching

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["NEEDS_ARGUMENTS", "counters_by_operator", "get_counter_data_with_operators"]

NEEDS_ARGUMENTS: Final = True


def counters_by_operator(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Give the performance counters of each kernel with the operators that launched it.

    Parameters
    ----------
    trace
        The trace, read with the default `args`.
    window
        From `choose_window`: only kernels whose launching call began in it, and ranges that
        belong to no call, as their times are made up; by default all.
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        As `Trace.counters_by_operator`.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 20)).call("cudaLaunchKernel", (5, 9))
    >>> counter = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    >>> trace = builder.event(
    ...     ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=0, dur=9,
    ...     args={counter: 64},
    ... ).read()
    >>> counters_by_operator(trace).select("kernel_name", "bottom_level_op", "flops").row(0)
    ('gemm', 'aten::mm', 128)
    """
    found = trace.counters_by_operator()
    if window is not None:
        # The rows of a frame of events are their numbers.
        begin_ns = trace.events["start_ns"].gather(found["call"])
        begun = begin_ns.is_between(window.start_ns, window.end_ns)
        found = found.filter(begun | found["call"].is_null())
    return matching(found, where)


def get_counter_data_with_operators(
    traces: Trace | Iterable[Trace] | Mapping[int, Trace], ranks: Iterable[int] | None = None
) -> list[pl.DataFrame]:
    """Give the counters of the kernels of several ranks with their operators, a frame a rank.

    Parameters
    ----------
    traces
        Traces of ranks, or one trace; a mapping gives the rank of each, else the trace does.
    ranks
        Which ranks, in this order; by default all, in the order given.

    Returns
    -------
    list of DataFrame
        `Trace.counters_by_operator` of each rank, empty where it has no counters. `to_pandas()`
        needs `longpole[pandas]`.

    Raises
    ------
    ValueError
        There is no trace of a rank.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> frames = get_counter_data_with_operators(TraceBuilder().read())
    >>> [frame.height for frame in frames]
    [0]
    """
    from longpole.trace import Trace

    if isinstance(traces, Trace):
        traces = [traces]
    if not hasattr(traces, "items"):
        known = list(traces)
        if ranks is None:
            return [trace.counters_by_operator() for trace in known]
        of_rank = {trace.rank: trace for trace in known}
    else:
        of_rank = dict(traces.items())
    asked = list(of_rank) if ranks is None else list(ranks)
    missing = [rank for rank in asked if rank not in of_rank]
    if missing:
        message = f"no trace of rank {missing[0]}; there are {sorted(map(str, of_rank))}"
        raise ValueError(message)
    return [of_rank[rank].counters_by_operator() for rank in asked]
