"""Few launches whose graph gains much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

from longpole import Question
from longpole.remedies.catalogue import remedies
from longpole.remedies.plan import Search, plan_of
from longpole.words.recording import options_of

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
    assert found.evidence.startswith("12 of 12 launches are equal in every step")
    assert found.gain.low > 0.5


@pytest.mark.parametrize(("number", "host_us", "kernel_us"), [(5, 50, 10), (12, 8, 400)])
def test_fewer_launches_and_those_that_kernels_hide_are_left_alone(number, host_us, kernel_us):
    assert remedy_of("cuda_graph", launching(number, host_us, kernel_us)) is None


def test_what_no_remedy_removes_and_prevents_a_graph_is_named():
    def fill(builder, begin):
        for place in range(40):
            start = begin + place * 50
            builder.operator("custom::exchange", (start, start + 45))
            builder.call("cudaMalloc", (start + 1, start + 2))
            builder.launch(
                f"relu_{place}", call=(start + 3, start + 10), work=(start + 12, start + 20)
            )

    trace = steps(2_060, fill).read()
    facts = trace.answer(Question()).facts(options_of("torch", is_of_server=False))
    only = [remedy for remedy in remedies() if remedy.id == "cuda_graph"]
    found = plan_of(facts, lambda some: Search.of(some, only), {}).obstacle
    assert found is not None
    assert (found.name, found.per_window, found.remedy) == ("custom::exchange", 40, "cuda_graph")
    assert found.more > 0.5
    # With all remedies, the allocations are no obstacle but a line.
    plan = trace.verdict().plan
    assert [line.remedy for line in plan.lines][:2] == ["allocation", "cuda_graph"]
    assert plan.obstacle == ""


def test_a_run_of_launches_ends_at_a_long_pause():
    def fill(builder, begin):
        for place in range(20):
            start = begin + place * 50 + (400 if place >= 10 else 0)
            builder.operator("aten::relu", (start, start + 45))
            work = (start + 12, start + 22)
            builder.launch(f"relu_{place}", call=(start + 2, start + 10), work=work)

    found = remedy_of("cuda_graph", steps(1_460, fill))
    assert found is not None
    assert found.evidence.startswith("20 of 20 launches are equal in every step")
    [host, *_] = found.changes
    assert len(host.time_ranges) % 2 == 0
    assert all(end_ns - start_ns < 500_000 for _, start_ns, end_ns in host.time_ranges)
