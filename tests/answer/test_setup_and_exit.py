"""What is said of the beginning and the end of a program, and of records that cannot be right."""

import sqlite3
from contextlib import closing

import polars as pl
import pytest

import longpole
from longpole import read_trace
from longpole.cli import program
from longpole.testing import TraceBuilder

CALLS = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, end, eventClass, globalTid, correlationId, "
    "nameId)"
)
KERNELS = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, "
    "correlationId, globalPid, demangledName, shortName)"
)


def export(path, calls=(), kernels=(), messages=(), ranges=()):
    """Write an export of Nsight Systems: names with times in us, kernels with their call."""
    names = sorted({name for name, *_ in (*calls, *kernels)})
    number = {name: row + 1 for row, name in enumerate(names)}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds(id integer primary key, value text)")
        database.executemany("INSERT INTO StringIds VALUES(?, ?)", enumerate(names, 1))
        database.execute(CALLS)
        database.execute(KERNELS)
        database.execute("CREATE TABLE DIAGNOSTIC_EVENT(timestamp, severity, text)")
        database.execute(
            "CREATE TABLE NVTX_EVENTS(start, end, eventType, text, globalTid, textId, domainId)"
        )
        thread = 1 << 24 | 7
        for row, (name, start_us, end_us) in enumerate(calls, 1):
            times = (start_us * 1000, end_us * 1000)
            values = (*times, 0, thread, row, number[name])
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?,?,?,?,?,?)", values)
        for name, start_us, end_us, call in kernels:
            values = (start_us * 1000, end_us * 1000, 0, 1, 7, call, 1 << 24, *[number[name]] * 2)
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?,?,?,?,?,?,?,?,?)", values
            )
        for severity, text in messages:
            database.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES(0, ?, ?)", (severity, text))
        for name, start_us, end_us in ranges:
            values = (start_us * 1000, end_us * 1000, 59, name, thread, 0)
            database.execute("INSERT INTO NVTX_EVENTS VALUES(?,?,?,?,?,NULL,?)", values)
    return path


def test_unloading_at_the_exit_is_no_part_of_the_whole_trace(said, tmp_path):
    launches = [("cuLaunchKernel", 10 * row, 10 * row + 5) for row in range(10)]
    exit_calls = [("cuModuleUnload", 1_000 + 90 * row, 1_090 + 90 * row) for row in range(100)]
    kernels = [("conv", 20 + 90 * row, 110 + 90 * row, row + 1) for row in range(10)]
    calls = [*launches, ("cudaStreamSynchronize", 110, 930), *exit_calls]
    trace = read_trace(export(tmp_path / "exit.sqlite", calls, kernels))
    window = longpole.choose_window(trace, whole=True)
    assert window.duration_ns == 930_000
    said(window.clause)
    assert trace.verdict(whole=True).sides == ("kernels",)


def test_unloading_before_more_work_stays_in_the_trace(tmp_path):
    calls = [("cuLaunchKernel", 0, 5), ("cuModuleUnload", 200, 300), ("cuLaunchKernel", 300, 305)]
    kernels = [("conv", 10, 100, 1), ("conv", 310, 400, 3)]
    trace = read_trace(export(tmp_path / "between.sqlite", calls, kernels))
    assert longpole.choose_window(trace, whole=True).duration_ns == 400_000


def test_the_first_call_that_needs_the_device_creates_the_context(said, tmp_path):
    calls = [
        ("cudaFree", 0, 119_000),
        ("cudaMalloc", 120_000, 120_050),
        ("cuLaunchKernel", 120_060, 120_070),
    ]
    trace = read_trace(export(tmp_path / "first.sqlite", calls, [("fill", 120_080, 120_090, 3)]))
    [action, *_] = trace.verdict().actions
    assert action.startswith("Record a later step")
    said.within(action)
    assert "Keep the memory" not in str(trace.verdict())


def test_a_later_call_that_frees_creates_nothing(said, tmp_path):
    calls = [
        ("cuLaunchKernel", 0, 10),
        ("cudaFree", 100, 119_000),
        ("cuLaunchKernel", 119_000, 119_010),
    ]
    kernels = [("fill", 20, 90, 1), ("fill", 119_020, 119_030, 3)]
    trace = read_trace(export(tmp_path / "later.sqlite", calls, kernels))
    [action, *_] = trace.verdict().actions
    said(action)


def test_a_call_of_every_step_is_not_called_set_up():
    builder = TraceBuilder()
    for number in range(5):
        begin = 1_000 * number
        builder.step(number, (begin, begin + 1_000))
        builder.call("cuModuleLoadData", (begin + 10, begin + 900))
        builder.launch("gemm", call=(begin + 910, begin + 915), work=(begin + 920, begin + 950))
        builder.call("cudaDeviceSynchronize", (begin + 920, begin + 955))
    [action, *_] = builder.read().verdict().actions
    assert action.startswith("Load kernels and modules once, before the loop")


def test_messages_of_the_profiler_say_why_nothing_was_recorded(said, tmp_path, capsys):
    messages = [(1, "Profiling started."), (2, "No CUDA events collected. Does it use CUDA?")]
    ranges = [("execute_model", 10 * row, 10 * row + 9) for row in range(10)]
    path = export(tmp_path / "empty.sqlite", messages=messages, ranges=ranges)
    assert program.run(["path", str(path)]) == 0  # of the annotations
    capsys.readouterr()
    for command in (["summary"],):
        assert program.run([command[0], str(path), *command[1:]]) == 4
        text = capsys.readouterr()
        assert 'The profiler reports "No CUDA events collected. Does it use CUDA?".' in text.out
        assert text.err == ""
    program.run(["summary", str(path)])
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)
    # What to record is said in the terms of the profiler.
    said.within(told)
    served = longpole.serving(read_trace(path))
    said.within(served.sentence)
    assert "busy" not in served.sentence
    unknown = ("device_ns", "device_share", "blocked_ns")
    assert [served.kinds[0][name] for name in unknown] == [None] * 3
    assert [it.code for it in longpole.check(read_trace(path))] == [
        "profiler_message",
        "no_timed_events",
    ]


def test_the_call_of_a_copy_from_pageable_memory_goes_with_the_copy():
    builder = TraceBuilder()
    name = "Memcpy HtoD (Pageable -> Device)"
    for number in range(4):
        begin = 10_000 * number
        builder.step(number, (begin, begin + 10_000))
        call, work = (begin + 100, begin + 9_500), (begin + 150, begin + 9_660)
        builder.launch(name, by="cudaMemcpyAsync", call=call, work=work)
        call, work = (begin + 9_510, begin + 9_520), (begin + 9_670, begin + 9_900)
        builder.launch("solve", call=call, work=work)
        builder.call("cudaDeviceSynchronize", (begin + 9_530, begin + 9_910))
    verdict = builder.read().verdict()
    assert verdict.sides == ("copies",)
    assert verdict.gains["copies"].value == pytest.approx(0.95, abs=0.02)


def test_staging_is_no_wait_that_can_be_removed():
    builder = TraceBuilder()
    name = "Memcpy HtoD (Pageable -> Device)"
    for number in range(4):
        begin = 10_000 * number
        builder.step(number, (begin, begin + 10_000))
        builder.launch("solve", call=(begin + 10, begin + 20), work=(begin + 100, begin + 3_000))
        call, work = (begin + 100, begin + 9_500), (begin + 3_010, begin + 9_600)
        builder.launch(name, by="cudaMemcpyAsync", call=call, work=work)
    remedies = {it.remedy: it.gain.high for it in builder.read().verdict().remedies}
    assert remedies["blocking_calls"] < 0.35


def test_a_wait_called_by_another_thread_explains_a_late_start():
    builder = TraceBuilder().step(1, (0, 3_000))
    builder.launch(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", call=(10, 15), work=(20, 2_520), stream=27
    )
    builder.launch("gemm_a", call=(30, 35), work=(40, 740))
    builder.call("cudaStreamWaitEvent", (40, 41))
    builder.launch("gemm_b", call=(60, 65), work=(2_523, 2_823), thread=2)
    builder.call("cudaDeviceSynchronize", (70, 2_830))
    verdict = builder.read().verdict()
    assert verdict.sides == ("communication",)
    assert verdict.gaps == ()
    assert "set-up" not in str(verdict)


def test_a_node_of_a_graph_waits_while_others_fill_the_device():
    builder = TraceBuilder()
    nodes = [(7, 0, 50), (8, 1, 90), (7, 91, 140), (8, 91, 180), (7, 181, 230)]
    for replay in range(3):
        begin = 1_000 * replay
        builder.call("cudaGraphLaunch", (begin, begin + 9), correlation=900 + replay)
        for stream, start, end in nodes:
            span = (begin + 20 + start, begin + 20 + end)
            builder.kernel("gemm", span, stream=stream, correlation=900 + replay)
        builder.call("cudaDeviceSynchronize", (begin + 20, begin + 255))
    path = builder.read().critical_path(whole=True)
    assert "graph_gap" not in path.segments["kind"].cast(pl.String).to_list()


def late_replays():
    """Build replays of graphs that all run long after the last of them was launched."""
    builder = TraceBuilder()
    for number in range(3):
        begin = 34_000 * number
        builder.annotation("step[DECODE bs=31]", (begin, begin + 33_000))
        builder.call("hipGraphLaunch", (begin + 600, begin + 1_000), correlation=number + 1)
    for number in range(30):
        span = (103_000 + 2_610 * number, 105_600 + 2_610 * number)
        builder.kernel("moe", span, stream=0, correlation=number // 10 + 1)
    return builder


def test_no_figure_rests_on_times_that_cannot_be_right(said):
    trace = late_replays().read()
    codes = {finding.code: finding.count for finding in longpole.check(trace)}
    assert codes["late_on_idle_device"] == 1
    found = longpole.serving(trace)
    assert "tokens/s" not in found.sentence
    said.within(found.sentence)
    for kind in found.kinds:
        assert kind["decode_tokens_per_second"] is kind["scheduler_share"] is None


def test_work_launched_later_cannot_run_first_on_the_same_stream():
    builder = TraceBuilder().launch("first", call=(0, 5), work=(100, 110))
    trace = builder.launch("second", call=(10, 15), work=(20, 30)).read()
    codes = {finding.code: finding.sentence for finding in longpole.check(trace)}
    assert codes["out_of_stream_order"].endswith("by up to 70.0 µs")
    sound = (
        TraceBuilder().launch("a", call=(0, 5), work=(6, 8)).launch("b", call=(7, 9), work=(10, 12))
    )
    assert "out_of_stream_order" not in {it.code for it in longpole.check(sound.read())}


def test_categories_without_a_kind_are_named_with_what_to_do():
    builder = TraceBuilder()
    for row in range(3):
        builder.event(ph="X", cat="acme_kernel", name="k", pid=1, tid=1, ts=row, dur=1)
    builder.event(ph="X", cat="acme_api", name="launch", pid=1, tid=2, ts=0, dur=1)
    [found] = [it for it in longpole.check(builder.read()) if it.code == "unknown_categories"]
    assert found.sentence.endswith("acme_kernel (3), acme_api (1)")
    assert "--vocabulary" in found.hint


def test_categories_of_rocprofiler_systems_are_known():
    builder = TraceBuilder()
    builder.event(
        ph="X",
        cat="rocm_hip_api",
        name="hipLaunchKernel",
        pid=1,
        tid=1,
        ts=0,
        dur=8,
        args={"corr_id": 1},
    )
    place = {"corr_id": 1, "device": 0, "stream": 0}
    builder.event(
        ph="X", cat="rocm_kernel_dispatch", name="gemm", pid=1, tid=9, ts=20, dur=60, args=place
    )
    trace = builder.read()
    assert trace.launches["call"].to_list() == [0]
    assert trace.verdict().sides == ("kernels",)


@pytest.mark.parametrize(("start", "length"), [(1_700_000_002_000_900, -500)])
def test_the_summary_says_that_records_without_a_time_are_in_no_figure(
    said, start, length, tmp_path, capsys
):
    builder = TraceBuilder()
    for number in range(4):
        begin = 1_700_000_000_000_000 + 1_000 * number
        builder.step(number, (begin, begin + 1_000))
        builder.launch("gemm", call=(begin + 20, begin + 30), work=(begin + 40, begin + 800))
        builder.call("cudaDeviceSynchronize", (begin + 70, begin + 810))
    call = (1_700_000_002_000_100, 1_700_000_002_000_105)
    builder.call("cudaLaunchKernel", call, correlation=77)
    builder.kernel("lost", (start, start + length), correlation=77)
    program.run(["summary", str(builder.write(tmp_path / "trace.json"))])
    text = " ".join(capsys.readouterr().out.split())
    said.within(text)
    codes = [found.code for found in longpole.check(builder.read())]
    assert "work_before_its_call" not in codes


def test_where_launches_are_missing_a_path_of_the_host_is_not_called_balanced():
    builder = TraceBuilder().call("hipGetDevice", (0, 1))
    place = {"pid": 0, "tid": 1, "args": {"device": 0, "stream": 1}}
    builder.call("hipMemcpyWithStream", (1_300_000, 1_575_000))
    builder.event(ph="X", cat="gpu_memcpy", name="Memcpy HtoD", ts=1_574_000, dur=8, **place)
    builder.call("hipLaunchKernel", (1_580_000, 1_589_000))
    builder.event(ph="X", cat="kernel", name="elementwise", ts=1_589_006, dur=5, **place)
    builder.call("hipMemcpyWithStream", (1_590_000, 1_591_000))
    builder.event(ph="X", cat="gpu_memcpy", name="Memcpy DtoH", ts=1_590_100, dur=600, **place)
    verdict = builder.read().verdict()
    assert (verdict.status, verdict.cause) == ("inconclusive", "unlinked")
