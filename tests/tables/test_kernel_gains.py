"""Which kernels pay to tune, by what the window gains."""

from pathlib import Path

import pytest

import longpole
from longpole.engine.critical_path import Drop, RemoveWait, Scale
from longpole.engine.critical_path.changes import name_pattern
from longpole.tables.kernel_gains import kernel_gains
from longpole.tables.roofline import roofline
from longpole.testing import TraceBuilder

RECORDINGS = Path(__file__).parents[1] / "recordings"
H100 = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84_942_979_072}]


def test_a_kernel_beside_something_longer_gains_nothing():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 100))
        .launch("beside", call=(1, 2), work=(3, 90), stream=20)
        .launch("add", call=(2, 3), work=(100, 110))
    )
    rows = kernel_gains(builder.read()).select("name", "path_ns", "gain_ns", "bound_ns").rows()
    assert rows == [("gemm", 99_000, 20_000, 20_000), ("add", 10_000, 5_000, 10_000)]


def test_the_gain_is_that_of_what_if_also_for_names_with_signs():
    name = "void gemm<float, 4>(float*) [clone .1] a+b"
    builder = TraceBuilder().launch(name, call=(0, 1), work=(1, 100))
    trace = builder.launch("gemm", call=(1, 2), work=(100, 140)).read()
    path = trace.critical_path(whole=True)
    gain = path.what_if(Scale(by=0.5, kind="kernel", matching="^void")).gain_ns
    row = kernel_gains(trace).row(0, named=True)
    assert (row["name"], row["gain_ns"]) == (name, gain)


@pytest.mark.parametrize("name", ["decode.before.json.gz", "kernels.before.json.gz"])
def test_many_gains_are_those_of_what_if_for_each(name):
    path = longpole.read_trace(RECORDINGS / name).without_profiler().critical_path()
    names = {row["name"] for row in path.name_totals if row["kind"] == "kernel"}
    only = [f"^(?:{name_pattern(str(name))})$" for name in sorted(names)]
    sets = [[Scale(by=0.5, kind="kernel", matching=it)] for it in only]
    sets += [[Drop(kind="kernel", matching=it), Scale(by=1.5, kind="operator")] for it in only]
    sets += [[], [Drop(kind="operator")], [RemoveWait()]]
    assert path.gains_ns(sets) == [path.what_if(changes).gain_ns for changes in sets]


def test_a_name_is_looked_up_however_long_it_is():
    name = f"void gemm<{'Pair<int, float>, ' * 60_000}>(int)"  # too large to compile as a pattern
    builder = TraceBuilder().launch(name, call=(0, 1), work=(1, 101))
    trace = builder.launch("gemm", call=(1, 2), work=(101, 141)).read()
    assert kernel_gains(trace)["gain_ns"].to_list() == [50_000, 20_000]


def test_the_operator_and_its_shapes_stand_beside_a_kernel():
    builder = TraceBuilder().operator(
        "aten::mm", (0, 20), **{"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    )
    trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    row = kernel_gains(trace).row(0, named=True)
    assert row["operator_name"] == "aten::mm"
    assert row["shapes"] == "2x3,3x4 float,float"
    assert trace.events["name"][row["operator"]] == "aten::mm"


def test_a_kernel_near_the_limits_of_its_device_is_told_from_one_far_away():
    inputs = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]}
    builder = TraceBuilder().header(deviceProperties=H100)
    fast, slow = 2_050, 8_200  # 2 * 4096^3 FLOPs at the 67 TFLOP/s of its CUDA cores take 2.05 ms
    builder.operator("aten::mm", (0, 20), **inputs)
    builder.launch("sgemm", call=(5, 10), work=(12, 12 + fast))
    builder.operator("aten::mm", (20, 40), **inputs)
    builder.launch("slow_sgemm", call=(25, 30), work=(12 + fast, 12 + fast + slow))
    trace = builder.launch("unknown", call=(50, 60), work=(20_000, 30_000)).read()
    found = dict(kernel_gains(trace).select("name", "of_roof").rows())
    assert found["sgemm"] == pytest.approx(1, abs=0.01)
    assert found["slow_sgemm"] == pytest.approx(0.25, abs=0.01)
    assert found["unknown"] is None
    rows = roofline(trace, where="name = 'slow_sgemm'").rows
    assert rows["of_roof"].to_list() == pytest.approx([found["slow_sgemm"]])


@pytest.mark.parametrize(
    ("took_us", "saved_ns"),
    [(2_000, 0), (2_500, 448_673), (8_200, 4_100_000)],  # at the roofline 2,051 us
)
def test_no_kernel_gains_more_than_the_limits_of_its_device_allow(took_us, saved_ns):
    inputs = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]}
    builder = TraceBuilder().header(deviceProperties=H100)
    builder.operator("aten::mm", (0, 20), **inputs)
    builder.launch("sgemm", call=(5, 10), work=(12, 12 + took_us))
    row = kernel_gains(builder.read()).row(0, named=True)
    assert row["gain_ns"] == pytest.approx(saved_ns, abs=2)
    assert row["bound_ns"] > 0.99 * 1_000 * took_us


def test_where_no_kernel_runs_operators_are_ranked():
    builder = TraceBuilder().operator("aten::linear", (0, 30)).operator("aten::mm", (5, 25))
    trace = builder.operator("aten::add", (30, 36)).read()
    rows = kernel_gains(trace).select("kind", "name", "duration_ns", "gain_ns", "operator").rows()
    assert rows == [
        ("operator", "aten::mm", 20_000, 10_000, 1),
        ("operator", "aten::linear", 10_000, 5_000, 0),
        ("operator", "aten::add", 6_000, 3_000, 2),
    ]
