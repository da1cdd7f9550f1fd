"""Timelines that every command reads, compared with MindSpore's own."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.formats.mindspore.executions import Executions
from longpole.formats.mindspore.findings import Findings
from longpole.formats.mindspore.layouts import find_ranks
from longpole.formats.mindspore.steps import Step, enclosing_steps
from longpole.formats.mindspore.timeline import rank_timeline
from longpole.mindspore import ProfileError, timeline_events
from mindspore_files import cpu_profile, given, host_file, host_line, write

REAL = ["ms200_cpu_graph", "ms2100_cpu_graph_new", "synthetic/gpu_async", "mindinsight_text"]


@pytest.mark.parametrize("folder", REAL)
def test_every_command_runs_on_the_timeline_of_a_folder(folder):
    trace = longpole.read_trace(timeline_events(given(*folder.split("/"))), strict=True)
    assert trace.status == "ok"
    assert longpole.summary(trace).to_dict()
    assert trace.critical_path().segments.height
    assert longpole.activities(trace).height or longpole.operators(trace).to_dict()


def test_stamps_are_exact_and_steps_are_those_of_mindspore():
    folder = given("ms200_cpu_graph")
    trace = longpole.read_trace(timeline_events(folder))
    runs = trace.events.filter(trace.events["kind"] == "operator")
    text = (folder / "prof/profiler/cpu_op_execute_timestamp_0.txt").read_text()
    times = [word.split(",") for line in text.splitlines() for word in line.split(";")[2].split()]
    base_ns = min(int(time[0]) for time in times)
    given_ns = sorted((int(t[0]) - base_ns, round(float(t[1]) * 1e6)) for t in times)
    found = runs.select("start_ns", "duration_ns").rows()
    first_ns = min(start for start, _ in found)
    assert sorted((start - first_ns, duration) for start, duration in found) == given_ns
    display = json.loads((folder / "prof/profiler/cpu_timeline_display_0.json").read_text())
    theirs = [event["dur"] for event in display if event.get("tid") == 100_000 and "dur" in event]
    steps = trace.events.filter(trace.events["kind"] == "annotation")["duration_ns"]
    assert [ns / 1000 for ns in steps] == pytest.approx(theirs, abs=0.001)


def test_host_stages_join_operators_of_the_same_clock_alone(tmp_path):
    cpu_profile(tmp_path)
    lines = [host_line("E", 0, 1_700_000_000_000_000), host_line("E", 1, 1_700_000_000_000_100)]
    host_file(tmp_path, *lines)
    findings = Findings()
    [files] = find_ranks(tmp_path)
    trace = longpole.read_trace(b"".join(rank_timeline(files, findings)))
    assert "E::S" not in trace.events["name"].cast(str).to_list()
    assert "other_clock" in {found.code for found in findings.all()}


def test_operators_that_never_repeat_mark_no_steps(tmp_path):
    trace = longpole.read_trace(timeline_events(cpu_profile(tmp_path, steps=1)))
    assert trace.events["kind"].cast(str).to_list() == ["operator", "operator"]


def test_operators_of_the_host_move_to_the_clock_of_the_gpu():
    folder = given("synthetic", "gpu_async")
    trace = longpole.read_trace(timeline_events(folder))
    names = trace.events.select("name", "start_ns").cast({"name": str})
    casts = names.filter(names["name"] == "CastHost-op7")["start_ns"]
    lines = (folder / "start_time_0.txt").read_text().splitlines()
    host, device = (int(line.rpartition(":")[2]) for line in lines)
    text = (folder / "cpu_op_execute_timestamp_0.txt").read_text()
    stamp = int(text.split(";")[2].split(",")[0])
    get_next = names.filter(names["name"] == "GetNext-op0")["start_ns"][0]
    first = int((folder / "gpu_op_execute_timestamp_0.txt").read_text().split(";")[2].split(",")[0])
    assert casts[0] - get_next == stamp + device - host - first


def test_one_of_several_ranks_is_to_be_named(tmp_path):
    cpu_profile(tmp_path, 0)
    cpu_profile(tmp_path, 1)
    with pytest.raises(ProfileError, match="the ranks 0, 1"):
        timeline_events(tmp_path)
    assert longpole.read_trace(timeline_events(tmp_path, rank=1)).rank == 1


def test_a_folder_with_nothing_in_it_is_an_error(tmp_path):
    with pytest.raises(ProfileError) as caught:
        timeline_events(tmp_path)
    assert caught.value.code == "no_profile"
    (tmp_path / "PROF_000001_2026_ABC").mkdir()
    with pytest.raises(ProfileError, match="only what Ascend's own tools can read") as caught:
        timeline_events(tmp_path)
    assert "msprof --export=on" in caught.value.hint
    (tmp_path / "node/x_ascend_ms").mkdir(parents=True)
    (tmp_path / "node/x_ascend_ms/PROF_1").mkdir()
    with pytest.raises(ProfileError) as caught:
        timeline_events(tmp_path / "node")
    assert caught.value.code == "needs_export"
    with pytest.raises(FileNotFoundError):
        timeline_events(tmp_path / "none")


def test_task_times_of_older_versions_are_exact(tmp_path):
    header = "op_name, stream_id, start_time(ms), duration(ms)"
    rows = ("Default/A-op1,7,438068.41592,0.00266", "Default/B-op2,8,438068.41869,0.002")
    write(tmp_path / "output_timeline_data_3.txt", header, *rows)
    events = longpole.read_trace(timeline_events(tmp_path)).events
    assert events.select("name", "stream", "start_ns", "duration_ns").cast(
        {"name": str}
    ).rows() == [
        ("A-op1", 7, events["start_ns"][0], 2660),
        ("B-op2", 8, events["start_ns"][0] + 2770, 2000),
    ]


@pytest.mark.parametrize("folder", REAL)
def test_what_stands_on_one_thread_nests_or_is_disjoint(folder):
    events = json.loads(timeline_events(given(*folder.split("/"))))["traceEvents"]
    lanes = {}
    for event in events:
        if event["ph"] == "X":
            span = (event["ts"], event["ts"] + event["dur"])
            lanes.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in lanes.values():
        open_ends = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start + 0.0005:
                open_ends.pop()
            assert all(end <= outer + 0.0005 for outer in open_ends)
            open_ends.append(end)


def test_the_host_is_left_out_where_the_clocks_cannot_be_brought_together(tmp_path):
    cpu_profile(tmp_path)
    run = "1700000000000000000,40 "
    write(tmp_path / "gpu_op_execute_timestamp_0.txt", f"Default/A-op1;GpuOps;{run}")
    findings = Findings()
    [files] = find_ranks(tmp_path)
    trace = longpole.read_trace(b"".join(rank_timeline(files, findings)))
    assert trace.events["name"].cast(str).to_list() == ["A-op1"]
    assert "other_clock" in {found.code for found in findings.all()}
    clocks = ("host_monotonic_raw_time(ns): 0", "gpu_start_time(ns): 1700000000000000000")
    write(tmp_path / "start_time_0.txt", *clocks)
    assert longpole.read_trace(timeline_events(tmp_path)).events.height == 7


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 100)], [(0, 100)]),
        ([(0, 99)], [(0, 100)]),  # rounding
        ([(0, 90)], None),
        ([(20, 200)], None),
        ([(0, 110), (105, 120)], None),
    ],
)
def test_steps_enclose_their_runs_or_stand_apart(spans, expected):
    runs = Executions(["A"], ["t"], [0], [0], [10], [90])
    found = enclosing_steps([Step(1, *span) for span in spans], runs, [0])
    assert (found and [(each.start_ns, each.end_ns) for each in found]) == expected


def test_stamps_that_cannot_be_of_one_run_are_reported(tmp_path):
    times = "1700000000000000000,0.1,0 170000000000000000,0.1,0 "
    write(tmp_path / "cpu_op_execute_timestamp_0.txt", f"Default/A-op1;HostCpuOps;{times}")
    found = json.loads(timeline_events(tmp_path))["findings"]
    assert [each["code"] for each in found] == ["far_apart"]
