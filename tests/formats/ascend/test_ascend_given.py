"""Real Ascend profiles from outside the repository, compared with their own tools."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

import longpole
from longpole import read_traces
from longpole.errors import TraceError
from longpole.formats.ascend.columns import layout_of
from longpole.formats.ascend.tables import read_ascend_table
from longpole.formats.read import read_trace
from real_traces import SHARED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from longpole.trace.trace import Trace

GIVEN = SHARED / "mindspore"
TEXT = GIVEN / "ascend_level1_text"
DATABASES = GIVEN / "ascend_level1_db"
ALEXNET = GIVEN / "ascend_alexnet_msprof" / "device_0" / "timeline"

pytestmark = pytest.mark.skipif(not GIVEN.is_dir(), reason="the given Ascend profiles are absent")

RANKS = (0, 1)


def collectives(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each collective, and what a file of the tool says of it."""
    for kinds in json.loads(file.read_text()).values():
        for operations in kinds.values():
            for title, operation in operations.items():
                yield title.partition("@")[0], operation


def overlap_ns(trace: Trace) -> dict[str, int]:
    """Return what the tool calls computing, communication and not overlapped."""
    work = trace.events.join(trace.launches, on="event").filter(pl.col("work_class") != "copy")
    starts, ends = work["start_ns"], work["start_ns"] + work["duration_ns"]
    whole = trace.busy(starts.min(), ends.max()).filter(pl.col("stream").is_null())
    row = whole.row(0, named=True)
    return {
        "computing_ns": row["compute_ns"],
        "communication_ns": row["communication_total_ns"],
        "not_overlapped_ns": row["communication_ns"],
        "stage_ns": ends.max() - starts.min(),
    }


def expected(section: str, file: str) -> dict[str, int]:
    document = json.loads((GIVEN / "expected_overlap.json").read_text())[section]
    return next(row for name, row in document.items() if name.endswith(file))


@pytest.mark.parametrize("file", ["msprof_0_2_1.json", "msprof_0_2_2.json"])
def test_the_overlap_of_alexnet_is_that_of_msprof_to_the_nanosecond(file: str) -> None:
    found = overlap_ns(read_trace(ALEXNET / file))
    wanted = expected("alexnet_overlap_ns", file)
    assert found["computing_ns"] == wanted["computing_ns"]
    assert found["communication_ns"] == wanted["communication_ns"]
    assert found["not_overlapped_ns"] == wanted["not_overlapped_ns"]


@pytest.mark.parametrize("rank", RANKS)
def test_the_overlap_of_a_text_profile_is_that_of_its_step_trace_time(rank: int) -> None:
    folder = TEXT / f"rank{rank}_ascend_pt"
    found = overlap_ns(read_trace(folder))
    step = read_ascend_table(folder / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv")
    row = step.frame.row(0, named=True)
    assert abs(found["computing_ns"] - row["computing_ns"]) <= 25
    assert abs(found["communication_ns"] - row["communication_ns"]) <= 2
    assert abs(found["not_overlapped_ns"] - row["not_overlapped_ns"]) <= 13
    assert abs(found["stage_ns"] - row["stage_ns"]) <= 250


@pytest.mark.parametrize("rank", RANKS)
def test_the_overlap_of_a_database_is_that_of_its_analysis_exactly(rank: int) -> None:
    found = overlap_ns(read_trace(DATABASES / f"rank{rank}_ascend_pt"))
    wanted = expected("ascend_level1_db", f"ascend_pytorch_profiler_{rank}.db")
    assert found["computing_ns"] == wanted["computing_ns"]
    assert found["communication_ns"] == wanted["communication_ns"]
    assert found["communication_ns"] - found["not_overlapped_ns"] == wanted["overlapped_ns"]


@pytest.mark.parametrize("rank", RANKS)
def test_all_work_of_a_text_profile_is_linked(rank: int) -> None:
    trace = read_trace(TEXT / f"rank{rank}_ascend_pt")
    assert trace.launches["call"].null_count() == 0
    assert trace.launches["operator"].null_count() == 0
    assert trace.diagnostics.is_empty()


def test_ranks_name_the_same_peer_that_they_wait_for() -> None:
    for section in (TEXT, DATABASES):
        peers = set()
        for rank in RANKS:
            waits = read_trace(section / f"rank{rank}_ascend_pt").collective_waits
            peers.add(waits.sort("awaited_ns")["awaited_peer"][-1])
        assert len(peers) == 1


def test_how_late_a_rank_is_agrees_with_the_wait_of_the_other() -> None:
    ranks = read_traces(TEXT)
    assert set(ranks.calls["matched_by"]) == {"sequence"}
    trace = read_trace(TEXT / "rank0_ascend_pt")
    waits = trace.events.join(trace.args(None), on="event").filter(
        (pl.col("name") == "Notify_Wait") & (pl.col("dst rank") == 1)
    )
    arrivals = ranks.members.filter(call=0).sort("rank")["arrival_ns"]
    assert abs(waits["duration_ns"].max() - (arrivals[1] - arrivals[0])) < 20_000


@pytest.mark.parametrize("rank", RANKS)
def test_collectives_last_as_long_as_communication_json_says(rank: int) -> None:
    folder = TEXT / f"rank{rank}_ascend_pt"
    shown = collectives(folder / "ASCEND_PROFILER_OUTPUT" / "communication.json")
    spent = {
        name: round(1e6 * operation["Communication Time Info"]["Elapse Time(ms)"])
        for name, operation in shown
    }
    trace = read_trace(folder)
    rows = trace.collectives.join(trace.events, on="event").select("name", "duration_ns")
    for name, duration_ns in rows.iter_rows():
        assert abs(spent[name] - duration_ns) <= 1


@pytest.mark.parametrize("rank", RANKS)
def test_the_statistics_of_operators_follow_from_the_kernels(rank: int) -> None:
    output = TEXT / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    kernels = read_ascend_table(output / "kernel_details.csv").frame
    shown = read_ascend_table(output / "op_statistic.csv").frame
    found = kernels.group_by("type", "core").agg(
        n=pl.len(),
        sum_ns=pl.col("duration_ns").sum(),
        least_ns=pl.col("duration_ns").min(),
        most_ns=pl.col("duration_ns").max(),
    )
    both = shown.join(found, on=["type", "core"], how="left")
    assert both["n"].to_list() == both["count"].to_list()
    assert both["least_ns"].to_list() == both["min_ns"].to_list()
    assert both["most_ns"].to_list() == both["max_ns"].to_list()
    assert ((both["sum_ns"] - both["total_ns"]).abs() <= both["count"]).all()


@pytest.mark.parametrize("rank", RANKS)
def test_links_carry_what_the_communication_matrix_says(rank: int) -> None:
    folder = TEXT / f"rank{rank}_ascend_pt"
    matrix = folder / "ASCEND_PROFILER_OUTPUT" / "communication_matrix.json"
    values = {
        tuple(map(int, pair.split("-"))): (link["Transit Size(MB)"], link["Transit Time(ms)"])
        for name, operation in collectives(matrix)
        if name.endswith("-total")
        for pair, link in operation.items()
    }
    found = longpole.communication_links(read_trace(folder))
    sums = found.group_by("source_rank", "target_rank").agg(
        pl.col("bytes").sum(), pl.col("duration_ns").sum()
    )
    pairs = {(source, target): figures for source, target, *figures in sums.iter_rows()}
    assert values.keys() <= pairs.keys()
    assert values
    for pair, (transit_mb, transit_ms) in values.items():
        n_bytes, duration_ns = pairs[pair]
        assert abs(n_bytes / 1e6 - transit_mb) < 1e-6
        assert abs(duration_ns - 1e6 * transit_ms) <= 20


def test_ranks_of_a_cluster_are_compared_by_step() -> None:
    found = longpole.ascend_ranks(TEXT)
    assert found.select("rank", "step", "slow").rows() == [(0, 50, False), (1, 50, False)]
    assert found["awaited_peer"].to_list() == [5, 5]
    assert (found["waiting_ns"] > 0.9 * found["communication_ns"]).all()


def files() -> list[Path]:
    output = TEXT / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    found = sorted(output.iterdir()) if output.is_dir() else []
    return [file for file in found if file.name == "trace_view.json" or layout_of(file.name)]


@pytest.mark.slow
@pytest.mark.parametrize("file", files(), ids=lambda file: file.name)
def test_files_cut_at_every_percent_give_a_part_or_one_clear_error(
    file: Path, tmp_path: Path
) -> None:
    whole = file.read_bytes()
    part = tmp_path / file.name
    for percent in range(100):
        part.write_bytes(whole[: len(whole) * percent // 100])
        try:
            if file.name == "trace_view.json":
                assert read_trace(part).status in {"recovered", "ok"}
            else:
                read_ascend_table(part)
        except TraceError as error:
            assert str(error)  # noqa: PT017 - whatever it is, it is said


def test_a_database_that_a_viewer_left_open_is_read_without_touching_it(tmp_path: Path) -> None:
    source = DATABASES / "rank0_ascend_pt"
    folder = tmp_path / "rank0_ascend_pt"
    shutil.copytree(source, folder)
    before = sorted(path.name for path in folder.rglob("*"))
    read_trace(folder)
    assert sorted(path.name for path in folder.rglob("*")) == before
