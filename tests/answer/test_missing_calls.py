"""Calls that are missing with all they launched: their numbers are missing, too."""

from longpole.answer import Verdict
from longpole.testing import TraceBuilder

PERIOD_US = 30
SILENT_US = 600


def _launch(builder: TraceBuilder, at_us: int, number: int) -> None:
    call, work = (at_us, at_us + 4), (at_us + 5, at_us + 10)
    builder.call("cudaLaunchKernel", call, correlation=number)
    builder.kernel("gemm", work, correlation=number)


def _silent(n_missing: int) -> Verdict:
    """Judge 40 launches with a pause in the middle, from which `n_missing` calls are removed."""
    builder = TraceBuilder()
    for launch in range(40):
        is_behind = launch >= 20
        at_us = PERIOD_US * launch + is_behind * SILENT_US
        _launch(builder, at_us, 1 + launch + is_behind * n_missing)
    return builder.read().verdict()


def test_a_pause_in_which_no_number_is_missing_is_time_of_the_host():
    verdict = _silent(0)
    assert verdict.gains["host"].low == verdict.gains["host"].high
    assert verdict.gains["kernels"].low == verdict.gains["kernels"].high


def test_a_pause_in_which_numbers_are_missing_may_have_been_a_wait():
    complete, lossy = _silent(0), _silent(3)
    share = (SILENT_US - 4 * PERIOD_US) / (SILENT_US + 40 * PERIOD_US)
    assert lossy.gains["host"].low < complete.gains["host"].low - share
    assert lossy.gains["host"].high == complete.gains["host"].high
    assert lossy.gains["kernels"].high > complete.gains["kernels"].high + share
    assert lossy.gains["host"].low_by == "missing_activities"


def test_numbers_tell_nothing_where_most_calls_leave_some_out():
    builder = TraceBuilder()
    for launch in range(40):
        _launch(builder, PERIOD_US * launch + (launch >= 20) * SILENT_US, 1 + 3 * launch)
    host = builder.read().verdict().gains["host"]
    assert host.low == host.high


def test_a_lost_launch_in_the_range_of_a_collective_may_communicate():
    def greatest_gain(name: str) -> float:
        builder = TraceBuilder()
        for launch in range(40):
            _launch(builder, PERIOD_US * launch, 1 + launch)
        builder.operator(name, (1200, 1210))
        builder.call("cudaLaunchKernel", (1202, 1206), correlation=41)
        builder.call("cudaDeviceSynchronize", (1212, 1900), correlation=42)
        return builder.read().verdict(whole=True).gains["communication"].high

    assert greatest_gain("aten::mm") == 0
    assert greatest_gain("nccl:all_reduce") > 0.3


def _kernels_alone(gap_us: float) -> Verdict:
    """Judge 100 kernels of 100 us with such gaps, of which no launch is recorded."""
    builder = TraceBuilder()
    for number in range(100):
        start_us = number * (100 + gap_us)
        builder.kernel("gemm", (start_us, start_us + 100), correlation=1 + number)
    return builder.read().verdict()


def test_without_any_launch_the_host_may_have_taken_all_the_time(said):
    verdict = _kernels_alone(gap_us=25)
    assert (verdict.status, verdict.sides, verdict.cause) == ("inconclusive", (), "unlinked")
    assert verdict.gains["kernels"].low <= 0.011, "the last kernel alone is behind all launches"
    assert verdict.gains["kernels"].high > 0.75
    said.within(verdict.sentence)


def test_without_any_launch_a_device_that_is_always_busy_is_what_limits():
    verdict = _kernels_alone(gap_us=1)
    assert (verdict.status, verdict.sides) == ("ok", ("kernels",))
    assert verdict.gains["kernels"].low <= 0.011
    assert "little is certain, and more is open" in verdict.sentence
