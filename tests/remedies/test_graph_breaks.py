"""Compiled functions that break: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

REGION_US = 100


def breaking(n_breaks: int, *, is_reading: bool = False):
    """Return what fills a step with a region that breaks, 100 us of host time for each part."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        end = begin + REGION_US * (n_breaks + 1)
        for number in range(n_breaks + 1):
            start = begin + REGION_US * number
            builder.operator("TorchDynamo Cache Lookup", (start, start + 30))
            builder.operator(f"Torch-Compiled Region: {number}/0", (start + 32, end))
            builder.operator("Pregraph bytecode", (start + 34, start + 44))
            builder.operator("aten::addmm", (start + 60, start + 80))
            call, work = (start + 65, start + 75), (start + 78, start + 88)
            builder.launch("gemm", call=call, work=work)
            if is_reading and number < n_breaks:
                builder.operator("aten::item", (start + 81, start + 98))
        builder.call("cudaDeviceSynchronize", (end + 1, end + 5))

    return fill


def test_breaks_gain_the_guards_and_at_the_most_all_host_time_outside_operators(said):
    found = remedy_of("graph_breaks", steps(610, breaking(5)))
    # Guards and arguments of five inner regions take 40 us each, and half of the other time that
    # is in no operator stays; without it, 20 of 100 us are left.
    assert abs(found.gain.low - (5 * 40 + (448 - 5 * 40) / 2) / 610) < 0.02, found
    assert 0.6 < found.gain.high < 0.8, found
    said(found.evidence)


def test_breaks_at_values_that_python_reads_gain_these_too(said):
    without = remedy_of("graph_breaks", steps(610, breaking(5)))
    found = remedy_of("graph_breaks", steps(610, breaking(5, is_reading=True)))
    # half of 17 us stayed each time
    assert abs(found.gain.low - without.gain.low - 5 * 8.5 / 610) < 0.02, found
    said.within(found.evidence)


def test_a_function_that_is_one_graph_is_left_alone():
    assert remedy_of("graph_breaks", steps(110, breaking(0))) is None


def test_one_break_is_left_alone():
    assert remedy_of("graph_breaks", steps(210, breaking(1))) is None
