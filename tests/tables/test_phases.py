"""Table `phases`: host and GPU time of data loading, forward, backward and the optimizer."""

from __future__ import annotations

import json
from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.tables.activities import own_activities
from longpole.testing import TraceBuilder
from oracles.raw_file import union
from oracles.simulator import simulate
from strategies import traces
from styles import document

ENGINE = "autograd::engine::evaluate_function: MmBackward0"
AUTOGRAD = 2


def training():
    """Build a step: the operators of forward and backward are linked, the rest has annotations."""
    builder = TraceBuilder().step(1, (0, 200))
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", (0, 20))
    builder.annotation("Optimizer.zero_grad#SGD.zero_grad", (20, 25))
    first, last = ({"Sequence number": number, "Fwd thread id": 0} for number in (1, 2))
    builder.operator("aten::mm", (30, 40), **first)
    builder.launch("gemm", call=(32, 35), work=(36, 60))
    builder.operator("aten::to", (42, 44))
    builder.operator("aten::mse_loss", (50, 60), **last)
    builder.launch("loss", call=(52, 55), work=(60, 70))
    for start, number in ((70, 2), (90, 1)):
        node = {"Sequence number": number, "Fwd thread id": 1}
        builder.operator(ENGINE, (start, start + 10), thread=AUTOGRAD, **node)
        call, work = (start + 2, start + 4), (start + 5, start + 20)
        builder.launch("gemm", call=call, work=work, thread=AUTOGRAD)
    builder.launch(
        "ncclDevKernel_AllReduce", call=(96, 98), work=(100, 150), thread=AUTOGRAD, stream=9
    )
    builder.annotation("Optimizer.step#SGD.step", (110, 140))
    builder.operator("aten::_foreach_add_", (112, 130))
    builder.launch("multi_tensor", call=(114, 116), work=(150, 170))
    builder.operator("aten::item", (150, 190))
    return builder


def of_phases(builder, column):
    rows = longpole.phases(builder.read()).rows
    return {phase: value // 1_000 for phase, value in rows.select("phase", column).iter_rows()}


def test_the_host_time_of_a_step_is_split_by_what_torch_records():
    assert of_phases(training(), "host_ns") == {
        "data_loading": 20,
        "forward": 30,  # from the first to the last operator that is differentiated
        "backward": 40,  # the wait from the handoff to the autograd thread to its last operator
        "optimizer": 30,
        "zero_grad": 5,
        "other": 75,
    }


def test_gpu_time_belongs_to_the_phase_that_launched_it():
    rows = longpole.phases(training().read()).rows.filter(pl.col("count") > 0)
    times = rows.select("phase", "compute_ns", "communication_ns", "count")
    assert times.rows() == [
        ("forward", 34_000, 0, 2),
        ("backward", 30_000, 40_000, 3),  # communication during which nothing computes
        ("optimizer", 20_000, 0, 1),
    ]
    assert rows["device_share"].to_list() == pytest.approx([34 / 200, 70 / 200, 20 / 200])


def test_python_functions_mark_the_call_of_backward_and_modules():
    builder = TraceBuilder().step(1, (0, 100))
    builder.python("train.py(3): step", (0, 100)).python("nn.Module: Net_0", (10, 40))
    builder.python("torch/_tensor.py(576): backward", (45, 80))
    builder.python("torch/optim/sgd.py(80): step", (80, 95))
    builder.operator(ENGINE, (50, 75), thread=AUTOGRAD)
    # Recomputed activations are part of the backward pass.
    builder.python("nn.Module: Net_0", (55, 60), thread=AUTOGRAD)
    builder.launch("gemm", call=(56, 57), work=(58, 70), thread=AUTOGRAD)
    host = of_phases(builder, "host_ns")
    assert (host["forward"], host["backward"], host["optimizer"]) == (30, 35, 15)
    assert of_phases(builder, "device_ns")["backward"] == 12


def test_operators_before_a_backward_pass_are_forward_if_nothing_links_them():
    builder = TraceBuilder().operator("aten::mm", (0, 10)).operator("aten::relu", (15, 20))
    builder.operator("AddmmBackward0", (25, 40), thread=1)
    builder.operator("Optimizer.step#SGD.step", (50, 60)).operator("aten::item", (70, 80))
    assert of_phases(builder, "host_ns") == {
        "data_loading": 0,
        "forward": 20,
        "backward": 15,
        "optimizer": 10,
        "zero_grad": 0,
        "other": 35,
    }


def test_resetting_gradients_may_stand_between_forward_and_backward():
    builder = TraceBuilder().annotation("Optimizer.step#SGD.step", (0, 10))
    builder.operator("aten::item", (15, 20)).operator("aten::mm", (40, 50))
    builder.operator("aten::relu", (50, 60)).annotation("Optimizer.zero_grad#SGD", (60, 65))
    builder.annotation("enumerate(DataLoader)#", (25, 35)).operator("MmBackward0", (70, 90))
    host = of_phases(builder, "host_ns")
    assert (host["forward"], host["zero_grad"], host["backward"]) == (20, 5, 20)


def test_a_function_that_ends_after_its_mark_takes_no_time_from_it():
    builder = TraceBuilder().step(1, (0, 100)).annotation("Optimizer.step#SGD.step", (10, 40))
    builder.python("torch/autograd/profiler.py(9): __exit__", (35, 45))
    assert of_phases(builder, "host_ns")["optimizer"] == 30


def test_an_annotation_of_two_phases_marks_none():
    builder = TraceBuilder().annotation("forward_backward", (0, 60))
    builder.annotation("## forward ##", (0, 20)).operator("aten::mm", (0, 60))
    host = of_phases(builder, "host_ns")
    assert (host["forward"], host["backward"], host["other"]) == (20, 0, 40)


def test_most_time_in_no_phase_says_what_to_record(said):
    builder = TraceBuilder().operator("aten::mm", (0, 100))
    builder.launch("gemm", call=(10, 20), work=(20, 90))
    answer = longpole.phases(builder.read())
    said(answer.hint)
    assert longpole.phases(training().read()).hint is None
    [*_, told] = answer.blocks()
    assert told.text == answer.hint


def test_activities_without_a_launch_are_in_a_row_of_their_own():
    builder = TraceBuilder().operator("aten::mm", (0, 100)).kernel("gemm", (20, 50))
    rows = longpole.phases(builder.read()).rows
    assert rows.filter(phase="unlinked").select("host_ns", "device_ns").row(0) == (None, 30_000)


def closed(trace, window):
    """Return the rows; they sum to the window on threads, and to the busy time on devices."""
    rows = longpole.phases(trace, window).rows
    hosts, devices = trace.core.phase_times(window.span, window.on_host.span)
    n_threads = len({row["lane"] for row in hosts.to_dicts()})
    assert rows["host_ns"].sum() == n_threads * window.on_host.duration_ns
    assert min((row["duration_ns"] for row in hosts.to_dicts()), default=0) >= 0
    own = own_activities(trace, window).rows(named=True)
    assert rows["count"].sum() == len(own)
    known = {device for device, *_ in spans_of(own, window)}
    busy = [spans for _, spans, _ in spans_of(own, window)]
    computing = [spans for _, _, spans in spans_of(own, window)]
    assert rows["device_ns"].sum() == sum(map(union, busy))
    assert rows["compute_ns"].sum() == sum(map(union, computing))
    assert {row["device"] for row in devices.to_dicts()} == known
    if window.host is None:
        whole = longpole.breakdown(trace, window).group_by("device", maintain_order=True).first()
        names = ["compute_ns", "communication_ns", "copy_ns", "count"]
        assert rows.select(names).sum().rows() == whole.select(names).sum().rows()
    return rows


def spans_of(works, window):
    """Return each device with when activities ran on it that count, and those that compute."""
    spans = defaultdict(list)
    computing = defaultdict(list)
    for work in works:
        start, end = work["start_ns"], work["start_ns"] + work["duration_ns"]
        if work["inside_ns"] < work["duration_ns"]:
            start, end = max(start, window.start_ns), min(end, window.end_ns)
        spans[work["device"]].append((start, end))
        if work["work_class"] == "compute":
            computing[work["device"]].append((start, end))
    return [(device, spans[device], computing[device]) for device in spans]


def recorded(run, folder):
    path = folder / "run.json"
    run.write(path)
    return json.loads(path.read_bytes())


@given(events=traces())
def test_phases_sum_to_the_window_and_to_the_busy_time_whatever_was_recorded(events):
    trace = longpole.read_trace(document(events))
    window = longpole.choose_window(trace)
    if window is not None:
        closed(trace, window)


@settings(max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 400), name=st.sampled_from(["training", "random"]), data=st.data())
def test_phases_of_simulated_programs_close_and_do_not_depend_on_the_order(
    seed, name, data, tmp_path_factory
):
    run = simulate(name, seed=seed, steps=2, python_frames=data.draw(st.booleans()))
    events = recorded(run, tmp_path_factory.getbasetemp())["traceEvents"]
    trace = longpole.read_trace(document(events))
    window = longpole.choose_window(trace)
    assert window is not None
    rows = closed(trace, window)
    data.draw(st.randoms(use_true_random=False)).shuffle(events)
    shuffled = longpole.read_trace(document(events))
    assert longpole.phases(shuffled, window).rows.equals(rows)


@settings(max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 400), python_frames=st.booleans())
def test_the_optimizer_takes_the_time_of_its_annotation(seed, python_frames, tmp_path_factory):
    run = simulate("training", seed=seed, steps=3, python_frames=python_frames)
    trace = longpole.read_trace(
        document(recorded(run, tmp_path_factory.getbasetemp())["traceEvents"])
    )
    step = longpole.choose_window(trace)
    rows = longpole.phases(trace, step).rows
    marks = longpole.annotations(trace, step, where="side = 'host'")
    marked = marks.filter(pl.col("name").cast(pl.String).str.starts_with("Optimizer.step#"))
    assert marked["duration_ns"].sum() > 0
    assert rows.filter(phase="optimizer")["host_ns"].item() == marked["duration_ns"].sum()
