"""What folders of profiles hold, and what is refused."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ascend_profiles import AscendBuilder, late_peer, write_database
from longpole.errors import TraceError
from longpole.formats.ascend import joined
from longpole.formats.ascend.layout import only_timeline, rank_of, timelines
from longpole.formats.read import read_trace
from longpole.jobs.sources import find_sources
from mindspore_files import given

if TYPE_CHECKING:
    from pathlib import Path


def two_ranks(folder: Path) -> Path:
    for rank in (0, 1):
        inside = folder / f"host_{rank}_ascend_pt"
        AscendBuilder(rank).step(1, (0, 9)).write(
            inside / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
        )
        (inside / f"profiler_info_{rank + 4}.json").write_text("{}")
    return folder


def test_each_rank_is_a_folder_and_numbered_by_its_profiler_info(tmp_path: Path) -> None:
    found = find_sources(two_ranks(tmp_path))
    assert [source.named_rank for source in found] == [4, 5]


def test_a_folder_of_several_ranks_is_no_single_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="a directory with 2 timelines") as raised:
        read_trace(two_ranks(tmp_path))
    assert raised.value.code == "several_timelines"
    assert raised.value.hint is not None
    assert "longpole ranks" in raised.value.hint


def test_the_timeline_goes_before_the_database(tmp_path: Path) -> None:
    output = tmp_path / "ASCEND_PROFILER_OUTPUT"
    late_peer().write(output / "trace_view.json")
    write_database(output / "ascend_pytorch_profiler_3.db")
    assert only_timeline(tmp_path).path.name == "trace_view.json"
    (output / "trace_view.json").unlink()
    assert only_timeline(tmp_path).rank == 3


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("ascend_pytorch_profiler_12.db", 12),
        ("ascend_mindspore_profiler_1.db", 1),
        ("msprof_3_2_1.json", 3),
        ("rank7_ascend_ms/ASCEND_PROFILER_OUTPUT/trace_view.json", 7),
        ("trace_view.json", None),
        ("rank3.json", None),
    ],
)
def test_names_tell_the_rank(tmp_path: Path, name: str, rank: int | None) -> None:
    assert rank_of(tmp_path / name) == rank


@pytest.mark.parametrize("name", ["PROF_000001_20240101_ABC", "JOBABCDEF"])
def test_what_the_collector_wrote_is_refused_with_how_to_export_it(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name / "device_0" / "data").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / name):
        with pytest.raises(TraceError, match="binary data of the Ascend collector") as raised:
            read_trace(folder)
        assert raised.value.code == "not_exported"
        assert "msprof --export=on" in (raised.value.hint or "")


def test_the_export_beside_binary_data_is_read(tmp_path: Path) -> None:
    late_peer().write(
        tmp_path / "PROF_1_2_x" / "mindstudio_profiler_output" / "msprof_20240101.json"
    )
    (tmp_path / "PROF_1_2_x" / "device_0").mkdir()
    assert [found.path.name for found in timelines(tmp_path)] == ["msprof_20240101.json"]


def test_a_folder_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="a directory without a trace") as raised:
        read_trace(tmp_path)
    assert raised.value.code == "is_a_directory"


def iteration(number: int) -> str:
    """Write an msprof timeline of 2023: one iteration, 100 us after the previous one."""
    start = 1000 + 100 * number
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 2, "args": {"name": "Stream 2"}},
        {"ph": "M", "name": "process_name", "pid": 77, "args": {"name": "CANN"}},
        {"ph": "X", "name": "GE@Infer", "pid": 77, "tid": 9, "ts": start, "dur": 60.5},
        {
            "ph": "X",
            "name": "MatMul",
            "pid": 3,
            "tid": 2,
            "ts": start + 10,
            "dur": 40,
            "args": {"Task Type": "AI_CORE"},
        },
    ]
    return json.dumps(events)


def job_folder(folder: Path, *numbers: int, rank: int = 6) -> Path:
    """Write a job directory of device 0 with these iterations."""
    device = folder / "PROF_000001_20230818_ABC" / "device_0"
    (device / "timeline").mkdir(parents=True)
    for number in numbers:
        name = f"msprof_0_2_{number}.json"
        (device / "timeline" / name).write_text(iteration(number))
    info = {"hostname": "node7", "rank_id": rank, "pid": "4321"}
    (device / "info.json.0").write_text(json.dumps(info))
    start = {"collectionTimeBegin": "1692340024324979", "clockMonotonicRaw": "56579931060630"}
    (device / "start_info.0").write_text(json.dumps(start))
    return folder


def test_the_iterations_of_a_device_are_one_trace_with_a_step_each(tmp_path: Path) -> None:
    trace = read_trace(job_folder(tmp_path, 2, 10, 1))
    assert trace.steps["step"].to_list() == [1, 2, 10]
    assert trace.events.filter(kind="kernel").height == 3
    assert trace.steps["window_end_ns"].to_list() == [1_160_500, 1_260_500, 2_060_500]
    assert trace.status == "ok"


def test_the_job_directory_tells_rank_host_and_clock(tmp_path: Path) -> None:
    trace = read_trace(job_folder(tmp_path, 1, 2))
    assert (trace.rank, trace.metadata["host_name"]) == (6, "node7")
    assert trace.base_time_ns == 1_692_340_024_324_979_000 - 56_579_931_060_630
    [source] = find_sources(tmp_path)
    assert source.named_rank == 6


def test_a_single_iteration_has_the_rank_of_its_job(tmp_path: Path) -> None:
    assert read_trace(job_folder(tmp_path, 4)).rank == 6
    assert read_trace(job_folder(tmp_path / "other", 4, rank=-1)).rank == 0  # the device


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rank_id": "x"}', '{"rank_id": 1e400}'])
def test_a_damaged_job_file_costs_what_it_says_alone(tmp_path: Path, text: str) -> None:
    folder = job_folder(tmp_path, 1, 2)
    [info] = folder.rglob("info.json.0")
    info.write_text(text)
    trace = read_trace(folder)
    assert trace.steps.height == 2
    assert ("findings" in trace.metadata) == (not text.startswith('{"'))


def test_an_iteration_that_was_cut_costs_its_end_and_its_step_alone(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, 1, 2)
    cut = next(folder.rglob("msprof_0_2_1.json"))
    whole = iteration(1)
    for length in range(0, len(whole), 7):
        cut.write_text(whole[:length])
        trace = read_trace(folder)
        kernels = trace.events.filter(kind="kernel")["start_ns"].to_list()
        assert 1_210_000 in kernels
        assert trace.steps["step"].to_list() == [2]
        assert trace.status == "recovered"
        assert "is truncated" in trace.metadata["findings"][0]


def test_slices_are_joined_in_their_order(tmp_path: Path) -> None:
    output = tmp_path / "mindstudio_profiler_output"
    output.mkdir()
    for number in (10, 2):
        (output / f"msprof_slice_{number}_20240101.json").write_text(iteration(number))
    trace = read_trace(tmp_path)
    kernels = trace.events.filter(kind="kernel").sort("position")
    assert kernels["start_ns"].to_list() == [1_210_000, 2_010_000]
    assert trace.path == output


def test_files_of_the_collector_say_how_to_export_them(tmp_path: Path) -> None:
    file = tmp_path / "hwts.data.0.slice_0"
    file.write_bytes(b"\x00\x01")
    with pytest.raises(TraceError, match="binary data of the Ascend collector") as raised:
        read_trace(file)
    assert "msprof --export=on" in (raised.value.hint or "")


def test_the_iterations_of_a_real_device_are_two_steps() -> None:
    trace = read_trace(given("ascend_alexnet_msprof"))
    assert trace.steps["step"].to_list() == [1, 2]
    assert trace.rank == 0
    alone = [
        read_trace(given("ascend_alexnet_msprof", "device_0", "timeline", f"msprof_0_2_{n}.json"))
        for n in (1, 2)
    ]
    columns = ["kind", "name", "start_ns", "duration_ns"]
    kernels = [it.events.filter(kind="kernel").select(columns) for it in (trace, *alone)]
    assert kernels[0].rows() == [*kernels[1].rows(), *kernels[2].rows()]


@pytest.mark.parametrize("fill", [1, (1 << 20) - 40, 1 << 20, 3 << 19])
def test_the_call_that_ran_an_iteration_is_found_wherever_it_is_in_the_file(
    tmp_path: Path, fill: int
) -> None:
    run = {"name": "GE@Infer", "tid": 3, "ts": 1, "dur": 2, "args": {"of": [1, {"a": "]"}]}}
    other = {"name": "aclrt", "args": {"text": fill // 2 * "x"}}
    part = tmp_path / "msprof_0_1_1.json"
    for events in ([run], [other, other, run], [run, other, other]):
        part.write_text(f" {json.dumps(events, indent=1)}\n")
        assert joined._run(part) == run
        part.write_text(json.dumps(events)[:-10])
        assert joined._run(part) is None
    for events in ([], [other], [run, run]):
        part.write_text(json.dumps(events))
        assert joined._run(part) is None


def test_an_iteration_is_not_held_in_memory_as_a_whole(tmp_path: Path) -> None:
    event = {"name": "aclrt", "args": {"text": 1000 * "x"}}
    part = tmp_path / "msprof_0_1_1.json"
    part.write_text(json.dumps(20_000 * [event]))
    tracemalloc.start()
    assert joined._run(part) is None
    assert tracemalloc.get_traced_memory()[1] < 8 << 20 < part.stat().st_size
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["kernel_details.csv", "op_summary_20250101000000.csv"])
def test_a_table_alone_is_no_timeline_and_says_what_to_give(
    name: str, tmp_path: Path, said: Any
) -> None:
    path = tmp_path / name
    path.write_text("Name,Type,Duration(us)\na,MatMul,3\n", encoding="utf-8")
    with pytest.raises(TraceError, match="a table of an Ascend profile") as caught:
        read_trace(path)
    said.within(str(caught.value.hint))


def test_a_database_of_no_known_profiler_names_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE KERN (name TEXT, BeginNs INTEGER, EndNs INTEGER)")
    with pytest.raises(TraceError, match="its tables: KERN") as caught:
        read_trace(path)
    assert "rocprofv3" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["out_shader_engine_0_1.att", "ui_output_agent_1/code.json"])
def test_a_thread_trace_is_named_and_not_taken_for_kineto(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(TraceError, match="a thread trace of rocprofv3") as caught:
        read_trace(path)
    assert "--sys-trace" in str(caught.value.hint)
