"""Where the time of a step went: small traces with what must be said of them."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.cli.program import run
from longpole.testing import TraceBuilder
from real_traces import SHARED

TRACES = SHARED / "traces"


def summary(builder, **options):
    return longpole.summary(builder.read(), **options)


def waits_for(builder):
    return summary(builder).answer.waits_for


def test_a_device_that_computes_most_of_the_step_waits_for_its_kernels():
    builder = (
        TraceBuilder()
        .step(1, (0, 100))
        .launch("gemm", call=(0, 5), work=(10, 80))
        .launch("relu", call=(5, 8), work=(80, 95))
    )
    found = summary(builder)
    assert found.answer.waits_for == "kernels"
    assert found.answer.sentence == (
        "Device 0 computes 85.0 % of the step (85.0 µs of 100 µs): the step waits for its "
        "kernels, most of all gemm (70.0 %, 1 kernel)."
    )
    assert [(row.name, row.duration_ns) for row in found.answer.evidence] == [
        ("gemm", 70_000),
        ("relu", 15_000),
    ]


def test_a_device_that_waits_for_launches_waits_for_what_the_launching_thread_does():
    builder = (
        TraceBuilder()
        .step(1, (0, 100))
        .python("data.py(7): prepare", (0, 70))
        .operator("aten::stack", (5, 65))
        .launch("gemm", call=(70, 75), work=(80, 100))
    )
    found = summary(builder)
    assert found.answer.waits_for == "host"
    assert found.answer.sentence == (
        "Device 0 waits for the host 75.0 % of the step (75.0 µs of 100 µs); 80.0 % of that the "
        "launching thread is in aten::stack, called from data.py(7): prepare."
    )
    [device] = found.devices
    assert device.launch_bound_share == 0.75
    assert device.idle.launched_ns == 5_000


def test_what_the_host_did_besides_the_gaps_is_no_evidence():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 40))
        .operator("while it was busy", (2, 40))
        .operator("while it was idle", (40, 90))
        .launch("gemm", call=(90, 91), work=(91, 100))
    )
    names = [row.name for row in summary(builder).answer.evidence]
    assert "while it was idle" in names
    assert "while it was busy" not in names


def test_the_spot_is_the_deepest_that_holds_half_and_counts_wherever_it_stands():
    builder = (
        TraceBuilder()
        .python("main.py(1): main", (0, 90))
        .python("main.py(5): load", (0, 50))
        .operator("decode", (0, 48))
        .python("main.py(9): other", (50, 90))
        .operator("decode", (60, 85))
        .launch("gemm", call=(90, 91), work=(91, 100))
    )
    spot = summary(builder).answer.evidence[0]
    assert (spot.name, spot.count, spot.duration_ns) == ("decode", 2, 73_000)


def test_a_spot_that_calls_itself_counts_once():
    builder = (
        TraceBuilder()
        .operator("walk", (0, 80))
        .operator("walk", (10, 70))
        .launch("gemm", call=(80, 81), work=(81, 100))
    )
    spot = summary(builder).answer.evidence[0]
    assert (spot.name, spot.count, spot.duration_ns) == ("walk", 1, 80_000)


def test_where_nothing_is_recorded_on_the_host_the_answer_says_so():
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(80, 85), work=(85, 100))
    assert "nothing is recorded on the launching thread" in summary(builder).answer.sentence


def test_communication_counts_only_where_no_kernel_hides_it():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("ncclDevKernel_AllReduce", call=(1, 2), work=(20, 100), stream=20)
    )
    found = summary(builder)
    assert found.answer.waits_for == "communication"
    [device] = found.devices
    assert (device.whole.communication_ns, device.whole.communication_total_ns) == (70_000, 80_000)


def test_copies_count_only_where_no_kernel_runs():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("Memcpy HtoD", call=(1, 2), work=(20, 100), by="cudaMemcpyAsync", stream=20)
    )
    assert waits_for(builder) == "copies"


def test_work_that_was_launched_and_does_not_begin_is_not_the_hosts_fault():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 10))
        .launch("gemm", call=(1, 2), work=(90, 100), stream=20)
    )
    assert waits_for(builder) == "launched_work"


def test_without_links_the_launch_bound_share_is_unknown_and_not_zero():
    builder = TraceBuilder().kernel("gemm", (10, 20)).kernel("gemm", (90, 100))
    found = summary(builder)
    [device] = found.devices
    assert device.launch_bound_share is None
    assert device.idle.host_ns is None
    assert device.idle.reason == "no work after a gap is linked to the call that launched it"
    assert found.answer.waits_for == "unknown"
    assert (found.unlinked.n_unlinked, found.unlinked.n_device_work) == (2, 2)


def test_a_trace_without_devices_is_answered_by_its_busiest_thread():
    builder = (
        TraceBuilder()
        .step(1, (0, 100))
        .operator("aten::mm", (0, 60))
        .operator("aten::add", (60, 80), thread=2)
    )
    found = summary(builder)
    assert found.answer.waits_for == "cpu"
    assert found.answer.sentence == (
        "Nothing that runs on a device is recorded: the step is all host. Its busiest thread is "
        "at work 60.0 % of it (60.0 µs of 100 µs); 100 % of that the busiest thread is in aten::mm."
    )


def test_a_trace_without_times_has_no_summary():
    builder = TraceBuilder().event(ph="M", name="process_name", pid=1, args={"name": "python"})
    assert summary(builder) is None


def test_the_longest_complete_step_is_the_default():
    builder = TraceBuilder()
    for number, start, end in [(1, 0, 10), (2, 10, 50), (3, 50, 70)]:
        builder.step(number, (start, end)).launch(
            "gemm", call=(start, start + 1), work=(start + 1, end)
        )
    window = summary(builder).window
    assert (window.step, window.duration_ns) == (2, 40_000)
    assert window.reason == "the longest of 3 complete steps"


def test_a_step_whose_kernels_are_lost_is_not_complete():
    builder = (
        TraceBuilder()
        .step(1, (0, 10))
        .launch("gemm", call=(0, 1), work=(1, 10))
        .step(2, (10, 90))
        .call("cudaLaunchKernel", (20, 21), correlation=99)
    )
    window = summary(builder).window
    assert window.step == 1
    assert window.reason == "the only complete one of 2 steps"


def test_a_step_can_be_asked_for_by_number():
    builder = TraceBuilder().step(1, (0, 10)).step(2, (10, 90))
    assert summary(builder, step=1).window.duration_ns == 10_000


def test_a_step_that_is_not_there_is_answered_with_those_that_are():
    builder = TraceBuilder().step(4, (0, 10)).step(5, (10, 90))
    with pytest.raises(longpole.WindowError, match=r"no step 6; it has 4, 5"):
        summary(builder, step=6)


def test_only_the_part_of_a_kernel_within_the_step_counts():
    builder = (
        TraceBuilder()
        .step(1, (0, 10))
        .launch("early", call=(1, 2), work=(2, 30))
        .step(2, (10, 50))
        .launch("late", call=(11, 12), work=(20, 60), stream=8)
    )
    kernels = {step: summary(builder, step=step).kernels.rows for step in (1, 2)}
    assert [(row.name, row.duration_ns) for row in kernels[1]] == [
        ("early", 28_000),
        ("late", 10_000),
    ]
    assert [(row.name, row.duration_ns) for row in kernels[2]] == [("late", 30_000)]


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
    reasons = (idle.host_ns, idle.launched_ns, idle.after_last_ns, idle.unlinked_ns)
    assert sum(reasons) == whole.idle_ns
    assert reasons == (17_000, 8_000, 10_000, 5_000)


def test_the_answer_is_about_the_busiest_device_and_every_device_has_its_lines():
    builder = (
        TraceBuilder()
        .operator("aten::mm", (0, 100))
        .launch("little", call=(0, 1), work=(1, 10), device=0)
        .launch("much", call=(1, 2), work=(2, 90), device=1, stream=7)
        .launch("more", call=(2, 3), work=(50, 95), device=1, stream=8)
    )
    found = summary(builder)
    assert (found.answer.device, found.answer.waits_for) == (1, "kernels")
    assert [row.name for row in found.answer.evidence] == ["much", "more"]
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
        "answer",
        "devices",
        "kernels",
        "operators",
        "blocking_calls",
        "unlinked",
    ]


def told(builder, tmp_path, capsys, *options):
    builder.write(tmp_path / "trace.json.gz")
    run(["summary", str(tmp_path / "trace.json.gz"), *options])
    return capsys.readouterr().out


def test_the_long_pole_stands_under_the_sentence(tmp_path, capsys):
    builder = TraceBuilder().step(3, (0, 10)).launch("gemm", call=(0, 10), work=(10, 100))
    words = " ".join(told(builder, tmp_path, capsys).split())
    sentence = "90.0 % kernel (90.0 % gemm), 10.0 % runtime; longpole path --step 3 shows it."
    assert f"Critical path: {sentence}" in words
    pole = json.loads(told(builder, tmp_path, capsys, "--json"))["data"]["long_pole"]
    assert (pole["step"], pole["kinds"][0]["name"]) == (3, "gemm")


def test_a_path_that_is_mostly_unexplained_gives_no_long_pole(tmp_path, capsys):
    builder = TraceBuilder().kernel("gemm", (0, 10)).kernel("gemm", (300, 310))
    data = json.loads(told(builder, tmp_path, capsys, "--json"))["data"]
    assert data["long_pole"] is None
    assert data["long_pole_reason"] == "more than a fifth of the critical path is unexplained"
    assert "Critical path" not in told(builder, tmp_path, capsys)


@pytest.mark.skipif(not TRACES.exists(), reason="needs ../shared/data/traces")
@pytest.mark.parametrize(
    ("file", "waits_for", "device", "share"),
    [
        ("h100_owlv2.json.gz", "host", 0, 0.526),
        ("ns_resolution.json.gz", "kernels", 0, 0.926),
        ("alexnet_a100_sync.json.gz", "host", 0, 0.998),
        ("amd_mi250.json.gz", "host", 2, 0.974),
        ("cpu_only_rank34.json.gz", "cpu", None, 0.824),
        ("diff/base.json.gz", "unknown", 1, 0.990),
        ("two_ranks/sampled_rank-1.json.gz", "communication", 1, 0.268),
    ],
)
def test_real_traces_are_answered_sensibly(file, waits_for, device, share):
    answer = longpole.summary(longpole.read_trace(TRACES / file)).answer
    assert (answer.waits_for, answer.device) == (waits_for, device)
    assert answer.share == pytest.approx(share, abs=0.001)


@pytest.mark.skipif(not TRACES.exists(), reason="needs ../shared/data/traces")
def test_half_of_the_owlv2_step_is_the_host_preparing_images():
    found = longpole.summary(longpole.read_trace(TRACES / "h100_owlv2.json.gz"))
    [device] = found.devices
    assert device.whole.busy_ns / found.window.duration_ns == pytest.approx(0.468, abs=0.001)
    assert found.answer.evidence[0].name == "<built-in function zoom_shift>"
