"""Where the time of a step went: small traces with what must be said of them."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.cli.program import run
from longpole.cli.summary import time_blocks
from longpole.remedies.gains import beyond
from longpole.report.text import text
from longpole.testing import TraceBuilder
from real_traces import SHARED

TRACES = SHARED / "traces"


def summary(builder, **options):
    return longpole.summary(builder.read(), **options)


def test_a_summary_says_what_holds_the_step_up_and_where_its_time_went():
    builder = (
        TraceBuilder()
        .step(1, (0, 100))
        .python("data.py(7): prepare", (0, 70))
        .operator("aten::stack", (5, 65))
        .launch("gemm", call=(70, 75), work=(80, 100))
    )
    found = summary(builder)
    assert found.verdict == builder.read().verdict()
    assert str(found) == found.verdict.sentence
    [device] = found.devices
    assert device.launch_bound_share == 0.75
    assert device.idle.waiting_for_launch_ns == 80_000


def test_communication_counts_only_where_no_kernel_hides_it():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("ncclDevKernel_AllReduce", call=(1, 2), work=(20, 100), stream=20)
    )
    found = summary(builder)
    [device] = found.devices
    assert (device.whole.communication_ns, device.whole.communication_total_ns) == (70_000, 80_000)


def test_copies_count_only_where_no_kernel_runs():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("Memcpy HtoD", call=(1, 2), work=(20, 100), by="cudaMemcpyAsync", stream=20)
    )
    [device] = summary(builder).devices
    assert (device.whole.copy_ns, device.whole.copy_total_ns) == (70_000, 80_000)


def test_work_that_was_launched_and_does_not_begin_is_not_the_hosts_fault():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 10))
        .launch("gemm", call=(1, 2), work=(90, 100), stream=20)
    )
    [device] = summary(builder).devices
    idle = device.idle
    assert (idle.other_wait_ns, idle.waiting_for_launch_ns, idle.host_ns) == (80_000, 0, 1_000)


def test_without_links_the_launch_bound_share_is_unknown_and_not_zero(said):
    builder = TraceBuilder().kernel("gemm", (10, 20)).kernel("gemm", (90, 100))
    found = summary(builder)
    [device] = found.devices
    assert device.launch_bound_share is None
    assert device.idle.host_ns is None
    said(device.idle.reason)
    assert found.verdict.status == "inconclusive"
    assert (found.unlinked.n_unlinked, found.unlinked.n_device_work) == (2, 2)


def test_a_trace_without_times_has_no_summary():
    builder = TraceBuilder().event(ph="M", name="process_name", pid=1, args={"name": "python"})
    assert summary(builder) is None


def test_the_median_of_the_complete_steps_that_follow_another_is_the_default(said):
    builder = TraceBuilder()
    for number, start, end in [(1, 0, 10), (2, 10, 50), (3, 50, 70)]:
        builder.step(number, (start, end)).launch(
            "gemm", call=(start, start + 1), work=(start + 1, end)
        )
    window = summary(builder).window
    assert (window.step, window.duration_ns) == (3, 20_000)
    said(window.reason)


def test_of_two_steps_the_second_is_chosen_and_the_first_named_as_the_one_before(said):
    builder = TraceBuilder()
    for start in (100, 200):
        builder.step(start // 100, (start, start + 90))
        builder.launch("gemm", call=(start + 5, start + 8), work=(start + 10, start + 80))
    window = summary(builder).window
    assert window.step == 2
    said(window.reason)


def test_a_step_whose_kernels_are_lost_is_not_complete(said):
    builder = (
        TraceBuilder()
        .step(1, (0, 10))
        .launch("gemm", call=(0, 1), work=(1, 10))
        .step(2, (10, 90))
        .call("cudaLaunchKernel", (20, 21), correlation=99)
    )
    window = summary(builder).window
    assert window.step == 1
    said(window.reason)


def test_a_step_can_be_asked_for_by_number():
    builder = TraceBuilder().step(1, (0, 10)).operator("aten::mm", (1, 9)).step(2, (10, 90))
    assert summary(builder, step=1).window.duration_ns == 10_000


def test_a_step_that_is_not_there_is_answered_with_those_that_are():
    builder = TraceBuilder().step(4, (0, 10)).step(5, (10, 90))
    with pytest.raises(longpole.WindowError, match=r"no step 6; its steps go from 4 to 5"):
        summary(builder, step=6)


def test_a_kernel_counts_whole_for_the_step_that_launched_it():
    builder = (
        TraceBuilder()
        .step(1, (0, 10))
        .launch("early", call=(1, 2), work=(2, 30))
        .step(2, (10, 50))
        .launch("late", call=(11, 12), work=(20, 60), stream=8)
    )
    kernels = {step: summary(builder, step=step).kernels.rows for step in (1, 2)}
    assert [(row.name, row.duration_ns) for row in kernels[1]] == [("early", 28_000)]
    assert [(row.name, row.duration_ns) for row in kernels[2]] == [("late", 40_000)]


def test_operators_are_ranked_by_the_time_that_is_their_own():
    builder = (
        TraceBuilder()
        .operator("aten::linear", (0, 100))
        .operator("aten::addmm", (10, 90))
        .operator("aten::addmm", (95, 99))
    )
    rows = summary(builder, top=1).operators
    assert [(row.name, row.count, row.self_ns) for row in rows.rows] == [("aten::addmm", 2, 84_000)]
    assert rows.n_total == 2


@pytest.mark.parametrize(
    "name",
    [
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "hipEventSynchronize",
        "hipStreamSynchronize",
        "cuCtxSynchronize",
        "cudaMemcpy",
        "hipMemcpyWithStream",
        "hipMemcpyDtoH",
        "cuMemcpyHtoD_v2",
        "cudaMemcpyToSymbol",
        "cudaFree",
    ],
)
def test_a_call_that_waits_for_the_device_is_blocking(name):
    [call] = summary(TraceBuilder().call(name, (0, 10))).blocking_calls
    assert (call.name, call.duration_ns) == (name, 10_000)


@pytest.mark.parametrize("name", ["cudaLaunchKernel", "cudaMemcpyAsync", "hipMemsetAsync"])
def test_a_call_that_returns_at_once_is_not_blocking(name):
    assert summary(TraceBuilder().call(name, (0, 10))).blocking_calls == ()


def test_an_asynchronous_copy_that_returns_after_its_copy_is_blocking():
    builder = TraceBuilder()
    builder.launch("Memcpy DtoH", call=(0, 30), work=(5, 25), by="cudaMemcpyAsync")
    [call] = summary(builder).blocking_calls
    assert (call.name, call.why) == ("cudaMemcpyAsync", "it returned after its copy had ended")


def test_the_parts_of_a_device_sum_to_the_window():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(5, 6), work=(10, 40))
        .launch("ncclAllReduce", call=(6, 7), work=(30, 60), stream=9)
        .launch("Memset", call=(70, 71), work=(75, 80), by="cudaMemsetAsync")
        .kernel("unlinked", (85, 90))
        .operator("aten::mm", (0, 100))
    )
    found = summary(builder)
    [device] = found.devices
    whole, idle = device.whole, device.idle
    parts = (whole.compute_ns, whole.communication_ns, whole.copy_ns, whole.idle_ns)
    assert sum(parts) == found.window.duration_ns
    causes = (idle.waiting_for_launch_ns, idle.between_activities_ns, idle.other_wait_ns)
    rest = (idle.after_last_ns, idle.unlinked_ns)
    assert sum(causes + rest) == whole.idle_ns
    assert (causes, rest, idle.host_ns) == ((25_000, 0, 0), (10_000, 5_000), 17_000)


def test_every_device_has_its_lines():
    builder = (
        TraceBuilder()
        .operator("aten::mm", (0, 100))
        .launch("little", call=(0, 1), work=(1, 10), device=0)
        .launch("much", call=(1, 2), work=(2, 90), device=1, stream=7)
        .launch("more", call=(2, 3), work=(50, 95), device=1, stream=8)
    )
    found = summary(builder)
    lines = [
        (device.device, [stream.stream for stream in device.streams]) for device in found.devices
    ]
    assert lines == [(0, [7]), (1, [7, 8])]
    assert [device.whole.busy_ns for device in found.devices] == [9_000, 93_000]


def test_a_summary_is_plain_values_and_the_same_every_time():
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(0, 5), work=(10, 80))
    one, two = (json.dumps(summary(builder).to_dict()) for _ in range(2))
    assert one == two
    assert list(json.loads(one)) == [
        "window",
        "verdict",
        "devices",
        "kernels",
        "operators",
        "blocking_calls",
        "unlinked",
        "details",
        "serving",
        "recording_cost",
    ]


def told(builder, tmp_path, capsys, *options):
    builder.write(tmp_path / "trace.json.gz")
    run(["summary", str(tmp_path / "trace.json.gz"), *options])
    return capsys.readouterr().out


def test_the_sentence_stands_first_and_what_to_do_below_it(tmp_path, capsys):
    builder = TraceBuilder().step(3, (0, 10)).launch("gemm", call=(0, 10), work=(10, 100))
    words = " ".join(told(builder, tmp_path, capsys).split())
    verdict = json.loads(told(builder, tmp_path, capsys, "--json"))["data"]["verdict"]
    assert verdict["sides"] == ["kernels"]
    assert words.index(verdict["sentence"]) < words.index("gemm takes 90 % of the time")


@pytest.mark.skipif(not TRACES.exists(), reason="needs ../shared/data/traces")
def test_half_of_the_owlv2_step_is_the_host_preparing_images():
    found = longpole.summary(longpole.read_trace(TRACES / "h100_owlv2.json.gz"))
    [device] = found.devices
    assert device.whole.busy_ns / found.window.duration_ns == pytest.approx(0.468, abs=0.001)
    loading = next(row for row in found.verdict.remedies if row.remedy == "loader_workers")
    assert loading.gain.high == pytest.approx(beyond(0.51), abs=0.01)


def test_a_summary_is_about_the_times_or_the_annotation_that_was_asked_for(capsys, tmp_path):
    builder = TraceBuilder().step(1, (0, 100)).annotation("fit", (50, 70))
    path = str(
        builder.launch("gemm", call=(0, 1), work=(10, 30))
        .launch("relu", call=(51, 52), work=(55, 80))
        .write(tmp_path / "trace.json")
    )

    def kernels(*options):
        assert run(["summary", path, "--json", *options]) == 0
        document = json.loads(capsys.readouterr().out)
        found = {row["name"]: row["duration_ns"] for row in document["data"]["kernels"]}
        return found, document["scope"]["window_ns"]

    assert kernels("--window", "20000..60000") == (
        {"gemm": 10_000, "relu": 5_000},
        [20_000, 60_000],
    )
    assert kernels("--window", "fit") == ({"relu": 25_000}, [50_000, 80_000])
    assert run(["summary", path, "--window", "0..1000", "--step", "1"]) == 2


def test_communication_of_a_device_is_exposed_and_that_of_a_stream_is_all_of_it(
    tmp_path, capsys, said
):
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("ncclDevKernel_AllReduce", call=(1, 2), work=(20, 100), stream=20)
    )
    run(["summary", str(builder.write(tmp_path / "trace.json"))])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    [streams] = [line for line in lines if "idle" in line and "busy" in line]
    assert "exposed" not in streams
    told = " ".join(word for line in lines for word in line)
    said.within(told)
    rows = {" ".join(line[:4]): line for line in lines if line[:1] == ["device"]}
    assert "80.0 %" in " ".join(rows["device 0, stream 20"])


def every_table(builder, **options):
    """Return all tables of a summary as text in one line, whatever limits the step."""
    trace = builder.read()
    return " ".join(text(time_blocks(trace, longpole.summary(trace, **options))).split())


def test_shares_of_several_threads_above_all_of_the_time_say_so(said):
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 100))
    for thread in (1, 2, 3):
        builder.call("cudaDeviceSynchronize", (10, 100), thread=thread)
    out = every_table(builder)
    assert "270 µs - 3" in out
    said.within(out)


def test_times_of_several_devices_and_processes_are_said_to_be_sums(tmp_path, capsys, said):
    builder = TraceBuilder()
    for device in (0, 1):
        builder.event(
            ph="X",
            cat="cuda_runtime",
            name="cudaLaunchKernel",
            pid=10 + device,
            tid=1,
            ts=0,
            dur=1,
            args={"correlation": device + 1},
        )
        arguments = {"device": device, "stream": 7, "correlation": device + 1}
        builder.event(
            ph="X", cat="kernel", name="gemm", pid=device, tid=7, ts=2, dur=98, args=arguments
        )
        builder.event(ph="X", cat="cpu_op", name="aten::mm", pid=10 + device, tid=1, ts=0, dur=5)
    out = every_table(builder)
    said.within(out)
    said.within(out)
    assert "196 µs -" in out
    run(["table", str(builder.write(tmp_path / "trace.json")), "kernels"])
    said.within(capsys.readouterr().out)


def test_an_event_that_the_window_cuts_is_given_with_its_whole_length(said):
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 100))
    builder.call("cudaDeviceSynchronize", (10, 100))
    cut = "lasts 90.0 µs; 40.0 µs of it is in the window."
    out = every_table(builder, between=(0, 50_000))
    assert f"(cudaDeviceSynchronize) {cut}" in out
    said.within(out)
    assert "is in the window" not in every_table(builder)


def test_queues_say_which_activities_they_do_not_count(tmp_path, capsys, said):
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 100))
    builder.kernel("early", (0, 1), correlation=77)
    run(["table", str(builder.write(tmp_path / "trace.json")), "queue", "--by", "full"])
    out = " ".join(capsys.readouterr().out.split())
    said.within(out)


def test_a_share_of_kernels_is_of_the_window():
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(0, 1), work=(2, 42))
    trace = builder.read()
    [row] = longpole.kernels(trace).to_dicts()
    [same] = summary(builder).kernels.rows
    assert row["window_share"] == same.duration_ns / 100_000 == 0.4


@pytest.mark.parametrize(
    ("lengths_us", "shown", "told"),
    [((10, 900), ["kernels"], "works 900 µs"), ((900, 10), [], "works 10.0 µs of 910 µs")],
)
def test_only_the_tables_about_what_limits_the_step_are_shown(
    tmp_path, capsys, lengths_us, shown, told
):
    operator_us, kernel_us = lengths_us
    builder = TraceBuilder().operator("aten::mm", (0, operator_us))
    builder.launch("gemm", call=(1, 3), work=(operator_us, operator_us + kernel_us))
    run(["summary", str(builder.write(tmp_path / "trace.json"))])
    out = capsys.readouterr().out
    heads = [line.split() for line in out.splitlines() if {"count", "event"} <= {*line.split()}]
    tables = ("kernels", "operators", "blocking")
    assert [name for name in tables if any(name in head for head in heads)] == shown
    assert told in out


def test_kernels_are_shown_by_the_operator_that_launched_them(tmp_path, capsys):
    builder = TraceBuilder().operator("aten::mm", (0, 10), **{"Input Dims": [[64, 32], [32, 16]]})
    builder.launch("gemm", call=(1, 3), work=(10, 900))
    path = str(builder.write(tmp_path / "trace.json"))
    for command in ("summary", "path"):
        run([command, path])
        line = next(it for it in capsys.readouterr().out.splitlines() if " gemm " in it)
        assert line.index("aten::mm [64, 32] [32, 16]") < line.index(" gemm ")


def test_path_and_whatif_begin_with_the_verdict(tmp_path, capsys):
    builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100))
    path = str(builder.write(tmp_path / "trace.json"))
    for words in (["path"], ["whatif"]):
        run([*words, path])
        assert "The trace takes 100 µs; the kernels limit it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first_us", "told"),
    [
        (500, "over 1.5 times the median: `longpole diff TRACE --step 2` shows what is longer."),
        (45, "less than half of the median: `longpole diff TRACE --step 2` shows what is shorter."),
        (150, None),
        (60, None),
    ],
)
def test_a_step_that_is_left_out_and_differs_much_is_named(first_us, told, tmp_path, capsys):
    builder, at = TraceBuilder(), 0
    for number, length_us in enumerate((first_us, 100, 100, 100), start=2):
        end = at + length_us
        builder.step(number, (at, end)).operator("aten::mm", (at + 2, end - 20))
        builder.launch("gemm", call=(end - 20, end - 15), work=(end - 12, end - 2))
        at = end
    path = builder.write(tmp_path / "trace.json")
    assert run(["summary", str(path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert ("Step 2 took" in printed) == (told is not None)
    assert told is None or told in printed


def test_kernels_are_left_out_where_the_rest_fills_the_screen(tmp_path, capsys):
    """Without a number of rows; a note of a long text takes the room of the second and third."""
    builder = TraceBuilder()
    for number in range(5):
        begin = 1_000 * number
        builder.step(number, (begin, begin + 1_000))
        for place in range(4):
            start = begin + 250 * place
            builder.operator(f"custom::op_{place}", (start, start + 20))
            work = (start + 12, start + 245 - place)
            builder.launch(f"kernel_{place}", call=(start + 2, start + 8), work=work)
    path = str(builder.write(tmp_path / "trace.json"))
    for options, n_rows in (([], 3), (["--top", "4"], 4), (["--top", "1"], 1)):
        assert run(["summary", path, *options]) == 0
        out = capsys.readouterr().out
        shown = [line for line in out.splitlines() if "kernel_" in line and " µs " in line]
        assert len(shown) == n_rows
        assert len([line for line in out.splitlines()[1:] if line]) <= 15
