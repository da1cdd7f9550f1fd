"""Compares how long each rank of a cluster computed and waited, and which rank is slow."""

from __future__ import annotations

import os
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.formats.ascend.layout import collected, rank_of, timelines
from longpole.formats.ascend.problems import profile_error
from longpole.formats.read import read_trace
from longpole.tables.ascend_overlap import overlaps_by_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.formats.ascend.layout import Timeline
    from longpole.trace.trace import Trace

_SLOW: Final = 1.05
_SCHEMA: Final = {
    "rank": pl.Int64,
    "step": pl.Int64,
    "computing_ns": pl.Int64,
    "communication_ns": pl.Int64,
    "not_overlapped_ns": pl.Int64,
    "free_ns": pl.Int64,
    "stage_ns": pl.Int64,
    "waiting_ns": pl.Int64,
    "awaited_peer": pl.Int64,
    "path": pl.String,
}


def ascend_ranks(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """Compare the ranks of an Ascend cluster step by step, one rank in memory at a time.

    Parameters
    ----------
    folder
        A folder with one profile folder per rank.

    Returns
    -------
    DataFrame
        A row for each rank and step (null without step marks): `rank`, `step`,
        `computing_ns`, `communication_ns`, `not_overlapped_ns`, `free_ns`, `stage_ns`,
        `waiting_ns` (in collectives, for other ranks; null if not recorded), `awaited_peer` (the
        peer of the longest wait), `path`, and `slow`: whether the rank computes more than 5 %
        longer than the fastest rank in the step (null for a single rank).

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    TraceError
        The folder contains no Ascend profile, or one cannot be read.

    Examples
    --------
    >>> ascend_ranks("run/").filter(pl.col("slow"))  # doctest: +SKIP
    """
    rows = [row for it in _timelines(Path(folder)) for row in _rows(it.path)]
    found = pl.DataFrame(rows, schema=_SCHEMA)
    fastest = pl.col("computing_ns").min().over("step")
    slow = pl.when(pl.len().over("step") > 1).then(pl.col("computing_ns") > _SLOW * fastest)
    return found.with_columns(slow=slow).sort("step", "rank", "path")


def _timelines(folder: Path) -> list[Timeline]:
    """List the timelines of the ranks; raise if there are none."""
    if not folder.exists():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(folder))
    found = timelines(folder)
    if not found:
        hint = "give the folder that holds the exported profile of each rank"
        reason = "no timeline of an Ascend profile"
        raise collected(folder) or profile_error(folder, reason, "no_profile", hint)
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    trace = read_trace(path)
    waits = _waits(trace)
    for step, spent in overlaps_by_step(trace).items():
        waiting_ns, awaited_peer = waits.get(step, (None, None))
        waited = {"waiting_ns": waiting_ns, "awaited_peer": awaited_peer}
        yield {"rank": rank_of(path), "step": step, **spent, **waited, "path": str(path)}


def _waits(trace: Trace) -> dict[int | None, tuple[int, int | None]]:
    """Return the waiting time inside collectives by step, and the peer of the longest wait."""
    events = trace.events.select("event", "start_ns")
    waits = trace.collective_waits.join(events, on="event").sort("start_ns")
    steps = trace.steps.select("step", "window_end_ns", step_ns="start_ns").sort("step_ns")
    if steps.is_empty():
        waits = waits.with_columns(step=pl.lit(None, pl.Int64))
    else:
        joined = waits.join_asof(steps, left_on="start_ns", right_on="step_ns")
        waits = joined.filter(pl.col("start_ns") < pl.col("window_end_ns"))
    summed = waits.group_by("step").agg(
        pl.col("waiting_ns").sum(), peer=pl.col("awaited_peer").get(pl.col("awaited_ns").arg_max())
    )
    return {step: (waiting, peer) for step, waiting, peer in summed.iter_rows()}
