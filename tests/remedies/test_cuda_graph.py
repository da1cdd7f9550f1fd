"""Few launches whose graph gains much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder


def launching(number: int, host_us: int, kernel_us: int) -> TraceBuilder:
    """Build steps of some launches, each of which takes the host a time, and its kernel another."""
    every = max(host_us, kernel_us)

    def fill(builder, begin):
        for place in range(number):
            start = begin + place * every
            builder.operator("aten::relu", (start, start + host_us - 5))
            work = (start + 12, start + 12 + kernel_us)
            builder.launch(f"relu_{place}", call=(start + 2, start + 10), work=work)

    return steps(number * every + 60, fill)


def test_few_launches_that_take_the_host_long_are_a_graph():
    found = remedy_of("cuda_graph", launching(12, host_us=50, kernel_us=10))
    assert found is not None
    assert found.evidence.startswith("12 of 12 launches are the same in every step")
    assert found.gain.low > 0.5


@pytest.mark.parametrize(("number", "host_us", "kernel_us"), [(5, 50, 10), (12, 8, 400)])
def test_fewer_launches_and_those_that_kernels_hide_are_left_alone(number, host_us, kernel_us):
    assert remedy_of("cuda_graph", launching(number, host_us, kernel_us)) is None
