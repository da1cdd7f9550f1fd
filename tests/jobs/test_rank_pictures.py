"""Pictures of several ranks: late arrivals, and the path across them."""

from __future__ import annotations

import polars as pl
import pytest

from longpole import read_traces
from longpole.cli import program
from longpole.plot.figures import lanes_figure, lateness_figure
from longpole.plot.layout import longest
from longpole.plot.rank_lanes import rank_lanes
from longpole.testing import TraceBuilder


@pytest.fixture
def folder(tmp_path):
    """Three ranks of which the last comes late to the first of two calls."""
    for rank, start in enumerate((10, 20, 100)):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 3})
        builder.operator("aten::mm<x>", (0, start))
        builder.launch("ncclDevKernel_AllReduce", call=(start, start + 3), work=(start + 5, 130))
        builder.launch("ncclDevKernel_AllReduce", call=(start + 4, start + 6), work=(131, 160))
        builder.write(tmp_path / f"rank{rank}.json")
    return tmp_path


def test_the_heat_map_has_a_row_for_each_rank_and_late_is_positive(folder):
    figure = lateness_figure(read_traces(folder))
    [cells] = figure.data
    assert cells["y"] == ["rank 0", "rank 1", "rank 2"]
    assert cells["z"] == [[0.0, 0.0], [0.0, 0.0], [0.08, 0.0]]


def test_the_path_is_drawn_on_the_lanes_of_its_ranks_and_tiles_the_run(folder):
    ranks = read_traces(folder)
    lanes = rank_lanes(ranks)
    assert lanes.notes == []
    assert lanes.rows[0]["label"] == "critical path"
    assert sum(lanes.rows[0]["lengths"]) == ranks.duration_ns
    parts = [row for row in lanes.rows if row["label"].endswith(", path")]
    assert sum(sum(row["lengths"]) for row in parts) == ranks.duration_ns
    figure = lanes_figure(lanes)
    times = [
        time
        for bar in figure.data
        for lane, time in zip(bar["y"], bar["x"], strict=True)
        if lane == "critical path"
    ]
    assert sum(times) == pytest.approx(ranks.duration_ns / 1e6)


def test_each_rank_has_a_lane_of_its_calls_in_which_the_last_does_not_wait(folder):
    lanes = rank_lanes(read_traces(folder))
    calls = [row for row in lanes.rows if row["label"].endswith(", calls")]
    kinds = [[lanes.kinds[kind] for kind in row["kinds"]] for row in calls]
    assert [row["label"] for row in calls] == [f"rank {rank}, calls" for rank in range(3)]
    wait = "waiting for the last rank"
    assert kinds[:2] == [[wait, "transfer", "transfer"]] * 2
    assert kinds[2] == ["transfer", "transfer"]


def test_waiting_is_not_told_from_transfer_where_ranks_are_missing(folder):
    (folder / "rank2.json").unlink()
    lanes = rank_lanes(read_traces(folder))
    calls = [row for row in lanes.rows if row["label"].endswith(", calls")]
    kinds = {lanes.kinds[kind] for row in calls for kind in row["kinds"]}
    assert kinds == {"communication, waiting included"}


def test_of_many_ranks_those_on_the_path_are_drawn_and_the_others_counted(tmp_path):
    for rank in range(26):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 26})
        start = 100 if rank == 25 else 10
        builder.operator("aten::mm", (0, start))
        builder.launch("ncclDevKernel_AllReduce", call=(start, start + 3), work=(start + 5, 130))
        builder.write(tmp_path / f"rank{rank}.json")
    lanes = rank_lanes(read_traces(tmp_path))
    assert "rank 25, path" in [row["label"] for row in lanes.rows]
    assert lanes.notes == ["2 ranks are not drawn: those with the least of the path."]


@pytest.mark.needs("plotly")
def test_notebooks_get_figures_of_plotly(folder):
    import longpole.plot

    ranks = read_traces(folder)
    assert longpole.plot.lateness(ranks).data[0].type == "heatmap"
    kinds = {trace.type for trace in longpole.plot.rank_path(ranks).data}
    assert kinds == {"bar"}


def test_a_report_of_ranks_says_who_makes_the_others_wait(folder, tmp_path, said):
    output = tmp_path / "report.html"
    assert program.run(["report", str(folder), "-o", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    verdict = page.partition('id="verdict"')[2].partition("</section>")[0]
    said.within(verdict)
    said.within(verdict)


def test_a_report_of_traces_that_are_no_ranks_has_no_such_section(folder, tmp_path):
    first = folder / "rank0.json"
    other = tmp_path / "again.json"
    other.write_bytes(first.read_bytes())
    output = tmp_path / "report.html"
    assert program.run(["report", str(first), str(other), "-o", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    assert 'id="verdict"' not in page
    assert "Traces</h2>" in page


def test_how_ranks_fare_in_each_step_is_a_table(tmp_path):
    for rank, length in enumerate((10, 10, 40)):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 3})
        for step in (1, 2):
            start = (step - 1) * 100
            builder.step(step, (start, start + 90)).operator("aten::mm", (start, start + length))
            call = (start + length, start + length + 3)
            builder.launch("ncclDevKernel_AllReduce", call=call, work=(call[1], start + 80))
        builder.write(tmp_path / f"rank{rank}.json")
    times = read_traces(tmp_path).step_times
    assert times.columns == ["step", "rank", "completion_ns", "duration_ns", "late_ns"]
    assert times["duration_ns"].null_count() == 3
    assert times["step"].to_list() == [1, 1, 1, 2, 2, 2]


def test_the_step_before_a_gap_in_the_numbers_is_the_last_recorded_one(tmp_path):
    for rank in range(2):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 2})
        for place, step in enumerate((3, 4, 5, 13)):
            start = 100 * place
            builder.step(step, (start, start + 90)).operator("aten::mm", (start, start + 10))
            call = (start + 10, start + 13)
            builder.launch("ncclDevKernel_AllReduce", call=call, work=(call[1], start + 80))
        builder.write(tmp_path / f"rank{rank}.json")
    ranks = read_traces(tmp_path)
    times = {step: ranks.window(step) for step in ranks.steps}
    assert times[13][0] == times[5][1]
    assert {end - start for start, end in list(times.values())[1:]} == {100_000}
    lengths = ranks.step_times.filter(pl.col("step") == 13)["duration_ns"].to_list()
    assert lengths == [100_000, 100_000]


def test_of_a_long_path_the_longest_segments_are_drawn():
    starts = pl.int_range(20_003, dtype=pl.Int64, eager=True) * 10
    path = pl.DataFrame({"start_ns": starts}).with_columns(
        duration_ns=pl.when(pl.col("start_ns") < 30).then(1).otherwise(9)
    )
    kept = longest(path)
    assert kept.height == 20_000
    assert set(kept["duration_ns"]) == {9}
    assert kept["start_ns"].is_sorted()
