"""The cause of a late rank is what it did before its late calls, also after a start skew."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole import read_traces
from longpole.cli import program
from longpole.testing import TraceBuilder
from longpole.words.data import plain

CALL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
JOINED = 1_001_000
"""End of the first call, for which the first rank comes a second late (µs)."""
MOVING = 1_000


def write(
    folder, number, *, began, kernels, delay=1, host, arrivals, n_steps=3, waits=False, length=100
):
    """Write a rank whose steps take `host`, each with `kernels` of `length` and an all-reduce.

    `host` is the start of the first step, the length of each, and when in it the launches begin.
    `waits`: whether the host waits for the end of the first call.
    """
    first, step_length, before = host
    builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
    builder.operator("aten::ones", (began, began + 20))
    builder.launch(CALL, call=(began + 20, began + 23), work=(began + 30, JOINED))
    if waits:
        builder.step(0, (began, JOINED + 2))
        builder.call("cudaDeviceSynchronize", (began + 40, JOINED + 1))
    ready = JOINED
    for step in range(n_steps):
        at = first + step * step_length
        builder.step(step + 1, (at, at + step_length - 1))
        call = at + before
        for _ in range(kernels):
            start = max(ready + delay, call + 5)
            builder.launch("gemm", call=(call, call + 2), work=(start, start + length))
            call, ready = call + 3, start + length
        arrived = ready + 1
        ready = max(arrived, arrivals[step]) + MOVING
        builder.launch(CALL, call=(call, call + 2), work=(arrived, ready))
    builder.write(folder / f"rank{number}.json")


def arrivals(cycle, n_steps):
    """Return the arrivals of a rank that takes `cycle` from the end of a call to the next."""
    return [JOINED + cycle + step * (cycle + MOVING) for step in range(n_steps)]


def bound_by_kernels(folder, *, kernels=40, delay=1, n_steps=3, length=100):
    """Write ranks of which rank 1 runs far ahead on the host, and is late on the GPU."""
    cycle = kernels * (length + delay) + 1
    run = {"arrivals": arrivals(cycle, n_steps), "n_steps": n_steps}
    host = (1_000, 20_000, 10)
    late = {"kernels": kernels, "delay": delay, "length": length}
    write(folder, 1, began=0, host=host, **late, **run)
    host = (JOINED - 950, 250, 10)
    write(folder, 0, began=JOINED - 1_030, kernels=20, host=host, **run)


@pytest.fixture
def told(tmp_path, capsys):
    """Return what the command answers about ranks that the test writes."""

    def ask(*options):
        assert program.run(["ranks", str(tmp_path), *options]) == 0
        return " ".join(capsys.readouterr().out.split())

    return ask


def test_a_rank_whose_host_is_ahead_is_late_for_its_kernels(tmp_path, told, said):
    bound_by_kernels(tmp_path)
    joined = read_traces(tmp_path)
    assert joined.has_start_skew
    [late] = joined.late_ranks()
    waited_ns = 3 * 20 * 101 * 1_000
    assert (late.rank, late.cause, late.compared_with) == (1, "more work", "rank 0")
    assert (late.own_ns, late.median_ns) == (12_000_000, 6_000_000)
    assert late.gain_ns == waited_ns
    said.within(late.sentence)
    assert [row["gain_ns"] for row in longpole.ranks(joined).records()] == [waited_ns, 0]
    printed = told()
    assert late.sentence in printed
    said.within(printed)
    gained = "and as recorded a fix gains about that at most"
    assert f"Rank 0 waits 6.06 ms for rank 1 in 3 calls, {gained}" in printed
    assert "record Python stacks" not in printed
    assert json.loads(told("--json"))["data"]["late_ranks"] == [plain(late)]
    assert late.sentence in told("--format", "html")
    assert late.sentence in told("--step", "1")
    assert late.sentence in joined._repr_html_()


def test_as_many_kernels_that_take_longer_are_no_more_work(tmp_path, told, said):
    bound_by_kernels(tmp_path, kernels=20, length=300)
    [late] = read_traces(tmp_path).late_ranks()
    assert (late.rank, late.cause) == (1, "longer kernels")
    said.within(told())


def test_a_rank_that_is_late_for_no_known_reason_has_no_cause(tmp_path, told, said):
    bound_by_kernels(tmp_path, kernels=20, delay=101)
    [late] = read_traces(tmp_path).late_ranks()
    assert (late.rank, late.cause, late.time_class) == (1, "unknown cause", None)
    assert (late.own_ns, late.gain_ns) == (None, 3 * 20 * 100 * 1_000)
    printed = told()
    assert late.sentence in printed
    said.within(printed)
    assert "outside operators)" not in printed
    assert json.loads(told("--json"))["data"]["late_ranks"] == [plain(late)]
    said.within(told("--format", "html"))


def test_a_host_that_delays_the_late_calls_stays_the_cause(tmp_path, told):
    late = [JOINED + 20_000 * step + 15_000 + 1_009 for step in range(3)]
    host = (JOINED + 3, 20_000, 15_000)
    write(tmp_path, 1, began=0, kernels=10, host=host, arrivals=late, waits=True)
    host = (JOINED + 3, 250, 10)
    write(tmp_path, 0, began=JOINED - 1_030, kernels=10, host=host, arrivals=late, waits=True)
    joined = read_traces(tmp_path)
    assert joined.has_start_skew
    [late] = joined.late_ranks()
    assert (late.rank, late.cause, late.time_class) == (1, "host time outside operators", "host")
    assert late.sentence in told()


def test_start_skew_hides_a_slow_host_that_no_recorded_call_waits_for(tmp_path, told, said):
    run = {"kernels": 10, "arrivals": arrivals(10 * 101 + 1, 3)}
    write(tmp_path, 1, began=0, host=(1_000, 20_000, 10), **run)
    write(tmp_path, 0, began=JOINED - 1_030, host=(JOINED - 950, 250, 10), **run)
    joined = read_traces(tmp_path)
    assert joined.has_start_skew
    [late] = joined.late_ranks()
    assert (late.rank, late.time_class) == (1, "host")
    hidden = "Start skew hides this in the recorded calls, in which the others do not wait for it."
    assert late.evidence.startswith(f"{hidden} It spends 61.0 ms on its main thread")
    printed = told()
    assert late.sentence in printed
    said.within(printed)


def test_without_start_skew_the_cause_is_that_of_the_largest_gain(tmp_path, told):
    arrived = [JOINED + 50_000 * step + 40_000 + 1_009 for step in range(3)]
    for number, length, before in ((0, 250, 10), (1, 50_000, 40_000)):
        host = (JOINED + 3, length, before)
        write(tmp_path, number, began=0, kernels=10, host=host, arrivals=arrived, waits=True)
    joined = read_traces(tmp_path)
    assert not joined.has_start_skew
    [late] = joined.late_ranks()
    assert (late.rank, late.cause, late.time_class) == (1, "host time outside operators", "host")
    assert late.changed_ns < late.duration_ns == joined.duration_ns
    assert late.sentence in told()
    assert json.loads(told("--json"))["data"]["late_ranks"] == [plain(late)]


def test_the_skew_of_the_first_call_is_no_waiting_for_a_late_rank(tmp_path, told, said):
    bound_by_kernels(tmp_path)
    found = longpole.ranks(read_traces(tmp_path))
    waited, moved = 3 * 20 * 101, 3 * 2 * MOVING
    assert found.wait_share == pytest.approx(waited / (waited + moved), rel=1e-3)
    said.within(told())


def test_only_calls_of_one_step_leave_start_skew_and_a_late_rank_apart(tmp_path, told, said):
    bound_by_kernels(tmp_path)
    assert "fewer than two recorded steps" not in told("--step", "1")
    bound_by_kernels(tmp_path, n_steps=1)
    said.within(told())
