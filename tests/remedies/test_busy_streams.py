"""No gain leaves a step shorter than the GPU activities that a change does not touch."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import longpole

RECORDINGS = Path(__file__).parents[1] / "recordings"

# If recording cost less than estimated, the host would seem to gain more than the GPU leaves.
NAMES = ["masks.after", "masks.before"]


def busiest_ns(trace, numbers) -> float:
    """Return how long the stream with the most kernels and copies is busy in a mean step."""
    steps = longpole.steps(trace).filter(pl.col("step").is_in(numbers))
    begin_ns, end_ns = steps["window_start_ns"].min(), steps["window_end_ns"].max()
    works = trace.events.filter(pl.col("kind").is_in(["kernel", "copy"]))
    start = pl.max_horizontal("start_ns", pl.lit(begin_ns))
    end = pl.min_horizontal(pl.col("start_ns") + pl.col("duration_ns"), pl.lit(end_ns))
    of_lanes = works.group_by("lane").agg(busy_ns=(end - start).clip(0).sum())
    return of_lanes["busy_ns"].max() / steps.height


@pytest.mark.parametrize("name", NAMES)
def test_the_host_gains_no_more_than_the_busiest_stream_leaves(name):
    trace = longpole.read_trace(RECORDINGS / f"{name}.json.gz").without_profiler()
    verdict = trace.verdict()
    busy_ns = busiest_ns(trace, verdict.steps)
    of_host = verdict.gains["host"]
    assert of_host.high_by == "recording_cost"
    assert (1 - of_host.high) * verdict.window.length_ns >= 0.99 * busy_ns
    remedies = [it for it in verdict.remedies if it.remedy == "cuda_graph"]
    assert all(it.gain.high <= of_host.high + 0.005 for it in remedies)
