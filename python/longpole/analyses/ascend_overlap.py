"""Table `ascend_overlap`: computing and communication of an Ascend profile beside its own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.ascend.recorded import recorded_steps
from longpole.selection import matching

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["NEEDS_ARGUMENTS", "ascend_overlap", "overlap_of_step"]

NEEDS_ARGUMENTS: Final = True

_QUANTITIES: Final = (
    "computing_ns",
    "communication_ns",
    "not_overlapped_ns",
    "overlapped_ns",
    "free_ns",
    "stage_ns",
)
_TRACKS: Final = {
    "Computing": "computing_ns",
    "Communication": "communication_ns",
    "Communication(Not Overlapped)": "not_overlapped_ns",
}
_SCHEMA: Final = {
    "step": pl.Int64,
    "quantity": pl.String,
    "recomputed_ns": pl.Int64,
    "recorded_ns": pl.Int64,
    "difference_ns": pl.Int64,
    "source": pl.String,
}


def ascend_overlap(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Compute computing, communication and free time anew, and compare with what the tool wrote.

    The figures of the tool are those of `step_trace_time.csv` or `analysis.db` beside the
    timeline, else of its track `Overlap Analysis`.

    Parameters
    ----------
    trace
        The trace of an Ascend profile, read with the default `args`.
    window
        Not asked: the tool knows steps, and the whole trace where there are none.
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        A row for each step (null for the whole trace) and `quantity`: `computing_ns`,
        `communication_ns`, `not_overlapped_ns`, `overlapped_ns`, `free_ns` and `stage_ns` (from
        the first to the last work of the step that computes or communicates), with
        `recomputed_ns`, `recorded_ns` (null where the tool says nothing), their `difference_ns`
        and the `source` of the record. Empty where the tool wrote nothing to compare with.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 12)).read()
    >>> ascend_overlap(trace).height
    0
    """
    del window
    recorded, source = recorded_steps(trace.path)
    if not recorded:
        recorded, source = _tracks(trace)
    steps = (trace.steps["step"].to_list() or [None]) if recorded else []
    rows = []
    for step in steps:
        found = overlap_of_step(trace, step)
        told = recorded.get(step) or (recorded.get(None, {}) if len(steps) == 1 else {})
        for quantity in _QUANTITIES if found else ():
            ours, theirs = found[quantity], told.get(quantity)
            difference = None if theirs is None else ours - theirs
            said_by = None if theirs is None else source
            rows.append((step, quantity, ours, theirs, difference, said_by))
    return matching(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), where)


def overlap_of_step(trace: Trace, step: int | None) -> dict[str, int]:
    """Give the quantities of a step, or of the whole trace; nothing where no device worked."""
    work = trace.launches.filter(pl.col("work_class") != "copy").join(trace.events, on="event")
    if step is not None:
        calls = trace.events.select(call="event", called_ns="start_ns")
        began = pl.coalesce("called_ns", "start_ns")
        row = trace.steps.filter(step=step).row(0, named=True)
        inside = (began >= row["start_ns"]) & (began < row["start_ns"] + row["duration_ns"])
        work = work.join(calls, on="call", how="left").filter(inside)
    if work.is_empty():
        return {}
    first: Any = work["start_ns"].min()
    last: Any = (work["start_ns"] + work["duration_ns"]).max()
    device = trace.busy(first, last).filter(pl.col("stream").is_null()).row(0, named=True)
    computing, exposed = device["compute_ns"], device["communication_ns"]
    return {
        "computing_ns": computing,
        "communication_ns": device["communication_total_ns"],
        "not_overlapped_ns": exposed,
        "overlapped_ns": device["communication_total_ns"] - exposed,
        "free_ns": last - first - computing - exposed,
        "stage_ns": last - first,
    }


def _tracks(trace: Trace) -> tuple[dict[int | None, dict[str, int]], str]:
    """Sum up the tracks that the tool drew into the timeline, over the whole trace."""
    drawn = trace.events.filter(kind="derived").with_columns(pl.col("name").cast(pl.String))
    sums = drawn.group_by("name").agg(pl.col("duration_ns").sum()).iter_rows()
    found = {_TRACKS[name]: duration_ns for name, duration_ns in sums if name in _TRACKS}
    return ({None: found} if found else {}), "Overlap Analysis"
