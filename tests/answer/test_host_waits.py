"""Host time between runtime API calls where no operators are recorded: work, or a wait."""

import pytest

from longpole import read_trace
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.rocpd import write_rocpd
from tiny_traces import call, kernel, launch, read


@pytest.mark.parametrize("seed", [14, 54])
def test_a_thread_that_may_wait_for_another_one_leaves_the_side_open(said, seed, tmp_path):
    run = simulate("random", seed=seed)
    run.write(tmp_path / "kineto.json")
    write_rocpd(run, tmp_path / "results.db")
    assert read_trace(tmp_path / "kineto.json").verdict().sides[0] in {"kernels", "waits"}
    verdict = read_trace(tmp_path / "results.db").verdict()
    assert (verdict.status, verdict.cause) == ("inconclusive", "host_waits")
    said.within(verdict.sentence)
    assert verdict.gains["kernels"].high > verdict.gains["host"].high


def test_a_single_thread_that_launches_late_is_held_up_by_the_host_whatever_it_does():
    builder = TraceBuilder()
    for at in range(0, 900, 30):
        builder.launch("a", call=(at, at + 4), work=(at + 5, at + 8))
    verdict = builder.read().verdict()
    assert verdict.sides == ("host",)
    assert verdict.gains["host"].low == verdict.gains["host"].high
    text = "outside runtime API calls and may be waiting; record operators"
    assert any(text in line for line in verdict.actions)


@pytest.mark.parametrize(
    ("name", "lasts_us", "is_open"),
    [
        ("cudaStreamSynchronize", 9, True),
        ("cudaEventRecord", 9, False),
        ("cudaLaunchKernel", 9, False),
        ("cudaLaunchKernel", 21, True),
    ],
)
def test_a_gap_is_open_only_if_another_thread_may_have_waited_for_a_device(name, lasts_us, is_open):
    events = []
    for number in range(1, 9):
        at = 100 * number
        events += [
            launch(at, at + 4, number),
            kernel("K", at + 9, at + 29, number),
            call(name, at + 30, at + 30 + lasts_us, tid=2),
        ]
    bounds = read(events).verdict().gains["host"]
    assert (bounds.low < bounds.high) == is_open
