"""How far kernels are from the limit of the device, which code owns the time, and memory."""

from __future__ import annotations

import pytest

from kernel_steps import A100, kernel, steps, tensors
from longpole.tables.roofline import roofline
from longpole.tables.summary import summary
from longpole.testing import TraceBuilder

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_nn"


def products(duration_us: float) -> TraceBuilder:
    """Build steps of products of 4096 x 4096 in bfloat16 and of copies without a formula."""
    square = tensors(*[("c10::BFloat16", 4096, 4096)] * 2)
    rows = [kernel("aten::mm", GEMM, duration_us, **square)] * 3
    return steps([*rows, kernel("custom", "custom_kernel", 100)], A100)


@pytest.mark.parametrize("duration_us", [500, 2_000])
def test_kernels_reach_what_the_table_of_the_roofline_has(duration_us):
    trace = products(duration_us).read()
    found = summary(trace)
    rows = roofline(trace).rows.drop_nulls("roof_ns")
    reached = round(100 * rows["roof_ns"].sum() / rows["kernel_ns"].sum())
    [told] = found.details
    assert told.startswith(f"Kernels reach {reached} % of the device's limit (known for ")
    assert told.endswith(f"of the time, {reached} %.")


def test_without_shapes_nothing_is_said_of_the_limit():
    assert summary(steps([kernel("aten::mm", GEMM, 500)] * 3).read()).details == ()


def allocating(peak: int) -> TraceBuilder:
    """Build a trace whose memory grows to a peak."""
    builder = TraceBuilder().header(deviceProperties=[{"id": 0, "totalGlobalMem": 4 << 30}])
    builder.launch("gemm", call=(0, 10), work=(10, 100))
    for time, total in enumerate((1 << 20, peak, 1 << 20)):
        args = {"Total Allocated": total, "Device Type": 1, "Device Id": 0, "Bytes": 8}
        builder.event(
            ph="i", cat="cpu_instant_event", name="[memory]", ts=time, pid=1, tid=1, args=args
        )
    return builder


def test_the_peak_of_memory_is_said_with_the_size_of_the_device():
    assert summary(allocating(1 << 30).read()).details == (
        "Memory of device 0 peaks at 1 GiB of 4 GiB (25.0 %).",
    )
