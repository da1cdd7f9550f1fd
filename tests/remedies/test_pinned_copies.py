"""Copies of pageable memory: the trace, the gain and the sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder


READ = "Memcpy DtoH (Device -> Pageable)"


def copying(memory: str, n_bytes: int = 10_000_000):
    """Return what fills a step with a copy of 1 ms that is waited for, and a kernel of 0.5 ms."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        name = f"Memcpy HtoD ({memory} -> Device)"
        call, work = (begin, begin + 1_000), (begin + 10, begin + 1_010)
        builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", n_bytes=n_bytes)
        builder.call("cudaStreamSynchronize", (begin + 1_001, begin + 1_015))
        call, work = (begin + 1_020, begin + 1_025), (begin + 1_030, begin + 1_530)
        builder.launch("gemm", call=call, work=work)

    return fill


def test_a_pageable_copy_gains_what_pinned_memory_reaches(said):
    found = remedy_of("pinned_copies", steps(1_550, copying("Pageable")))
    said(found.advice)
    said(found.evidence)
    # 10 MB at 22 GB/s are 0.45 ms; at the most nothing of the copy is left.
    assert 0.33 < found.gain.low < 0.4
    assert 0.6 < found.gain.high < 0.7


def test_pinned_memory_and_small_copies_are_left_alone():
    assert remedy_of("pinned_copies", steps(1_550, copying("Pinned"))) is None
    assert remedy_of("pinned_copies", steps(1_550, copying("Pageable", 400_000))) is None


def test_a_pageable_copy_at_the_speed_of_a_slow_link_is_compared_with_a_fast_one(said):
    found = remedy_of("pinned_copies", steps(1_550, copying("Pageable", 30_000_000)))
    said(found.evidence)
    # The least gain is that of a call that no longer waits: the copy keeps its length.
    assert found.gain.low < 0.05
    assert found.gain.high > 0.6


def test_the_link_of_the_device_tells_what_pinned_copies_reach():
    gains = {}
    for device in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"):
        builder = steps(1_550, copying("Pageable"))
        builder.header(deviceProperties=[{"id": 0, "name": device, "totalGlobalMem": 80e9}])
        gains[device] = remedy_of("pinned_copies", builder)
    h100, a100, v100 = gains.values()
    # 10 MB took 1 ms; at 40 and 20 GB/s they take 0.25 and 0.5 ms
    assert h100.gain.low - a100.gain.low == pytest.approx(0.25 / 1.55, abs=0.02)
    assert v100 is None, "the copies reach what the link has"


@pytest.mark.parametrize("n_bytes", [0, 512])
def test_copies_of_unknown_size_lose_a_part_of_their_time(said, n_bytes):
    # 1 ms, which 512 bytes do not take on any link
    found = remedy_of("pinned_copies", steps(1_550, copying("Pageable", n_bytes)))
    said(found.evidence)
    assert found.gain.low == pytest.approx(0.4 / 1.55, abs=0.04)
    assert 0.6 < found.gain.high < 0.7


def test_a_copy_to_the_gpu_hides_no_longer_than_the_kernels_run():
    def fill(builder: TraceBuilder, begin: int) -> None:
        call, work = (begin, begin + 4_000), (begin + 10, begin + 4_010)
        name = "Memcpy HtoD (Pageable -> Device)"
        builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", n_bytes=56_000_000)
        call, work = (begin + 4_020, begin + 4_025), (begin + 4_030, begin + 4_530)
        builder.launch("gemm", call=call, work=work)

    found = remedy_of("pinned_copies", steps(4_540, fill))
    # At 56 GB/s the copy takes 1 ms, which the kernel of 0.5 ms hides for half of that time.
    assert found.gain.high == pytest.approx(1 - 1.0 / 4.54, abs=0.02)


def downloading(
    builder: TraceBuilder,
    begin: int,
    *,
    n_bytes: int = 10_000_000,
    operator: str = "aten::_to_copy",
    is_copied_back: bool = False,
) -> None:
    """Add a kernel of 0.2 ms and a copy to the host of 2 ms, which is staged for 0.5 ms more."""
    builder.launch("gemm", call=(begin, begin + 5), work=(begin + 10, begin + 210))
    builder.operator(operator, (begin + 11, begin + 2_730))
    name, call, work = READ, (begin + 20, begin + 2_710), (begin + 210, begin + 2_210)
    builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", n_bytes=n_bytes)
    builder.call("cudaStreamSynchronize", (begin + 2_712, begin + 2_717))
    if is_copied_back:
        call, work = (begin + 2_900, begin + 2_910), (begin + 2_905, begin + 2_908)
        name = "Memcpy HtoD (Pinned -> Device)"
        builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", n_bytes=4_096)


def test_a_result_may_be_needed_at_once(said):
    found = remedy_of("pinned_copies", steps(3_000, downloading))
    said(found.advice)
    # 10 MB at 22 GB/s are 0.45 ms, which the host waits for; at most it does not wait.
    assert found.gain.low == pytest.approx(1 - (0.21 + 0.45 + 0.29) / 3, abs=0.02)
    assert found.gain.high == pytest.approx(1 - 0.4 / 3, abs=0.03)


def test_a_result_that_is_copied_back_is_needed_at_once():
    found = remedy_of("pinned_copies", steps(3_000, partial(downloading, is_copied_back=True)))
    assert found.gain.low == pytest.approx(1 - (0.21 + 0.45 + 0.29) / 3, abs=0.02)
    assert found.gain.high == pytest.approx(1 - (0.21 + 0.18 + 0.29) / 3, abs=0.02)


def test_a_pinned_buffer_is_not_freed_as_a_large_new_tensor_is():
    gains = {
        (operator, n_bytes): remedy_of(
            "pinned_copies",
            steps(5_000, partial(downloading, operator=operator, n_bytes=n_bytes)),
        ).gain.low
        for operator in ("aten::_to_copy", "aten::copy_")
        for n_bytes in (30_000_000, 40_000_000)
    }
    # 40 MB are freed in the gap of 2.27 ms before the next step; memory of 30 MB is reused.
    more = gains["aten::_to_copy", 40_000_000] - gains["aten::copy_", 40_000_000]
    assert more == pytest.approx(2.27 / 5 * 2 / 3, abs=0.03)
    assert gains["aten::_to_copy", 30_000_000] == gains["aten::copy_", 30_000_000]
