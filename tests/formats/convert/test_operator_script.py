"""Scripts that run one operator of a trace alone."""

import json
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest

from longpole.cli import program
from longpole.formats.convert.operator_script import operator_script
from longpole.testing import TraceBuilder
from real_traces import SHARED

MM = {
    "Input Dims": [[64], [4, 512], [512, 64], [], []],
    "Input type": ["float", "c10::Half", "c10::Half", "Scalar", "Scalar"],
    "Input Strides": [[1], [512, 1], [1, 512], [], []],
    "Concrete Inputs": ["", "", "", "1", "0.5"],
}


def script_of(name="aten::addmm", args=MM, **options):
    trace = TraceBuilder().operator(name, (0, 20), **args).read()
    return operator_script(trace, 0, **options)


def inputs_of(script, tmp_path):
    """Run what of a script needs no torch."""
    path = tmp_path / "op.py"
    path.write_text(script.text)
    found = runpy.run_path(str(path))
    return found["INPUTS"], found


def test_tensors_keep_shapes_strides_and_types_and_scalars_their_values(tmp_path):
    inputs, names = inputs_of(script_of(), tmp_path)
    assert inputs == [
        ((64,), (1,), "float32"),
        ((4, 512), (512, 1), "float16"),
        ((512, 64), (1, 512), "float16"),
        1,
        0.5,
    ]
    assert names["OPERATOR"] == "aten::addmm"


def test_what_was_not_recorded_is_said_and_takes_the_default(tmp_path):
    args = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}
    script = script_of("aten::softmax", args)
    inputs, names = inputs_of(script, tmp_path)
    assert inputs == [((2, 3), None, "float32"), names["NOT_RECORDED"]]
    assert script.not_recorded[:2] == (
        "input 0: strides: contiguous is assumed",
        "input 1: the value of its Scalar: the default is taken",
    )
    assert all(each in script.text for each in script.not_recorded)


@pytest.mark.parametrize(
    ("name", "types", "dims", "said"),
    [
        ("aten::_foreach_mul_", ["TensorList", "Scalar"], [[], []], "input 0: the tensors of its"),
        ("aten::as_strided", ["float", "", "", "Scalar"], [[64, 64], [], [], []], "input 1: the"),
        ("aten::view", ["float", ""], [[4], []], "input 1: the value of its argument"),
    ],
)
def test_an_operator_that_needs_what_was_not_recorded_is_refused(name, types, dims, said):
    args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": [""] * len(types)}
    with pytest.raises(ValueError, match="cannot run alone") as refused:
        script_of(name, args)
    assert said in str(refused.value)


def test_an_argument_that_may_be_none_is_not_called_recorded(tmp_path, said):
    args = {"Input Dims": [[2, 3], [4, 3], []], "Input type": ["float", "float", ""]}
    script = script_of("aten::linear", args)
    inputs, names = inputs_of(script, tmp_path)
    assert inputs[2] is names["NOT_RECORDED"]
    said.within(script.not_recorded)


def test_a_script_stops_at_what_was_not_recorded_and_has_no_default(tmp_path):
    _, names = inputs_of(script_of(), tmp_path)
    argument = SimpleNamespace(has_default_value=lambda: False, type="List[int]", name="size")
    optional = SimpleNamespace(has_default_value=lambda: False, type="Optional[Tensor]")
    default = SimpleNamespace(has_default_value=lambda: True, type="int")
    found = [
        names["is_needed"](each, names["NOT_RECORDED"]) for each in (argument, optional, default)
    ]
    assert found == [True, False, False]
    assert not names["is_needed"](argument, [1])


def test_lists_of_tensors_none_and_lists_of_numbers_are_kept_apart(tmp_path):
    args = {
        "Input Dims": [[[8], [2, 2]], [], []],
        "Input type": ["TensorList", "", "ScalarList"],
        "Input Strides": [[[1], [2, 1]], [], []],
        "Concrete Inputs": ["", "", "[1, 2]"],
    }
    inputs, _ = inputs_of(script_of("aten::cat", args), tmp_path)
    assert inputs == [[((8,), (1,), "float32"), ((2, 2), (2, 1), "float32")], None, [1, 2]]


def test_names_of_a_trace_are_no_code(tmp_path):
    name = 'aten::x"""\nraise SystemExit(7)\n"""'
    script = script_of(name)
    _, found = inputs_of(script, tmp_path)
    assert found["OPERATOR"] == name


def test_a_kernel_stands_for_the_operator_that_launched_it(said):
    builder = TraceBuilder().operator("aten::addmm", (0, 20), **MM)
    trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    kernel = trace.events["name"].to_list().index("gemm")
    script = operator_script(trace, kernel)
    assert (script.operator, trace.events["name"][script.event]) == ("aten::addmm", "aten::addmm")
    assert "DEVICE = 'cuda'" in script.text
    said.within(script.text)


def test_an_operator_runs_where_the_operators_in_it_launch(said):
    builder = TraceBuilder().operator("aten::linear", (0, 30), **MM)
    builder.operator("aten::addmm", (2, 20), **MM).launch("gemm", call=(5, 10), work=(12, 60))
    script = operator_script(builder.read(), 0)
    assert script.operator == "aten::linear"
    assert "DEVICE = 'cuda'" in script.text
    said.within(script.text)


def test_a_script_says_what_it_needs(tmp_path):
    path = tmp_path / "op.py"
    path.write_text(script_of().text)
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    done = subprocess.run(
        [sys.executable, path], check=False, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the script needs torch and longpole: No module named 'torch'")


def test_what_is_no_operator_or_has_no_inputs_is_refused(tmp_path, capsys):
    path = tmp_path / "trace.json"
    TraceBuilder().operator("aten::mm", (0, 20)).operator("step", (30, 40)).write(path)
    for event, said in [(0, "were not recorded"), (1, "not a torch operator"), (9, "no event 9")]:
        assert program.run(["repro", str(path), str(event), "-o", str(tmp_path / "op.py")]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "op.py").exists()


def test_the_name_of_an_operator_stands_for_its_longest_call(tmp_path, capsys):
    path, output = tmp_path / "trace.json", tmp_path / "op.py"
    recorded = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    builder = TraceBuilder()
    for start, end in [(0, 20), (30, 90), (100, 110)]:
        builder.operator("aten::mm", (start, end), **recorded)
    builder.write(path)
    assert program.run(["repro", str(path), "aten::mm", "-o", str(output)]) == 0
    assert "aten::mm (event 1)" in capsys.readouterr().out
    assert program.run(["repro", str(path), "aten::bmm", "-o", str(output), "-f"]) == 2
    assert "no operator 'aten::bmm'" in capsys.readouterr().err


def test_shapes_without_types_are_not_enough():
    with pytest.raises(
        ValueError, match=r"the inputs of aten::mm .* were not recorded with shapes and types"
    ):
        script_of("aten::mm", {"Input dims": [[2, 3], [3, 4]], "Input type": []})


def test_an_execution_trace_gives_overload_types_and_values(tmp_path):
    folder = SHARED / "et_pairs"
    if not folder.exists():
        pytest.skip("../shared is not there")
    kineto, execution = (folder / f"resnet_a100.{kind}.json.gz" for kind in ("kineto", "et"))
    output = tmp_path / "op.py"
    command = ["repro", str(kineto), "24040", "-o", str(output)]
    assert program.run([*command, "--et", str(execution)]) == 0
    found = runpy.run_path(str(output))
    assert (found["OPERATOR"], found["OVERLOAD"], found["DEVICE"]) == (
        *("aten::conv2d", "default", "cuda"),
    )
    assert found["INPUTS"] == [
        ((128, 3, 224, 224), None, "float32"),
        ((64, 3, 7, 7), None, "float32"),
        None,
        *([2, 2], [3, 3], [1, 1], 1),
    ]


@pytest.mark.needs("torch")
@pytest.mark.parametrize("recorded", [MM, {**MM, "Concrete Inputs": [""] * 5}])
def test_a_script_runs_with_torch(tmp_path, recorded, said):
    recorded = json.loads(json.dumps(recorded).replace("c10::Half", "float"))
    path = tmp_path / "op.py"
    path.write_text(script_of(args=recorded).text)
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=True, timeout=200
    )
    assert "aten::addmm on cpu" in done.stdout
    said.within(done.stdout)
    assert "- the values of tensors: floating-point ones are random" in done.stdout


def test_without_an_event_it_is_the_operator_of_the_longest_kernel_of_the_first_step(
    tmp_path, capsys
):
    builder = TraceBuilder()
    for step, longest in ((1, "aten::mm"), (2, "aten::addmm")):
        at = 1_000 * step
        builder = builder.step(step, (at, at + 900))
        for place, name in enumerate(("aten::mm", "aten::addmm")):
            start = at + 100 * place
            end = start + (900 if step == 2 else 90 if name == longest else 60)
            builder = builder.operator(name, (start, start + 20), **MM)
            builder = builder.launch("gemm", call=(start + 5, start + 9), work=(start + 10, end))
    path = str(builder.write(tmp_path / "trace.json"))
    asked = ["repro", path, "-o", str(tmp_path / "op.py"), "--json"]
    assert program.run(asked) == 0
    assert json.loads(capsys.readouterr().out)["data"]["operator"] == "aten::mm"


def test_without_an_event_or_a_kernel_an_operator_has_to_be_named(tmp_path, capsys, said):
    path = str(TraceBuilder().operator("aten::mm", (0, 20), **MM).write(tmp_path / "trace.json"))
    assert program.run(["repro", path, "-o", str(tmp_path / "op.py")]) == 2
    said.within(capsys.readouterr().err)
