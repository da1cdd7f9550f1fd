"""A checkpoint that runs a layer again: the trace, the gain and the sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_steps import named
from longpole import read_trace
from longpole.testing import TraceBuilder

RECORDINGS = Path(__file__).parents[1] / "recordings"

INPUTS = {"Input Dims": "[[64, 64]]", "Input type": '["float"]'}
NODE = "autograd::engine::evaluate_function: "


def training(backward: list[str]) -> TraceBuilder:
    """Build steps of two layers forward, operators in a node backward, and 2 ms of gradients."""
    builder, now, free = TraceBuilder(), 0, 100
    for number in range(4):
        first = now
        for names, node in ((["aten::linear", "aten::layer_norm"], None), (backward, NODE)):
            if node is not None:
                builder.operator(f"{node}CheckpointFunctionBackward", (now, now + 15 * len(names)))
            for name in names:
                builder.operator(name, (now + 1, now + 14), **INPUTS)
                builder.launch(name, call=(now + 2, now + 8), work=(free, free + 1_000))
                now, free = now + 15, free + 1_000
        builder.operator(f"{NODE}AddmmBackward0", (now, now + 20))
        builder.launch("gemm", call=(now + 5, now + 10), work=(free, free + 2_000))
        now, free = now + 20, free + 2_000
        builder.call("cudaDeviceSynchronize", (now, free + 5))
        now, free = free + 10, free + 30
        builder.step(number, (first, now))
    return builder


def test_a_layer_that_runs_again_is_found_in_steps_that_the_host_has_left():
    # The kernels of a step were launched a step or two earlier. Without checkpoints, the program
    # was 17.2 % faster on the GPU on which it was recorded.
    trace = read_trace(RECORDINGS / "checkpoint.before.json.gz").without_profiler()
    [found, *_] = trace.verdict().remedies
    assert found.remedy == "recomputation"
    assert found.gain.low - 0.03 <= 0.172 <= found.gain.high + 0.03, found


def test_a_layer_that_runs_again_gains_its_kernels(said):
    [found, *_] = training(["aten::linear", "aten::layer_norm"]).read().verdict().remedies
    assert (found.remedy, found.name) == ("recomputation", "aten::linear")
    assert abs(found.gain.value - 2 / 6) < 0.01, found
    said(found.evidence)


def test_gradients_are_left_alone():
    assert "recomputation" not in named(training(["aten::mm", "aten::mm"]))


def test_a_single_operator_of_a_function_of_the_user_is_left_alone():
    assert "recomputation" not in named(training(["aten::linear"]))


def test_a_layer_that_runs_again_is_found_where_the_host_limits():
    builder, now = TraceBuilder(), 0
    for number in range(4):
        first = now
        for node in (None, f"{NODE}CheckpointFunctionBackward"):
            if node is not None:
                builder.operator(node, (now, now + 400))
                now += 100
            for name in ("aten::linear", "aten::layer_norm"):
                builder.operator(name, (now + 1, now + 140), **INPUTS)
                builder.launch(name, call=(now + 2, now + 8), work=(now + 10, now + 20))
                now += 150
        builder.call("cudaDeviceSynchronize", (now, now + 5))
        now += 10
        builder.step(number, (first, now))
    [found] = [row for row in builder.read().verdict().remedies if row.remedy == "recomputation"]
    # From the start of the node to the end of its last forward operator: 390 of 710 us.
    assert found.gain.value == pytest.approx(390 / 710, abs=0.02)
