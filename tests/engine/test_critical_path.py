"""The critical path from the user's seat: frames, words, windows, what-if, and odd traces.

The rules are tested in `test_path_threads.py`, `test_path_waits.py` and `test_path_windows.py`.
Times are microseconds.

One file: the cases share their traces.
"""

import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import longpole
from longpole import Drop, RemoveWait, Scale
from tiny_traces import (
    US,
    annotation,
    arrow,
    call,
    copy,
    frame,
    kernel,
    launch,
    named,
    operator,
    path_of,
    read,
    span,
    sync_record,
)

# A step of 20 us on the host, of which the device needs 30.
STEPS = [
    *(annotation("ProfilerStep#1", 0, 20), annotation("ProfilerStep#2", 20, 40)),
    *(launch(5, 7, 1), launch(25, 27, 2)),
    *(kernel("K1", 10, 30, 1), kernel("K2", 31, 60, 2)),
]

# The host waits for the longer of two kernels.
WAITING = [
    *(launch(0, 2, 1), launch(3, 5, 2), call("cudaDeviceSynchronize", 10, 40)),
    *(kernel("long", 4, 35, 1), kernel("short", 7, 18, 2, stream=8), operator("after", 40, 45)),
]


# Frames.


def test_segments_name_the_events_and_lanes_they_belong_to():
    trace = read([operator("A", 0, 10, tid=4), operator("B", 15, 20, tid=4)])
    expected = pl.DataFrame(
        {
            "kind": ["operator", "host_gap", "operator"],
            "event": [0, None, 1],
            "name": ["A", None, "B"],
            "lane": [0, None, 0],
            "start_ns": [0, 10_000, 15_000],
            "duration_ns": [10_000, 5_000, 5_000],
            "evidence": ["order", "order", "order"],
            "certainty": ["certain", "certain", "certain"],
            "rival": [None, None, None],
            "busy_ns": [None, None, None],
        }
    )
    assert_frame_equal(
        trace.critical_path(whole=True).segments,
        expected,
        check_dtypes=False,
        categorical_as_str=True,
    )


def test_shares_sum_to_the_window_by_kind_and_by_name():
    path = read(WAITING).critical_path(whole=True)
    kinds = path.by_kind.select("kind", "duration_ns", "count").rows()
    assert kinds[:2] == [("kernel", 31_000, 1), ("operator", 5_000, 1)]
    assert path.by_name.row(0) == ("kernel", "long", 31_000, 31 / 45, 1, 3)
    assert path.by_kind["duration_ns"].sum() == path.by_name["duration_ns"].sum() == 45_000


def test_nodes_and_edges_lead_back_along_the_path():
    path = read(WAITING).critical_path(whole=True)
    edges, nodes = path.edges.filter("on_path"), path.nodes
    assert edges["source"].to_list()[1:] == edges["target"].to_list()[:-1]
    times_ns = dict(nodes.select("node", "time_ns").iter_rows())
    assert [times_ns[node] / US for node in edges["target"]] == [2, 4, 35, 40, 40, 45]
    assert set(edges["role"]) == {"thread_order", "launch", "device_work", "sync"}


def test_slack_is_what_an_event_may_be_late_and_null_where_nothing_follows():
    events = [launch(0, 2, 1), kernel("K", 4, 30, 1), operator("A", 2, 22), operator("x", 0, 1, 5)]
    assert read(events).critical_path(whole=True).slack["slack_ns"].to_list() == [0, 0, None, None]
    joined = [*events, call("cudaDeviceSynchronize", 22, 32)]
    assert read(joined).critical_path(whole=True).slack["slack_ns"][2] == 8 * US


def test_an_event_that_the_path_leaves_from_inside_has_no_slack():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("long", 6, 60, 1), kernel("pdl", 50, 90, 2)]
    path = read(events).critical_path(whole=True)
    slack = dict(path.slack.iter_rows())
    on_path = path.segments["event"].drop_nulls().unique().to_list()
    assert "long" in path.segments["name"].to_list()
    assert [slack[event] for event in on_path] == [0] * len(on_path)


def test_waits_name_both_sides_and_say_how_they_are_known():
    trace = read([*WAITING, operator("owner", 9, 41, **{"External id": 77})])
    (wait,) = trace.sync_dependencies(whole=True).to_dicts()
    assert (wait["source_name"], wait["target_name"]) == ("long", "cudaDeviceSynchronize")
    assert (wait["kind"], wait["evidence"]) == ("sync_return", "inferred")
    assert (wait["waited"], wait["on_path"], wait["source_external_id"]) == (True, True, None)


def test_waits_of_one_step_only():
    waits = [*STEPS, call("cudaDeviceSynchronize", 45, 62), annotation("ProfilerStep#3", 44, 70)]
    trace = read(waits)
    assert [trace.sync_dependencies(step).height for step in (2, 3)] == [0, 1]


def test_an_explanation_is_in_words_with_the_greatest_share_first():
    text = read(WAITING).critical_path(whole=True).explain()
    assert text.splitlines()[:3] == [
        "Total 45.0 µs as recorded:",
        "",
        "68.9 %  31.0 µs  ████████████████  kernel execution (kernel)",
    ]
    assert "68.9 %  31.0 µs      1  kernel       long" in text
    assert text.endswith(
        "Inferred, not recorded: the only wait on the path and 11.1 % of its time."
    )


def test_a_path_that_is_mostly_unexplained_is_inconclusive(said):
    path = read([kernel("K0", 0, 10), kernel("K1", 300, 310)]).critical_path(whole=True)
    assert (path.status, path.unexplained_ns) == ("inconclusive", 290 * US)
    said.within(path.explain())
    assert read(WAITING).critical_path(whole=True).status == "ok"


def test_a_path_is_written_as_parquet_and_nothing_is_overwritten(tmp_path):
    path = read(WAITING).critical_path(whole=True)
    path.write_parquet(tmp_path / "path")
    segments = pl.read_parquet(tmp_path / "path" / "segments.parquet")
    assert_frame_equal(segments, path.segments, categorical_as_str=True, check_dtypes=False)
    with pytest.raises(FileExistsError, match=r"segments\.parquet"):
        path.write_parquet(tmp_path / "path")
    path.write_parquet(tmp_path / "path", force=True)
    assert sorted(file.suffix for file in (tmp_path / "path").iterdir()) == [".parquet"] * 6


# Windows.


@pytest.mark.parametrize(
    ("end", "window"),
    [("period", (30, 60)), ("last", (20, 60)), ("gpu", (20, 60)), ("cpu", (20, 40))],
)
def test_the_window_of_a_step(end, window):
    path = read(STEPS).critical_path(step=2, end=end)
    assert path.window == (window[0] * US, window[1] * US)
    assert path.segments["duration_ns"].sum() == path.length_ns


def test_the_table_of_steps_has_the_same_windows():
    trace = read(STEPS)
    windows = trace.steps.select("window_start_ns", "window_end_ns").rows()
    assert windows == [trace.critical_path(step).window for step in (1, 2)]
    assert trace.critical_path("ProfilerStep#2").window == windows[1]


def test_the_window_of_the_trace_is_that_of_its_path():
    trace = read([*WAITING, operator("watchdog", 0, 999, tid=5)])
    assert trace.window == trace.critical_path(whole=True).window == (0, 45 * US)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({"step": 7}, "the trace has no step 7; its steps go from 1 to 2"),
        ({"annotation": "fit"}, 'the trace has no annotation "fit"; there are "'),
        ({"between": (5, 6)}, "the trace has no work between 5 and 6 ns"),
        ({"annotation": "ProfilerStep#1", "instance": 3}, "has one annotation"),
    ],
)
def test_a_window_that_is_not_there_is_an_error_in_words(window, words):
    with pytest.raises(longpole.WindowError, match=re.escape(words)):
        read(STEPS).critical_path(**window)


def test_annotations_that_are_there_are_offered_the_most_frequent_first():
    names = [f"part {number}" for number in range(12)] + ["fit", "fit", "fit", "x" * 99, "x" * 99]
    events = [annotation(name, 10 * at, 10 * at + 5) for at, name in enumerate(names)]
    offered = f'there are "fit" (3), "{"x" * 60}…" (2), "part 0" (1), "part 1" (1), "part 10" (1), '
    words = f'the trace has no annotation "sit"; {offered}'
    with pytest.raises(longpole.WindowError, match=re.escape(words)) as raised:
        read(events).critical_path(annotation="sit")
    assert str(raised.value).partition(" [")[0].endswith(' "part 3" (1) and 6 more')
    with pytest.raises(longpole.WindowError, match='"sit"; it has no annotations'):
        read([operator("a", 0, 9)]).critical_path(annotation="sit")


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 1, "annotation": "fit"},
        {"step": "first"},
        {"step": 1, "end": "never"},
        {"annotation": "fit", "instance": -1},
        {"method": "shortest"},
        {"data_load": "("},
        {"end": "never"},
        {"instance": 1},
        {"between": (9, 3)},
    ],
)
def test_arguments_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"."):
        read(STEPS).critical_path(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"annotation": "fit", "instance": (0, 1)}, "instance must be an integer"),
        ({"between": (3.0, 5.5)}, "between is two times in whole ns"),
        ({"between": (1, 2, 3)}, "between is two times in whole ns"),
        ({"between": 5}, "between is two times in whole ns"),
    ],
)
def test_numbers_that_are_none_are_refused(wrong, words):
    with pytest.raises(TypeError, match=words):
        read(STEPS).critical_path(**wrong)


@pytest.mark.parametrize("by", [1, 0.9, 0.8, 0.5])
def test_waits_after_a_change_are_those_of_its_path(by):
    changed = (
        read(WAITING).critical_path(whole=True).what_if(Scale(kind="kernel", by=by)).critical_path
    )
    waits = changed.sync_dependencies
    returned = (changed.segments["kind"].cast(str) == "sync_return").sum()
    assert waits.filter("on_path", "waited").height == returned


def test_what_is_no_change_is_refused():
    path = read(WAITING).critical_path(whole=True)
    with pytest.raises(TypeError, match="changes are Scale, Drop, Replace, Insert and RemoveWait"):
        path.what_if("x")
    with pytest.raises(ValueError, match="'kernel' is not a kind of wait"):
        RemoveWait(kind="kernel")


def test_the_longest_path_by_work_is_there_for_comparison():
    # The host waits for the device, and still has more work than that.
    events = [operator("A", 0, 30), launch(30, 32, 1), kernel("K", 34, 60, 1)]
    events += [operator("B", 32, 58), call("cudaDeviceSynchronize", 58, 62)]
    assert ("kernel", "K") in {row[2:] for row in path_of(events)}
    longest = path_of(events, method="longest")
    assert longest[-2:] == [(32, 58, "operator", "B"), (58, 62, "runtime", "cudaDeviceSynchronize")]


def test_the_longest_path_by_work_leaves_waiting_out():
    events = [launch(0, 2, 1), call("cudaDeviceSynchronize", 10, 36), kernel("K", 4, 30, 1)]
    longest = path_of([*events, operator("next", 36, 46)], method="longest")
    assert longest[-3:] == [
        (4, 30, "kernel", "K"),
        (30, 36, "sync_return", "cudaDeviceSynchronize"),
        (36, 46, "operator", "next"),
    ]


# What-if.


@pytest.mark.parametrize(
    ("changes", "makespan"),
    [
        ([], 45),
        (Scale(kind="kernel", matching="long", by=0.5), 29.5),
        ([Scale(kind="kernel", by=2)], 76),
        ([Drop(matching="long")], 20),
        ([Drop(kind="launch"), Drop(kind="sync_return")], 38),
        ([RemoveWait()], 35),
        ([RemoveWait(matching="StreamSync")], 45),
    ],
)
def test_what_if(changes, makespan):
    answer = read(WAITING).critical_path(whole=True).what_if(changes)
    assert (answer.makespan_ns / US, answer.gain_ns / US) == (makespan, 45 - makespan)


def test_what_if_names_the_new_long_pole_with_new_times():
    changed = read(WAITING).critical_path(whole=True).what_if(Drop(matching="long")).critical_path
    assert named(changed)[-2:] == [
        (10, 15, "runtime", "cudaDeviceSynchronize"),
        (15, 20, "operator", "after"),
    ]
    assert changed.by_kind["duration_ns"].sum() == 20 * US
    assert changed.slack["slack_ns"][6 - 1] == 0


def test_questions_can_be_asked_one_after_the_other():
    path = read(WAITING).critical_path(whole=True)
    at_once = path.what_if([Scale(matching="long", by=0.5), Drop(matching="after")])
    in_turn = path.what_if(Scale(matching="long", by=0.5)).critical_path.what_if(
        Drop(matching="after")
    )
    assert in_turn.makespan_ns == at_once.makespan_ns


@pytest.mark.parametrize(
    "wrong",
    [Drop(matching="("), Scale(by=-1), Scale(by=float("nan")), Scale(by=1e300)],
)
def test_changes_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"."):
        read(WAITING).critical_path(whole=True).what_if(wrong)


# What is easily got wrong.


def test_gaps_between_operators_count():
    assert (10, 15, "host_gap", None) in path_of([operator("A", 0, 10), operator("B", 15, 20)])


def test_calls_of_two_threads_that_overlap_both_keep_their_time():
    events = [call("cudaMalloc", 0, 40), call("cudaMalloc", 5, 30, tid=2), operator("A", 40, 50)]
    assert path_of(events) == [(0, 40, "runtime", "cudaMalloc"), (40, 50, "operator", "A")]


def test_a_blocking_copy_leaves_its_call_what_the_copy_did_not_take():
    name = "Memcpy DtoH (Device -> Pageable)"
    events = [call("cudaMemcpyAsync", 10, 50, 2), copy(name, 41, 44, 2), operator("A", 50, 60)]
    assert path_of(events)[:3] == [
        (10, 41, "runtime", "cudaMemcpyAsync"),
        (41, 44, "copy", name),
        (44, 50, "sync_return", "cudaMemcpyAsync"),
    ]


def test_a_kernel_waits_for_the_last_of_several_streams():
    waits = [
        sync_record(
            "Stream Wait Event", 8 + i, 5 + i, 28, wait_on_stream=stream,
            wait_on_cuda_event_record_corr_id=3 + i,
        )
        for i, stream in enumerate([20, 24])
    ]  # fmt: skip
    events = [
        *(launch(0, 2, 1), launch(2, 4, 2)),
        *(call("cudaEventRecord", 5, 6, 3), call("cudaEventRecord", 6, 7, 4)),
        *(call("cudaStreamWaitEvent", 8, 9, 5), call("cudaStreamWaitEvent", 9, 10, 6)),
        *(launch(11, 13, 7), *waits),
        *(kernel("P1", 4, 50, 1, stream=20), kernel("P2", 7, 30, 2, stream=24)),
        kernel("K", 51, 60, 7, stream=28),
    ]
    assert path_of(events)[-3:] == [
        (4, 50, "kernel", "P1"),
        (50, 51, "event_wait", "K"),
        (51, 60, "kernel", "K"),
    ]
    waits = (
        read(events)
        .sync_dependencies(whole=True)
        .select("source_name", "evidence", "waited")
        .rows()
    )
    assert waits == [("P1", "recorded", True), ("P2", "recorded", False)]


def test_every_kernel_of_a_graph_is_in_the_graph():
    kernels = [kernel(f"K{i}", 8 + 10 * i, 17 + 10 * i, 1) for i in range(5)]
    trace = read([call("cudaGraphLaunch", 0, 5, 1), *kernels])
    path = trace.critical_path(whole=True)
    assert path.by_kind.row(0)[:2] == ("kernel", 45 * US)
    launches = path.edges.filter(pl.col("role").cast(pl.String) == "launch")
    assert launches.height == 5


def test_streams_of_two_devices_are_not_one():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2)),
        *(kernel("K0", 4, 40, 1, device=0), kernel("K1", 60, 70, 2, device=1)),
    ]
    assert path_of(events)[-2:] == [(5, 60, "launch", "K1"), (60, 70, "kernel", "K1")]


def test_any_pattern_may_say_what_loads_data():
    events = [operator("A", 0, 10), frame("data.py(12): fetch[0]", 10, 20), operator("B", 20, 30)]
    loading = (10, 20, "data_loading", "data.py(12): fetch[0]")
    assert loading not in path_of(events)
    assert loading in path_of(events, data_load=r"fetch\[\d\]$")


def test_what_is_shorter_than_a_microsecond_counts():
    events = [operator("A", 0.001, 0.4), operator("B", 0.4, 0.457), operator("C", 0.457, 0.999)]
    assert path_of(events) == [
        (0.001, 0.4, "operator", "A"),
        (0.4, 0.457, "operator", "B"),
        (0.457, 0.999, "operator", "C"),
    ]


def test_nanoseconds_of_absolute_times_are_exact():
    text = b"""[{"ph": "X", "cat": "cpu_op", "name": "A", "pid": 1, "tid": 1,
                 "ts": 1712195495519695.811, "dur": 0.002}]"""
    start_ns = 1712195495519695811
    assert longpole.read_trace(text).critical_path(whole=True).window == (start_ns, start_ns + 2)


def test_the_backward_pass_is_found_by_its_arrows_alone():
    events = [
        *(operator("forward", 0, 10), operator("optimizer", 84, 94)),
        *(operator("MulBackward0", 15, 50, tid=2), operator("AddBackward0", 52, 80, tid=2)),
        *arrow(5, 20, 1, from_thread=1, to_thread=2),
    ]
    assert path_of(events)[1:3] == [
        (10, 15, "handover", None),
        (15, 50, "operator", "MulBackward0"),
    ]


def test_a_path_points_at_its_events_however_many_frames_surround_them():
    events = [
        *(frame(f"f{i}", i, 100 - i) for i in range(8)),
        *(operator("A", 10, 40), launch(20, 22, 1), kernel("K", 24, 90, 1)),
        call("cudaDeviceSynchronize", 50, 91),
    ]
    trace = read(events)
    rows = trace.critical_path(whole=True).segments.join(trace.events, on="event")
    rows = rows.filter(pl.col("kind").cast(pl.String).is_in(["host_gap", "operator", "kernel"]))
    assert (rows["name"] == rows["name_right"]).all()
    assert (rows["start_ns"] >= rows["start_ns_right"]).all()
    ends_ns = rows["start_ns_right"] + rows["duration_ns_right"]
    assert (rows["start_ns"] + rows["duration_ns"] <= ends_ns).all()


def test_reused_correlation_numbers_make_no_work_twice():
    events = [
        *(launch(0, 2, 9), launch(10, 12, 9), launch(50, 52, 9)),
        *(kernel("K1", 3, 8, 9), kernel("K2", 14, 40, 9), kernel("K3", 54, 60, 9)),
    ]
    path = read(events).critical_path(whole=True)
    launches = path.edges.filter(pl.col("role").cast(pl.String) == "launch")
    assert launches.height == 3
    assert path.length_ns == 60 * US


# Odd traces: an answer or one clear sentence.


def test_a_trace_without_a_device():
    assert path_of([operator("A", 0, 10)]) == [(0, 10, "operator", "A")]


def test_a_trace_without_a_thread():
    assert path_of([kernel("A", 0, 10), kernel("B", 12, 20)]) == [
        (0, 10, "kernel", "A"),
        (10, 12, "kernel_delay", "B"),
        (12, 20, "kernel", "B"),
    ]


@pytest.mark.parametrize("events", [[], [operator("broken", 5, 3)]])
def test_a_trace_without_work(events):
    with pytest.raises(longpole.WindowError, match="no work on a main thread or a device"):
        read(events).critical_path(whole=True)


def test_stream_zero_is_a_stream():
    events = [
        *(call("hipLaunchKernel", 0, 2, 1), call("hipDeviceSynchronize", 3, 40)),
        *(kernel("Cijk_Ailk", 4, 35, 1, stream=0), operator("A", 40, 50)),
    ]
    assert (35, 40, "sync_return", "hipDeviceSynchronize") in path_of(events)


def test_other_accelerators_have_other_names():
    events = [
        span("mtia_runtime", "launch", 0, 2, correlation=1),
        span("mtia_ccp_events", "fc", 4, 20, pid=3, tid=0, correlation=1),
    ]
    assert path_of(events)[1:] == [(2, 4, "launch", "fc"), (4, 20, "kernel", "fc")]


def test_clocks_that_disagree_are_counted_and_nothing_is_shifted(said):
    trace = read([operator("A", 0, 6), launch(10, 12, 1), kernel("K", 8, 30, 1)])
    path = trace.critical_path(whole=True)
    assert (path.counts["clock_skew"], path.violations["back_ns"].to_list()) == (1, [2 * US])
    assert path.by_kind.sort("kind")["kind"].to_list() == ["clock_skew", "kernel", "operator"]
    said.within(path.explain())
    [found] = [it for it in longpole.check(trace) if it.code == "dependencies_back_in_time"]
    assert (found.count, found.first.name) == (1, "K")
    assert found.sentence.endswith("by at most 2.00 µs")


@pytest.mark.parametrize("extreme", [9.2e15, -9.2e15, 4.6e15])
def test_times_far_apart_take_no_part_and_break_nothing(extreme):
    trace = read([operator("A", 0, 10), operator("far", extreme, extreme + 1), kernel("K", 5, 12)])
    path = trace.critical_path(between=(0, 12 * US))
    assert path.length_ns == 12 * US
    assert path.what_if(Scale(by=1e9)).makespan_ns > 0


def test_many_kernels_at_once_on_one_stream():
    kernels = [kernel(f"K{i}", i / 100, 500 + i / 100) for i in range(3_000)]
    path = read(kernels).critical_path(whole=True)
    assert path.length_ns == path.segments["duration_ns"].sum()


def test_everything_at_one_instant():
    events = [operator("A", 5, 5), launch(5, 5, 1), kernel("K", 5, 5, 1), call("cudaFree", 5, 5)]
    assert read(events).critical_path(whole=True).length_ns == 0
