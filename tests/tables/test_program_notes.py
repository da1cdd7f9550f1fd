"""Notes of `longpole check` about the program: each rule on a trace that shows it, and on a
near miss."""

from __future__ import annotations

import json

import pytest

from longpole.cli import program
from longpole.tables.program_notes import RULES, program_notes
from longpole.testing import TraceBuilder

STEPS = range(1, 6)
STEP_US = 10_000


def notes(builder):
    return {note["code"]: note for note in program_notes(builder.read())}


def steps(add):
    """Build steps of 10 ms with a kernel of 1 ms each, to which `add` adds from a start on."""
    builder = TraceBuilder()
    for number in STEPS:
        start = number * STEP_US
        builder.step(number, (start, start + STEP_US))
        builder.launch("gemm", call=(start + 10, start + 20), work=(start + 30, start + 1_030))
        add(builder, start)
    return builder


@pytest.mark.parametrize("n_devices", [1, 2])
def test_data_parallel_is_noted_where_it_uses_several_devices(n_devices):
    def add(builder, start):
        builder.annotation("DataParallel.forward", (start + 5, start + 900))
        for device in range(n_devices):
            builder.kernel("gemm", (start + 2_000, start + 2_500), device=device, stream=9)

    assert ("data_parallel" in notes(steps(add))) == (n_devices == 2)


@pytest.mark.parametrize(
    ("has_nccl", "is_distributed", "expected"),
    [(False, True, True), (True, True, False), (False, False, False)],
)
def test_gloo_is_noted_where_it_reduces_gradients_of_a_gpu(has_nccl, is_distributed, expected):
    def add(builder, start):
        if is_distributed:
            builder.annotation("DistributedDataParallel.forward", (start + 5, start + 900))
        builder.operator("gloo:all_reduce", (start + 3_000, start + 5_000), thread=2)
        if has_nccl:
            call, work = (start + 6_000, start + 6_010), (start + 6_020, start + 6_500)
            builder.launch("ncclDevKernel_AllReduce", call=call, work=work, stream=20)

    assert ("gloo_on_gpu" in notes(steps(add))) == expected


CONVOLUTION = [[8, 3, 32, 32], [16, 3, 3, 3], [16], [], [], [], []]
NORM = [[8, 16, 30, 30], [16], [16], [16], [16], [], [], [], []]


@pytest.mark.parametrize(
    ("convolution", "norm", "training", "between", "expected"),
    [
        (CONVOLUTION, NORM, "True", "aten::add_", True),
        (CONVOLUTION, NORM, "True", None, True),
        ([*CONVOLUTION[:2], [], *CONVOLUTION[3:]], NORM, "True", None, False),
        (CONVOLUTION, NORM, "False", None, False),
        (CONVOLUTION, NORM, "", None, False),
        (CONVOLUTION, NORM, "True", "aten::relu_", False),
        (CONVOLUTION, [[8, 32, 30, 30], *NORM[1:]], "True", None, False),
    ],
)
def test_a_bias_before_a_batch_norm_is_noted(convolution, norm, training, between, expected):
    values = ["", "", "", "", "", training, "0.1", "1e-05", "True"]

    def add(builder, start):
        dims = {"Input Dims": convolution}
        builder.operator("aten::conv2d", (start + 2_000, start + 2_100), **dims)
        if between:
            builder.operator(between, (start + 2_110, start + 2_150))
        given = {"Input Dims": norm, "Concrete Inputs": values}
        builder.operator("aten::batch_norm", (start + 2_200, start + 2_300), **given)

    assert ("bias_before_batch_norm" in notes(steps(add))) == expected


def test_a_convolution_inside_that_of_autocast_is_counted_once():
    values = ["", "", "", "", "", "True", "0.1", "1e-05", "True"]

    def add(builder, start):
        dims = {"Input Dims": CONVOLUTION}
        builder.operator("aten::conv2d", (start + 2_000, start + 2_100), **dims)
        builder.operator("aten::conv2d", (start + 2_020, start + 2_090), **dims)
        given = {"Input Dims": NORM, "Concrete Inputs": values}
        builder.operator("aten::batch_norm", (start + 2_200, start + 2_300), **given)

    note = notes(steps(add))["bias_before_batch_norm"]
    assert note["sentence"].startswith("1 convolution a step add")


@pytest.mark.parametrize(("call_us", "expected"), [(500, True), (1, False)])
def test_kernels_that_are_loaded_in_steps_are_noted(call_us, expected):
    def add(builder, start):
        builder.call("cuModuleLoadData", (start + 2_000, start + 2_000 + call_us))

    assert ("lazy_loading" in notes(steps(add))) == expected


@pytest.mark.parametrize(
    ("late_us", "by", "expected"),
    [
        (5, "cudaLaunchKernel", True),
        (5, "hipModuleLaunchKernel", True),
        (-5, "cudaLaunchKernel", False),
        (5, "aclrtLaunchKernel", False),
    ],
)
def test_launches_that_wait_for_their_kernels_are_noted(late_us, by, expected):
    builder = TraceBuilder()
    for number in STEPS:
        start = number * STEP_US
        builder.step(number, (start, start + STEP_US))
        for place in range(4):
            begin = start + 100 + place * 1_000
            end = begin + 500
            builder.launch("gemm", by=by, call=(begin, end + late_us), work=(begin + 10, end))
    assert ("launch_blocking" in notes(builder)) == expected


@pytest.mark.parametrize(
    ("n_cells", "device", "between", "expected"),
    [
        (8, "cuda", None, True),
        (7, "cuda", None, False),
        (8, "cpu", None, False),
        (8, "cuda", "gemm", False),
    ],
)
def test_recurrent_cells_in_a_loop_are_noted(n_cells, device, between, expected):
    def add(builder, start):
        for number in range(n_cells):
            begin = start + 2_000 + 100 * number
            builder.operator("aten::select", (begin, begin + 5))
            builder.operator("aten::lstm_cell", (begin + 10, begin + 60))
            if device == "cuda":
                call, work = (begin + 20, begin + 25), (begin + 30, begin + 50)
                builder.launch("lstm_cell_forward", call=call, work=work)
            if between:
                call, work = (begin + 70, begin + 75), (begin + 80, begin + 90)
                builder.launch(between, call=call, work=work)

    found = notes(steps(add)).get("recurrent_cells")
    assert (found is not None) == expected
    if found:
        assert found["sentence"] == "a loop calls aten::lstm_cell 8 times a step"


@pytest.mark.parametrize(("n_checked", "expected"), [(4, True), (1, False)])
def test_a_backward_pass_that_is_checked_for_nan_is_noted(n_checked, expected):
    def add(builder, start):
        for number in range(4):
            begin = start + 2_000 + 100 * number
            name = "autograd::engine::evaluate_function: MmBackward0"
            builder.operator(name, (begin, begin + 90))
            if number < n_checked:
                builder.operator("aten::isnan", (begin + 50, begin + 60))

    assert ("anomaly_mode" in notes(steps(add))) == expected


@pytest.mark.parametrize(
    ("nodes", "beside", "expected"),
    [
        (12, None, True),
        (0, None, False),
        (3, None, False),
        (12, "autograd::engine::evaluate_function: MmBackward0", False),
        (12, "Optimizer.step#Adam.step", False),
        (12, "kernels of another thread", False),
    ],
)
def test_an_inference_that_prepares_a_backward_pass_is_noted(nodes, beside, expected):
    def add(builder, start):
        for place in range(20):
            begin = start + 2_000 + 100 * place
            number = {"Sequence number": 500 + min(place, nodes)}
            builder.operator("aten::mm", (begin, begin + 90), **number)
        begin = start + 6_000
        if beside and beside.startswith("autograd"):
            builder.operator(beside, (begin, begin + 90), thread=2)
        elif beside and beside.startswith("Optimizer"):
            builder.annotation(beside, (begin, begin + 90))
        elif beside:
            call, work = (begin, begin + 10), (begin + 20, begin + 500)
            builder.launch("gemm", call=call, work=work, thread=2)

    assert ("unused_graph" in notes(steps(add))) == expected


def test_without_steps_a_backward_pass_may_still_follow():
    builder = TraceBuilder()
    for place in range(60):
        begin = 100 * place
        builder.operator("aten::mm", (begin, begin + 90), **{"Sequence number": place})
        builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 30, begin + 80))
    assert "unused_graph" not in notes(builder)


def test_check_shows_the_notes_apart_from_the_problems_of_the_trace(tmp_path, capsys):
    def add(builder, start):
        builder.call("cuModuleLoadData", (start + 2_000, start + 2_500))

    path = str(steps(add).write(tmp_path / "trace.json"))
    assert program.run(["check", path]) == 0
    out = capsys.readouterr().out
    assert "lazy_loading" in out.partition("About the program, not the trace:")[2]
    program.run(["check", path, "--json"])
    data = json.loads(capsys.readouterr().out)["data"]
    assert [note["code"] for note in data["program"]] == ["lazy_loading"]
    assert "lazy_loading" not in {found["code"] for found in data["findings"]}


def test_every_rule_has_a_code_of_its_own():
    assert len({rule.code for rule in RULES}) == len(RULES)
