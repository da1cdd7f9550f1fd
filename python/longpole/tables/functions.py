"""Table `functions`: time of each Python function on its thread and on devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.files.damage import record_hint
from longpole.tables.catalogue import table
from longpole.tables.frame_times import FrameTimes, host_limits, no_rows, with_shares
from longpole.trace.contexts import context_times
from longpole.trace.stacks import ADDRESS

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_MISSING: Final = "The trace has no Python functions"


@table(FrameTimes)
def functions(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int = 20,
) -> FrameTimes:
    """Measure the time of each Python function, most time first.

    Sorted by device time, or by host time if the host limits the window.

    `self_ns` is the time in which no other Python function inside it ran. A GPU activity counts for
    the function that launched it. One of a backward pass, which runs outside Python, counts for the
    function that called the forward operator, as `backward_self_ns`. So `device_self_ns` and
    `backward_self_ns` of all rows sum to the time of all GPU activities.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().python("train.py(9): step", (0, 40))
    >>> trace = builder.launch("gemm", call=(10, 12), work=(20, 60)).read()
    >>> functions(trace).rows.row(0)[:4]
    ('frame', 'train.py(9): step', 1, 40000)
    """
    window = window_of(trace, window)
    if window is None:
        return FrameTimes("Python function", no_rows(), 0, top)
    times = context_times(trace, window, "python", where=where)
    own = pl.col("device_self_ns") + pl.col("backward_self_ns").fill_null(0)
    by_host = host_limits(trace, window)
    shared = with_shares(_grouped(times.tree), times, own, by_host=by_host)
    hint = None if times.tree.height else record_hint(trace, _MISSING, "stack")
    return FrameTimes("Python function", *shared, top, hint, by_host=by_host).sorted_by(sort)


def _grouped(tree: pl.DataFrame) -> pl.DataFrame:
    ran = pl.any_horizontal(pl.col("count", "n_activities", "backward_ns") > 0)
    outermost = pl.col("is_outermost")
    totals = ("total_ns", "n_activities", "device_ns", "backward_ns")
    return (
        tree.filter(ran)
        .with_columns(pl.col("name").cast(pl.String).str.replace_all(ADDRESS, ""))
        .group_by("name", maintain_order=True)
        .agg(
            pl.col("count", "self_ns", "device_self_ns", "backward_self_ns").sum(),
            pl.col(totals).filter(outermost).sum(),
        )
    )
