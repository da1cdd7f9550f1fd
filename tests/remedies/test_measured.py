"""`longpole whatif --remedy`: the interval of a remedy, and what its script measures."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import longpole
from kernel_steps import A100, kernel, steps, tensors
from longpole.cli.program import run
from longpole.cli.whatif import remedy
from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

SQUARE = tensors(("float", 64, 64), ("float", 64, 64))
BATCH = tensors(("c10::BFloat16", 4, 64, 32), ("c10::BFloat16", 4, 32, 64))
SCORES = tensors(("c10::BFloat16", 4, 64, 64))
VALUES = tensors(("c10::BFloat16", 4, 64, 64), ("c10::BFloat16", 4, 64, 32))


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """Write steps of four products of float32 that take 2 ms each."""
    return steps([kernel("aten::mm", "ampere_sgemm_128x128_nn", 2_000, **SQUARE)] * 4).write(
        tmp_path / "products.json"
    )


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    run(["whatif", *map(str, words), "--json"])
    found: dict[str, object] = json.loads(capsys.readouterr().out)["data"]
    return found


def test_one_remedy_is_shown_with_its_interval(products: Path, capsys: pytest.CaptureFixture[str]):
    found = asked(capsys, products, "--remedy", "tensor_cores")
    assert [row["remedy"] for row in found["remedies"]] == ["tensor_cores"]
    assert (found["forms"], found["measured_low"]) == ([], None)


def prints(monkeypatch: pytest.MonkeyPatch, form: dict[str, object]) -> None:
    """Replace the script by one that prints a single form."""
    done = SimpleNamespace(returncode=0, stdout=json.dumps(form))
    monkeypatch.setattr(remedy.subprocess, "run", lambda *_args, **_options: done)


def test_what_the_script_prints_becomes_the_interval(
    said,
    products: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    form = {
        "operators": ["aten::mm"],
        "device": A100,
        "slow_ns": 2e6,
        "changed_ns": 5e5,
        "factor": [0.24, 0.25, 0.26],
    }
    prints(monkeypatch, form)
    script = tmp_path / "forms.py"
    found = asked(capsys, products, "--remedy", "tensor_cores", "--measure", script)
    # The kernels are nearly all of the step: what is left of it are the measured factors.
    assert abs(found["measured_low"] - 0.74) < 0.01, found
    assert abs(found["measured_high"] - 0.76) < 0.01, found
    assert found["forms"] == [form]
    text = script.read_text(encoding="utf-8")
    compile(text, str(script), "exec")
    said.within(text)


def test_times_of_another_device_are_shown_and_not_used(
    said,
    products: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    form = {"slow_ns": 2e6, "changed_ns": 5e5, "factor": [0.24, 0.25, 0.26]}
    prints(monkeypatch, {"operators": ["aten::mm"], "device": "cpu", **form})
    words = ["--remedy", "tensor_cores", "--measure", str(tmp_path / "forms.py")]
    assert run(["whatif", str(products), *words]) == 0
    text = " ".join(capsys.readouterr().out.split())
    said.within(text)
    said.within(text)


def test_a_script_is_not_written_over_another_file(
    products: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "forms.py"
    script.write_text("mine")
    assert run(["whatif", str(products), "--remedy", "tensor_cores", "--measure", str(script)]) == 2
    assert script.read_text() == "mine"
    assert "exists" in capsys.readouterr().err


def test_remedies_without_operators_to_time_are_refused(
    said, products: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["--remedy", "cuda_graph", "--measure", str(tmp_path / "forms.py")]
    assert run(["whatif", str(products), *words]) == 2
    said.within(capsys.readouterr().err)


def test_measuring_needs_a_remedy(products: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", str(products), "--measure", "forms.py"]) == 2
    assert "--measure needs --remedy" in capsys.readouterr().err


@pytest.mark.parametrize("other", [["--scale", "kernel=2"], ["--drop", "kernel"]], ids=" ".join)
def test_what_is_measured_is_of_a_remedy_alone(
    said, other: list[str], products: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["--remedy", "tensor_cores", "--measure", "forms.py", *other]
    assert run(["whatif", str(products), *words]) == 2
    said.within(capsys.readouterr().err)


def test_a_remedy_is_computed_with_other_changes(
    said, products: Path, capsys: pytest.CaptureFixture[str]
):
    remedy_alone = asked(capsys, products, "--remedy", "tensor_cores")
    [least_ns] = {change["time_ns"] for change in remedy_alone["remedies"][0]["changes"]}
    both = asked(capsys, products, "--remedy", "tensor_cores", "--drop", "operator")
    assert [change["change"] for change in both["changes"]] == ["replace", "drop"]
    assert both["makespan_ns"] == pytest.approx(4 * least_ns, rel=0.05)
    assert run(["whatif", str(products), "--drop", "operator", "--remedy", "tensor_cores"]) == 0
    out = capsys.readouterr().out
    said.within(out)
    said.within(out)


def test_a_remedy_that_does_not_fit_is_not_left_out_silently(
    said, products: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["--drop", "operator", "--remedy", "optimizer_loop"]
    assert run(["whatif", str(products), *words]) == 2
    said.within(capsys.readouterr().err)


@pytest.mark.needs("torch")
def test_products_are_timed_in_both_forms(
    products: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "forms.py"
    found = asked(capsys, products, "--remedy", "tensor_cores", "--measure", script)
    [form] = found["forms"]
    assert form["operators"] == ["aten::mm"]
    assert form["factor"] == sorted(form["factor"])
    assert found["measured_low"] is None, "the trace is of a GPU"


@pytest.mark.needs("torch")
def test_attention_is_timed_in_both_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = steps(
        [
            kernel("aten::bmm", "gemm", 500, **BATCH),
            kernel("aten::_softmax", "softmax", 900, **SCORES),
            kernel("aten::bmm", "gemm", 500, **VALUES),
        ]
    ).write(tmp_path / "attention.json")
    found = asked(capsys, path, "--remedy", "fused_attention", "--measure", tmp_path / "forms.py")
    [form] = found["forms"]
    assert form["operators"] == ["aten::bmm"]
    assert form["slow_ns"] > 0 < form["changed_ns"]


@pytest.mark.needs("torch")
def test_convolutions_are_timed_in_both_layouts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    inputs = tensors(("float", 2, 8, 16, 16), ("float", 8, 8, 3, 3))
    inputs["Input Dims"] = inputs["Input Dims"][:-1] + ", [], [], [], [], [], [], []]"
    inputs["Input type"] = json.dumps(
        ["float", "float", "", *["ScalarList"] * 3, "Scalar", "ScalarList", "Scalar"]
    )
    inputs["Concrete Inputs"] = json.dumps(
        ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    )
    one = kernel("aten::convolution", "nchwToNhwcKernel", 900, **inputs)
    other = kernel("aten::convolution", "sm80_conv", 900, **inputs)
    path = steps([one, other]).write(tmp_path / "images.json")
    words = ("--remedy", "channels_last", "--measure", tmp_path / "forms.py")
    [form] = asked(capsys, path, *words)["forms"]
    assert form["operators"] == ["aten::convolution"]


def updating(folder: Path) -> Path:
    """Write steps of an optimizer that updates 20 parameters one by one, in 3 launches each."""
    gpu = {"id": 0, "name": A100, "totalGlobalMem": 85_000_000_000}
    builder, now = TraceBuilder().header(deviceProperties=[gpu]), 0
    inputs = tensors(("float", 8, 8), ("float", 8, 8), ("float", 8, 8))
    for number in range(3):
        first, now = now, now + 20
        start = now
        for _ in range(20):
            for name in ("aten::mul_", "aten::lerp_", "aten::addcdiv_"):
                builder.operator(name, (now, now + 9), **inputs)
                builder.launch("elementwise", call=(now + 2, now + 8), work=(now + 9, now + 11))
                now += 10
        builder.annotation("Optimizer.step#Adam.step", (start, now))
        builder.step(number, (first, now))
    return builder.write(folder / "optimizer.json")


def test_the_factor_of_an_optimizer_scales_its_host_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    form = {"slow_ns": 6e5, "changed_ns": 6e4, "factor": [0.1, 0.1, 0.1]}
    prints(monkeypatch, {"operators": ["aten::addcdiv_"], "device": A100, **form})
    words = ("--remedy", "optimizer_loop", "--measure", tmp_path / "forms.py")
    found = asked(capsys, updating(tmp_path), *words)
    assert abs(found["measured_low"] - 0.9 * 600 / 620) < 0.03, found
    text = (tmp_path / "forms.py").read_text()
    assert text.count("('aten::addcdiv_', [Tensor((8, 8), (8, 1), 'float32')") == 20


@pytest.mark.needs("torch")
def test_an_optimizer_is_timed_looped_and_fused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ("--remedy", "optimizer_loop", "--measure", tmp_path / "forms.py")
    [form] = asked(capsys, updating(tmp_path), *words)["forms"]
    assert 0 < form["factor"][0] <= form["factor"][1] <= form["factor"][2]


@pytest.mark.needs("torch")
def test_attention_is_timed_with_its_gradients(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    half = "c10::BFloat16"
    gradients = tensors((half, 4, 64, 64), (half, 4, 64, 32))
    path = steps(
        [
            kernel("aten::bmm", "gemm", 500, **BATCH),
            kernel("aten::_softmax", "softmax", 900, **SCORES),
            kernel("aten::bmm", "gemm", 500, **VALUES),
            kernel("aten::bmm", "gemm", 500, **VALUES),
            kernel("aten::bmm", "gemm", 500, **BATCH),
            kernel("aten::_softmax_backward_data", "softmax", 900, **SCORES),
            kernel("aten::bmm", "gemm", 500, **gradients),
            kernel("aten::bmm", "gemm", 500, **gradients),
        ]
    ).write(tmp_path / "attention.json")
    script = tmp_path / "forms.py"
    found = asked(capsys, path, "--remedy", "fused_attention", "--measure", script)
    [form] = found["forms"]
    assert form["operators"] == ["aten::bmm"]
    assert "('fused_attention_training', " in script.read_text()


ROW = ("aten::mul", "aten::tanh", "aten::add", "aten::mean")


@pytest.fixture
def row(tmp_path: Path) -> Path:
    """Write steps of elementwise operators in a row at 1.6 TB/s, and a mean."""
    wide = ("float", 4096, 4096)
    inputs = {"aten::mul": [wide, wide], "aten::add": [wide, wide]}
    kernels = [
        kernel(name, name, 42 * (len(tensors_of) + 1), **tensors(*tensors_of))
        for name in ROW
        for tensors_of in [inputs.get(name, [wide])]
    ]
    product = kernel("aten::mm", "gemm", 100, **tensors(wide, wide))
    return steps([*kernels, product] * 3).write(tmp_path / "row.json")


def test_a_row_with_all_that_is_fused_is_what_a_script_compiles(
    said,
    row: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    form = {"slow_ns": 4e5, "changed_ns": 1e5, "factor": [0.25, 0.25, 0.25]}
    prints(monkeypatch, {"operators": list(ROW), "device": A100, **form})
    script = tmp_path / "forms.py"
    found = asked(capsys, row, "--remedy", "fused_pointwise", "--measure", script)
    of_row_us = 42 * (3 + 2 + 3 + 2)
    assert found["measured_low"] == pytest.approx(0.75 * of_row_us / (of_row_us + 100), abs=0.02)
    text = script.read_text()
    compile(text, str(script), "exec")
    said.within(text)
    assert "('aten::mean', " in text


@pytest.mark.needs("torch")
def test_a_row_is_timed_as_recorded_and_compiled(
    row: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ("--remedy", "fused_pointwise", "--measure", tmp_path / "forms.py")
    [form] = asked(capsys, row, *words)["forms"]
    assert form["operators"] == sorted(ROW)
    assert 0 < form["factor"][0] <= form["factor"][1] <= form["factor"][2]


def test_several_remedies_are_computed_in_one_graph(said, tmp_path: Path, capsys):
    builder = TraceBuilder()
    for number in range(4):
        begin = 4_000 * number
        builder.step(number, (begin, begin + 4_000))
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        builder.annotation(name, (begin, begin + 2_000))
        for place in range(60):
            start = begin + 2_000 + 20 * place
            builder.launch("add", call=(start, start + 12), work=(start + 13, start + 15))
        builder.launch(
            "gemm", call=(begin + 3_210, begin + 3_220), work=(begin + 3_225, begin + 3_990)
        )
        builder.call("cudaDeviceSynchronize", (begin + 3_230, begin + 3_995))
    path = builder.write(tmp_path / "both.json")
    ids = ("cuda_graph", "loader_workers")
    one, two = (asked(capsys, path, "--remedy", it)["after"] for it in ids)
    words = [word for it in ids for word in ("--remedy", it)]
    both = asked(capsys, path, *words)["after"]
    assert set(both["remedies"]) == set(ids)
    assert both["gain"]["value"] == pytest.approx(
        one["gain"]["value"] + two["gain"]["value"], abs=0.03
    )
    assert both["gain"]["high"] > max(one["gain"]["high"], two["gain"]["high"])
    assert one["gains"]["host"] > both["gains"]["host"]
    assert both["gains"]["kernels"] > 0.8
    trace = longpole.read_trace(path).without_profiler()
    assert trace.after_remedies(ids).gain.to_dict() == both["gain"]
    assert run(["whatif", str(path), *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Together: 4.00 ms -> " in out
    said.within(out)


def test_several_remedies_cannot_be_measured(said, products, tmp_path, capsys):
    words = ("--remedy", "tensor_cores", "--remedy", "cuda_graph", "--measure", tmp_path / "f.py")
    assert run(["whatif", str(products), *map(str, words)]) == 2
    said.within(capsys.readouterr().err)


def test_what_limits_the_rest_is_unknown_if_the_host_runs_ahead(tmp_path: Path):
    builder = TraceBuilder()
    for number in range(6):
        begin = 1_000 * number
        builder.step(number, (begin, begin + 990))
        for place in range(2):
            start = begin + 400 * place
            work = (4_000 * number + 2_000 * place + 10, 4_000 * number + 2_000 * place + 2_000)
            copy = "Memcpy HtoD (Pinned -> Device)" if place else "gemm"
            by = "cudaMemcpyAsync" if place else "cudaLaunchKernel"
            builder.launch(copy, call=(start + 5, start + 9), work=work, by=by, n_bytes=1 << 26)
    builder.call("cudaDeviceSynchronize", (6_100, 24_100))
    trace = longpole.read_trace(builder.write(tmp_path / "ahead.json"))
    after = trace.after_remedies(["overlap_copies"])
    assert after.remedies == ("overlap_copies",)
    assert (after.gains, after.sentence) == ({}, "")
    assert after.gain.low > 0.2
