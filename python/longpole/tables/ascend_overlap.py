"""Table `ascend_overlap`: computing and communication time of an Ascend profile, recomputed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.formats.ascend.recorded import recorded_steps
from longpole.rows.frames import frame_schema
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

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


class AscendOverlapRow(Row):
    """A time quantity of a step, recomputed and as recorded by Ascend's tool."""

    step: int | None
    """Number of the step; null for the whole trace."""
    quantity: str
    """`computing_ns`, `communication_ns`, `not_overlapped_ns`, `overlapped_ns`, `free_ns` or
    `stage_ns` (from the first to the last computing or communicating activity of the step)."""
    recomputed_ns: int
    recorded_ns: int | None
    """Value recorded by the tool, in ns; null if it does not report it."""
    difference_ns: int | None
    source: str | None


@table(
    AscendOverlapRow,
    needs_arguments=True,
    empty="The trace is not of an Ascend device, or its tool wrote no times to compare.",
    ignores_window=True,
)
def ascend_overlap(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Recompute computing, communication and free time, and compare with the tool's files.

    The tool's values are read from `step_trace_time.csv` or `analysis.db` in the folder of the
    timeline, else from its track `Overlap Analysis`.

    Parameters
    ----------
    trace
        The trace of an Ascend profile, read with the default `args`.
    window
        Ignored: the tool reports steps, or the whole trace if there are none.
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        A row for each step and quantity; empty if the tool wrote nothing to compare with.

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
    found = overlaps_by_step(trace) if recorded else {}
    rows = []
    for step, quantities in found.items():
        told = recorded.get(step) or (recorded.get(None, {}) if len(found) == 1 else {})
        for quantity in _QUANTITIES:
            ours, theirs = quantities[quantity], told.get(quantity)
            difference = None if theirs is None else ours - theirs
            said_by = None if theirs is None else source
            rows.append((step, quantity, ours, theirs, difference, said_by))
    return matching(pl.DataFrame(rows, schema=frame_schema(AscendOverlapRow), orient="row"), where)


def overlaps_by_step(trace: Trace) -> dict[int | None, dict[str, int]]:
    """Return the quantities of each step in which a device was active, in one pass over the trace.

    The key is the step number, or None for the whole trace if it has no steps. A step lasts from
    the first to the last activity launched in it.
    """
    work = _work(trace)
    computing = _Union(work.filter(work_class="compute"))
    communication = _Union(work.filter(work_class="communication"))
    either = _Union(work)
    spans = (
        work.filter(pl.col("is_in_step"))
        .group_by("step")
        .agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max())
    )
    found: dict[int | None, dict[str, int]] = {}
    for step, first, last in spans.sort("step").iter_rows():
        compute_ns, busy_ns = computing.within(first, last), either.within(first, last)
        communication_ns = communication.within(first, last)
        found[step] = {
            "computing_ns": compute_ns,
            "communication_ns": communication_ns,
            "not_overlapped_ns": busy_ns - compute_ns,
            "overlapped_ns": communication_ns + compute_ns - busy_ns,
            "free_ns": last - first - busy_ns,
            "stage_ns": last - first,
        }
    return found


def _work(trace: Trace) -> pl.DataFrame:
    """List computing and communicating activities on the first device, and the launching step."""
    events = trace.events.select("event", "device", "start_ns", "duration_ns")
    calls = events.select(call="event", called_ns="start_ns")
    work = (
        trace.launches.filter(pl.col("work_class") != "copy")
        .join(events, on="event")
        .join(calls, on="call", how="left")
        .with_columns(
            end_ns=pl.col("start_ns") + pl.col("duration_ns"),
            began_ns=pl.coalesce("called_ns", "start_ns"),
        )
        .filter(pl.col("end_ns").is_not_null())
    )
    first = work["device"].sort().head(1)
    work = work.filter(pl.col("device").eq_missing(first.item() if len(first) else None))
    steps = trace.steps.select("step", step_ns="start_ns", over_ns=pl.col("duration_ns")).sort(
        "step_ns"
    )
    if steps.is_empty():
        none = pl.lit(None, pl.Int64)
        return work.with_columns(step=none, is_in_step=True)
    joined = work.sort("began_ns").join_asof(steps, left_on="began_ns", right_on="step_ns")
    is_in_step = pl.col("began_ns") < pl.col("step_ns") + pl.col("over_ns")
    return joined.with_columns(is_in_step=is_in_step.fill_null(value=False))


class _Union:
    """A union of spans; computing the covered part of an interval takes two look-ups."""

    def __init__(self, spans: pl.DataFrame) -> None:
        ordered = spans.sort("start_ns").select("start_ns", reach_ns=pl.col("end_ns").cum_max())
        is_new = pl.col("start_ns") > pl.col("reach_ns").shift(1)
        pieces = (
            ordered.with_columns(piece=is_new.fill_null(value=True).cum_sum())
            .group_by("piece", maintain_order=True)
            .agg(pl.col("start_ns").min(), pl.col("reach_ns").max())
        )
        self._starts = pieces["start_ns"].to_numpy()
        self._ends = pieces["reach_ns"].to_numpy()
        lengths = self._ends - self._starts
        self._before = lengths.cumsum() - lengths

    def within(self, start_ns: int, end_ns: int) -> int:
        """Return how much of an interval is covered."""
        return self._until(end_ns) - self._until(start_ns)

    def _until(self, time_ns: int) -> int:
        place = int(self._starts.searchsorted(time_ns, side="right")) - 1
        if place < 0:
            return 0
        inside = min(time_ns, int(self._ends[place])) - int(self._starts[place])
        return int(self._before[place]) + inside


def _tracks(trace: Trace) -> tuple[dict[int | None, dict[str, int]], str]:
    """Sum the tracks that the tool wrote into the timeline, by step if there are several steps."""
    drawn = trace.events.filter(kind="derived").select(
        "start_ns", "duration_ns", name=pl.col("name").cast(pl.String)
    )
    drawn = drawn.filter(pl.col("name").is_in(list(_TRACKS)))
    steps = trace.steps.select("step", began_ns="start_ns").sort("began_ns")
    if steps.height > 1:
        drawn = drawn.sort("start_ns").join_asof(steps, left_on="start_ns", right_on="began_ns")
    else:
        drawn = drawn.with_columns(step=pl.lit(None, pl.Int64))
    found: dict[int | None, dict[str, int]] = {}
    for step, name, ns in drawn.group_by("step", "name").agg(pl.col("duration_ns").sum()).rows():
        found.setdefault(step, {})[_TRACKS[name]] = ns
    return found, "Overlap Analysis"
