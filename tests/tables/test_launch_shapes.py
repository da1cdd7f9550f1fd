"""Launches of kernels: blocks, registers, shared memory, occupancy, tensor cores, a closer look."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.devices.occupancy import Processor, occupancy, processor_of
from longpole.tables.closer_look import function_of
from longpole.tables.launch_shapes import launch_shapes
from longpole.testing import TraceBuilder

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.json.gz"))
OF_H100 = Processor(32, 64, 65536, 233472, 128, 1024)
CUDA = [
    {
        "id": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85_000_000_000,
        "warpSize": 32,
        "computeMajor": 9,
        "computeMinor": 0,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 233472,
        "numSms": 132,
    }
]
LARGEST_KNOWN = 48 << 10
"""Shared memory of a block above which CUPTI's occupancy in Kineto is 0."""


def kernel(name="gemm", *, devices=CUDA, call="cudaLaunchKernel", inputs=None, **arguments):
    """Run a kernel of 20 us with the arguments of its launch."""
    builder = TraceBuilder().header(deviceProperties=devices)
    builder.operator("aten::mm", (0, 9), **(inputs or {}))
    builder.call(call, (1, 5), correlation=1)
    launch = {"device": 0, "stream": 7, "correlation": 1, **arguments}
    where = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 10, "dur": 20}
    return builder.event(**where, name=name, args=launch).read()


LAUNCH = {"grid": [264, 1, 1], "block": [128, 2, 1]}
RESOURCES = {"registers per thread": 64, "shared memory": 0}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_occupancy_equals_what_cupti_computed(path):
    trace = longpole.read_trace(path)
    told = trace.args("kernel", ["est. achieved occupancy %", "warps per SM", "shared memory"])
    if told is None or "est. achieved occupancy %" not in told.columns:
        pytest.skip("the recording has no occupancy")
    known = told.filter(pl.col("shared memory") <= LARGEST_KNOWN)
    found = launch_shapes(trace, known["event"]).join(known, on="event")
    assert found["occupancy"].null_count() == 0
    # What is achieved is at most what the blocks of the grid fill.
    of_grid = pl.col("warps per SM").cast(pl.Float64) / OF_H100.warps
    achieved = 100 * pl.min_horizontal("occupancy", of_grid)
    off = (achieved - pl.col("est. achieved occupancy %").cast(pl.Float64)).abs()
    assert found.filter(off > 0.501).is_empty()  # it is rounded


@given(st.integers(1, 1024), st.integers(1, 255), st.integers(0, 227 << 10), st.integers(0, 64))
def test_more_resources_never_raise_the_occupancy(threads, registers, shared_bytes, more):
    found = occupancy(OF_H100, threads, registers, shared_bytes)
    if found is None:
        return
    warps = -(-threads // 32)
    assert 0 < found.share <= 1
    assert found.blocks * warps <= OF_H100.warps
    assert found.blocks * warps * 32 * registers <= OF_H100.registers
    assert found.blocks * (shared_bytes + 1024) <= OF_H100.shared_bytes
    assert (found.limit is None) == (found.share == 1)
    for larger in ((registers + more, shared_bytes), (registers, shared_bytes + 1024 * more)):
        other = occupancy(OF_H100, threads, *larger)
        assert other is None or other.blocks <= found.blocks


def test_the_table_of_kernels_has_the_launch_of_the_longest_one():
    [row] = longpole.kernels(kernel(**LAUNCH, **RESOURCES)).to_dicts()
    assert (row["grid_blocks"], row["block_threads"]) == (264, 256)
    assert (row["registers"], row["shared_bytes"]) == (64, 0)
    assert (row["blocks_per_processor"], row["occupancy"]) == (2.0, 0.5)
    assert (row["waves"], row["occupancy_limit"]) == (0.5, "registers")
    assert row["n_short"] == 0


AMD = {"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64, "numSms": 304}


def test_of_hip_the_occupancy_is_known_if_registers_are_recorded(said):
    """The profiler of PyTorch records none, and RDNA has rules of its own."""
    amd = [AMD | {"computeMajor": 9, "computeMinor": 4, "regsPerBlock": 131072}]
    trace = kernel(devices=amd, call="hipLaunchKernel", **LAUNCH)
    [row] = longpole.kernels(trace).to_dicts()
    assert row["blocks_per_processor"] == 264 / 304
    assert (row["waves"], row["occupancy"], row["occupancy_limit"]) == (None, None, None)
    look = longpole.roofline(trace).look
    said(look)
    [known] = longpole.kernels(kernel(devices=amd, **LAUNCH, **RESOURCES)).to_dicts()
    assert (known["occupancy"], known["occupancy_limit"], known["waves"]) == (
        1,
        None,
        264 / 304 / 8,
    )
    radeon = [AMD | {"name": "AMD Radeon RX 7900 XTX"}]
    [unknown] = longpole.kernels(kernel(devices=radeon, **LAUNCH, **RESOURCES)).to_dicts()
    assert unknown["occupancy"] is None


@pytest.mark.parametrize(
    ("name", "launch", "expected"),
    [
        ("MI300X", (256, 128, 0), (4, 0.5, "registers")),
        ("MI300X", (256, 129, 0), (3, 0.375, "registers")),  # 136 registers are allocated
        ("MI300X", (64, 24, 0), (32, 1, None)),
        ("MI300X", (128, 24, 0), (16, 1, None)),
        ("MI300X", (64, 24, 4096), (16, 0.5, "shared memory")),
        ("MI355X", (64, 24, 4096), (32, 1, None)),  # 160 KiB of local memory
        ("MI250X", (1024, 64, 0), (2, 1, None)),
        ("MI210", (1024, 512, 0), None),
    ],
)
def test_compute_units_hold_what_llvm_computes(name, launch, expected):
    assert occupancy(processor_of({"name": f"AMD Instinct {name}"}), *launch) == expected


def test_a_processor_of_an_unknown_generation_is_unknown():
    assert processor_of(CUDA[0]) == OF_H100
    assert processor_of(CUDA[0] | {"computeMajor": 99}) is None
    assert processor_of({}) is None


def test_resources_that_a_profiler_does_not_describe_are_those_of_the_generation():
    """XProf writes the name and the compute capability."""
    described = {"computeMajor": 9, "computeMinor": 0, "name": "NVIDIA H100 80GB HBM3"}
    assert processor_of(described) == OF_H100
    assert processor_of(described | {"name": "AMD Instinct MI100"}) is None
    assert processor_of(described | {"warpSize": 64}) is None


@pytest.mark.parametrize("block", ["[", "[0, 1, 1]", [1, "x"], None, 1e300, [1 << 62, 4, 1], [[1]]])
def test_a_damaged_launch_is_unknown(block):
    [row] = longpole.kernels(kernel(grid=[1, 1, 1], block=block, **RESOURCES)).to_dicts()
    assert (row["block_threads"], row["occupancy"]) == (None, None)


# roofline


def mm(m, k, n, dtype):
    return {"Input Dims": [[m, k], [k, n]], "Input type": [dtype, dtype]}


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("ampere_sgemm_128x64_tn", mm(512, 512, 512, "float"), "possible"),
        ("ampere_sgemm_128x64_tn", mm(512, 510, 512, "float"), None),  # not a multiple of 16 bytes
        ("ampere_sgemm_128x64_tn", mm(4, 512, 512, "float"), None),  # too few rows
        ("gemvx_kernel", mm(512, 512, 512, "c10::BFloat16"), "possible"),
        ("sm80_xmma_gemm_tf32f32_tn", mm(512, 512, 512, "float"), "used"),
        ("ampere_bf16_s16816gemm_bf16", mm(512, 512, 512, "c10::BFloat16"), "used"),
        ("my_kernel", mm(512, 512, 512, "c10::BFloat16"), None),  # the name shows neither
    ],
)
def test_tensor_cores_are_judged_by_name_type_and_sizes(name, inputs, expected):
    found = longpole.roofline(kernel(name, inputs=inputs, **LAUNCH))
    assert found.rows["tensor_cores"].to_list() == [expected]
    told = " ".join(getattr(block, "text", "") for block in found.blocks())
    assert ("could use tensor cores" in told) == (expected == "possible")


def test_kernels_below_10_us_are_counted():
    builder = TraceBuilder()
    for number, length in enumerate((3, 9.999, 10, 40)):
        start = 100 * number
        builder.launch("k", call=(start, start + 5), work=(start + 10, start + 10 + length))
    trace = builder.read()
    found = longpole.roofline(trace, longpole.choose_window(trace, whole=True))
    assert (found.short_kernels, found.short_ns) == (2, 12_999)
    assert longpole.kernels(trace, longpole.choose_window(trace, whole=True))["n_short"][0] == 2
    told = [block.text for block in found.blocks() if "10 µs" in getattr(block, "text", "")]
    assert told[0].startswith("2 of 4 kernels take less than 10 µs each, together 20.6 %")


def test_kernels_outside_the_window_are_not_counted():
    builder = TraceBuilder()
    for start in range(0, 600, 100):
        builder.launch("k", call=(start, start + 5), work=(start + 10, start + 14))
    trace = builder.read()
    found = longpole.roofline(trace, longpole.choose_window(trace, between=(112_000, 350_000)))
    assert (found.short_kernels, found.rows["n_kernels"].sum()) == (3, 3)
    assert found.short_ns == found.kernel_ns == 2_000 + 4_000 + 4_000


def test_calls_of_one_shape_have_statistics():
    builder = TraceBuilder()
    for number, length in enumerate((10, 20, 60)):
        start = 100 * number
        builder.operator("aten::mm", (start, start + 8), **mm(64, 64, 64, "float"))
        builder.launch("k", call=(start + 1, start + 5), work=(start + 10, start + 10 + length))
    trace = builder.read()
    [row] = longpole.roofline(trace, longpole.choose_window(trace, whole=True)).rows.to_dicts()
    assert (row["calls"], row["min_ns"], row["median_ns"], row["max_ns"]) == (
        3,
        10_000,
        20_000,
        60_000,
    )


def test_the_line_for_ncu_names_the_function(said):
    name = "void at::native::(anonymous namespace)::f<4, at::X<int> >(int, float*)"
    look = longpole.roofline(kernel(name, **LAUNCH)).look
    said(look)
    assert function_of("???") is None
