"""Copies of pageable memory: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder


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


def test_a_pageable_copy_gains_what_pinned_memory_reaches():
    found = remedy_of("pinned_copies", steps(1_550, copying("Pageable")))
    assert (
        found.advice
        == "Copy to the GPU with pinned memory and `non_blocking=True`, best while other work runs"
    )
    assert found.evidence == "1 copy of 10.0 MB a step reaches 10.0 GB/s"
    # 10 MB at 22 GB/s are 0.45 ms; at the most nothing of the copy is left.
    assert 0.33 < found.gain_low < 0.4
    assert 0.6 < found.gain_high < 0.7


def test_pinned_memory_and_small_copies_are_left_alone():
    assert remedy_of("pinned_copies", steps(1_550, copying("Pinned"))) is None
    assert remedy_of("pinned_copies", steps(1_550, copying("Pageable", 400_000))) is None


def test_a_pageable_copy_at_the_speed_of_a_slow_link_is_compared_with_a_fast_one():
    found = remedy_of("pinned_copies", steps(1_550, copying("Pageable", 30_000_000)))
    assert found.evidence == "1 copy of 30.0 MB a step reaches 30.0 GB/s"
    # The least gain is that of a call that no longer waits: the copy keeps its length.
    assert found.gain_low < 0.05
    assert found.gain_high > 0.6


def test_the_link_of_the_device_tells_what_pinned_copies_reach():
    gains = {}
    for device in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"):
        builder = steps(1_550, copying("Pageable"))
        builder.header(deviceProperties=[{"id": 0, "name": device, "totalGlobalMem": 80e9}])
        gains[device] = remedy_of("pinned_copies", builder)
    h100, a100, v100 = gains.values()
    # 10 MB took 1 ms; at 40 and 20 GB/s they take 0.25 and 0.5 ms
    assert h100.gain_low - a100.gain_low == pytest.approx(0.25 / 1.55, abs=0.02)
    assert v100 is None, "the copies reach what the link has"


@pytest.mark.parametrize("n_bytes", [0, 512])
def test_copies_of_unknown_size_lose_a_part_of_their_time(n_bytes):
    # 1 ms, which 512 bytes do not take on any link
    found = remedy_of("pinned_copies", steps(1_550, copying("Pageable", n_bytes)))
    assert found.evidence == "1 copy a step of a size that was not recorded takes 1.00 ms"
    assert found.gain_low == pytest.approx(0.4 / 1.55, abs=0.04)
    assert 0.6 < found.gain_high < 0.7
