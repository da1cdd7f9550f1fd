"""Performance counters of operators are shown next to the work computed from their inputs."""

from __future__ import annotations

import json

import pytest

import longpole
from ascend_profiles import BASE_US, AscendBuilder
from longpole.cli import program
from longpole.testing import TraceBuilder
from real_traces import SHARED

ADD = {"Input Dims": [[8], [8], []], "Input type": ["float", "float", "Scalar"]}
MM = {"Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}


def counted(builder, name, ts=0, **counters):
    return builder.event(
        ph="X", cat="cuda_profiler_range", name=name, pid=0, tid=0, ts=ts, dur=9, args=counters
    )


def test_counters_of_ai_cores_come_from_the_file_next_to_the_timeline(tmp_path):
    builder = AscendBuilder().operator("aten::mm", (0, 9)).launch("MatMul1", (1, 2), (10, 20), 7)
    path = builder.launch("Cast1", (3, 4), (30, 35), 8).write(tmp_path / "trace_view.json")
    columns = "Name,Type,Start Time(us),Duration(us),aiv_time(us),aic_mac_ratio,cube_fops"
    rows = [f"MatMul1,MatMul,{BASE_US + 10}.000,10,0,0.5,4096", f"Other,Cast,{BASE_US}.000,5,1,0,0"]
    (tmp_path / "kernel_details.csv").write_text("\n".join([columns, *rows]))
    trace = longpole.read_trace(path)
    found = longpole.counters(trace)
    assert found.columns[4] == "aic_mac_ratio"
    assert found.select("kernel_name", "aic_mac_ratio", "flops", "bottom_level_op").rows() == [
        ("MatMul1", 0.5, 4096, "aten::mm")
    ]
    [row] = longpole.roofline(trace, by="counter").to_dicts()
    assert (row["name"], row["cuda_core_flops"]) == ("aten::mm", 4096)
    (tmp_path / "kernel_details.csv").unlink()
    assert longpole.counters(longpole.read_trace(path)).is_empty()


def two_operators(**of_second):
    builder = TraceBuilder().operator("aten::mm", (0, 20), **MM).call("cudaLaunchKernel", (5, 9))
    builder.operator("aten::add", (30, 50), **ADD).call("cudaLaunchKernel", (35, 39))
    first = dict.fromkeys(of_second, 1)
    return counted(counted(builder, "gemm", **first), "add", ts=9, **of_second)


def test_sums_of_counters_stand_beside_the_formulas():
    counters = {
        "kineto__cuda_core_flops": 16,
        "kineto__tensor_core_insts": 0,
        "dram__bytes_read.sum": 64,
        "dram__bytes_write.sum": 128,
    }
    trace = two_operators(**counters).read()
    row = longpole.roofline(trace, by="counter").row(1, named=True)
    assert (row["name"], row["shapes"][:2], row["calls"], row["n_kernels"]) == (
        "aten::add",
        [[8], [8]],
        1,
        1,
    )
    assert (row["flops"], row["cuda_core_flops"], row["of_flops"]) == (8, 16, 2.0)
    assert (row["n_bytes"], row["dram_bytes"], row["of_bytes"]) == (96, 192, 2.0)


def test_what_tensor_cores_compute_is_not_taken_for_missing():
    trace = two_operators(kineto__cuda_core_flops=2, kineto__tensor_core_insts=0).read()
    [gemm] = longpole.roofline(trace, by="counter").filter(name="aten::mm").to_dicts()
    assert (gemm["tensor_core_insts"], gemm["of_flops"], gemm["dram_bytes"]) == (1, None, None)
    without = longpole.roofline(two_operators(kineto__cuda_core_flops=2).read(), by="counter")
    assert without["of_flops"].to_list() == [None, None]


def test_one_of_two_counters_of_memory_gives_no_bytes():
    found = longpole.roofline(two_operators(**{"dram__bytes_read.sum": 64}).read(), by="counter")
    assert found["dram_bytes"].to_list() == [None, None]


def test_kernels_of_no_known_operator_have_a_row_by_name():
    builder = TraceBuilder().call("cudaLaunchKernel", (5, 9)).call("cudaLaunchKernel", (15, 19))
    builder = counted(counted(builder, "b", kineto__cuda_core_flops=1), "a")
    found = longpole.roofline(builder.read(), by="counter")
    assert found.select("name", "kernel", "n_kernels", "cuda_core_flops").rows() == [
        (None, "a", 1, None),
        (None, "b", 1, 1),
    ]


def test_kernels_of_operators_without_a_formula_have_their_operator():
    builder = TraceBuilder()
    for start in (0, 50):
        builder.operator("aten::conv2d", (start, start + 40))
        builder.operator("aten::cudnn_convolution", (start + 2, start + 30))
        builder.call("cudaLaunchKernel", (start + 5, start + 9))
    builder.call("cudaLaunchKernel", (200, 204))
    for ts, name in ((0, "gemm"), (10, "gemm"), (20, "lost")):
        counted(builder, name, ts, kineto__cuda_core_flops=3)
    trace = builder.read()
    found = longpole.roofline(trace, by="counter")
    assert found.select("name", "kernel", "calls", "n_kernels", "cuda_core_flops").rows() == [
        ("aten::cudnn_convolution", "gemm", 2, 2, 6),
        (None, "lost", None, 1, 3),
    ]
    tables = [block for block in longpole.roofline(trace).blocks() if hasattr(block, "rows")]
    assert [row[0] for row in tables[-1].rows] == [
        "aten::cudnn_convolution: gemm",
        "(unknown operator): lost",
    ]


def test_without_counters_there_is_no_row():
    trace = TraceBuilder().operator("aten::mm", (0, 20), **MM).read()
    assert longpole.roofline(trace, by="counter").height == 0


def test_the_roofline_shows_what_was_counted(tmp_path, capsys):
    builder = two_operators(kineto__cuda_core_flops=16, kineto__tensor_core_insts=0)
    path = str(builder.write(tmp_path / "trace.json"))
    assert program.run(["table", path, "roofline", "--window=all"]) == 0
    assert "on CUDA cores" in capsys.readouterr().out
    assert program.run(["table", path, "roofline", "--window=all", "--json"]) == 0
    [_, add] = json.loads(capsys.readouterr().out)["data"]["measured"]
    assert (add["flops"], add["cuda_core_flops"]) == (8, 16)


def test_every_counted_kernel_of_a_real_trace_is_in_a_row():
    path = SHARED / "traces/cupti_counters.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    trace = longpole.read_trace(path)
    found = longpole.roofline(trace, by="counter")
    assert found["n_kernels"].sum() == 77
    flops = trace.counters_by_operator()["flops"].sum()
    assert found["cuda_core_flops"].sum() == flops
