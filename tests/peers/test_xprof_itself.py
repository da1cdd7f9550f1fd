"""XProf itself, asked about the recording of a JAX program, has the same figures."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import polars as pl
import pytest

import longpole
from longpole.devices.occupancy import occupancy, processor_of
from longpole.tables.launch_shapes import launch_shapes
from real_traces import SHARED

JAX = SHARED / "gpu/other/jax.xplane.pb"
pytestmark = [
    pytest.mark.needs("xprof"),
    pytest.mark.skipif(not JAX.exists(), reason="needs ../shared/data"),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return a function that asks a tool of XProf, which writes files beside the profile."""
    from xprof.convert import raw_to_tool_data

    copy = shutil.copy(JAX, tmp_path_factory.mktemp("xprof") / JAX.name)

    def ask(tool):
        answer, _ = raw_to_tool_data.xspace_to_tool_data([str(copy)], tool, {})
        return json.loads(answer)

    return ask


def rows_of(table):
    names = [column["id"] for column in table["cols"]]
    return [
        dict(zip(names, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]
    ]


@pytest.fixture(scope="module")
def trace():
    return longpole.read_trace(JAX)


@pytest.fixture(scope="module")
def whole(trace):
    return longpole.choose_window(trace, whole=True)


def test_launches_and_times_of_kernels_are_equal(trace, asked):
    """XProf counts threads instead of warps, and no shared memory that the system reserves."""
    kernels = trace.events.filter(pl.col("kind").cast(pl.String) == "kernel")
    shapes = launch_shapes(trace, kernels["event"])
    launched = kernels.join(shapes, on="event").with_columns(pl.col("name").cast(pl.String))
    keys = ("name", "block_threads", "registers", "shared_bytes", "grid_blocks")
    processor = processor_of(trace.device_properties[0])._replace(reserved_bytes=0)
    ours = Counter()
    for name, *launch, blocks, ns in launched.select(*keys, "duration_ns").iter_rows():
        resident = occupancy(processor, *launch).blocks
        share = 100 * resident * launch[0] / (32 * processor.warps)
        ours[name, *launch, blocks, share] += ns
    theirs = Counter()
    for row in rows_of(asked("kernel_stats")):
        block, grid = (_product(row[name]) for name in ("block_dim", "grid_dim"))
        key = (block, int(row["registers_per_thread"]), int(row["shmem_bytes"]), grid)
        time_ns = round(1000 * row["total_duration_us"])
        theirs[row["kernel_name"], *key, row["occupancy_pct"]] += time_ns
    assert ours == theirs


def _product(text):
    x, y, z = map(int, text.split(","))
    return x * y * z


def test_flops_of_products_are_equal(trace, whole, asked):
    [theirs] = [it for it in rows_of(asked("hlo_stats")) if it["hlo_op_name"] == "custom-call.1"]
    rows = longpole.roofline(trace, whole).rows
    [ours] = rows.filter(pl.col("name") == "jit(matmul)/dot_general").to_dicts()
    assert ours["calls"] == theirs["occurrences"]
    assert ours["kernel_ns"] == pytest.approx(1000 * theirs["total_time"])
    assert ours["flops"] == pytest.approx(1000 * theirs["model_flop_rate"] * theirs["total_time"])


def test_peaks_of_the_memory_are_equal(trace, whole, asked):
    theirs = asked("memory_profile")["memoryProfilePerAllocator"]
    rows = longpole.memory(trace, whole).devices.to_dicts()
    assert rows
    for row in rows:
        told = theirs[row["device"]]["profileSummary"]
        assert row["peak_bytes"] == int(told["peakStats"]["heapAllocatedBytes"])
