"""Paths through waits that are not recorded are right, or doubted."""

from __future__ import annotations

import statistics

import pytest

from oracles.unrecorded_waits import KINDS, judged, run_of
from tiny_traces import call, kernel, launch, path_of, read

SEEDS = range(4)


@pytest.mark.parametrize("kind", KINDS)
def test_most_of_a_path_is_right_or_doubted(kind, tmp_path):
    shares = [it for seed in SEEDS for it in judged(run_of(kind, seed), tmp_path)]
    assert statistics.mean(it.right + it.doubted for it in shares) > 0.85
    assert statistics.mean(it.unsure for it in shares) < 0.1


def test_a_wait_that_the_launch_explains_as_well_is_doubted(tmp_path):
    """The start of seed 5 follows a kernel and its launch, by what both usually take."""
    shares = judged(run_of("two threads on two streams", 5), tmp_path)
    assert max(it.false for it in shares) < 0.05
    assert max(it.doubted for it in shares) > 0.1


SERIAL = [
    *(launch(0, 2, 1), launch(3, 5, 2), launch(6, 8, 3), launch(9, 11, 4), launch(390, 397, 5)),
    *(kernel("K1", 10, 100, 1), kernel("K2", 102, 200, 2, stream=20)),
    *(kernel("K3", 202, 300, 3), kernel("K4", 302, 400, 4, stream=20)),
    kernel("K5", 402, 500, 5),
]


def test_streams_that_never_overlap_wait_for_each_other_unasked():
    assert path_of(SERIAL)[-3:] == [
        (302, 400, "kernel", "K4"),
        (400, 402, "event_wait", "K5"),
        (402, 500, "kernel", "K5"),
    ]


SHORTLY_LATE = [
    *(launch(0, 2, 1), kernel("K1", 6, 100, 1), launch(87, 89, 2)),
    *(kernel("K2", 102, 200, 2, stream=20), launch(187, 189, 3), kernel("K3", 202, 300, 3)),
    *(launch(287, 289, 4), kernel("K4", 302, 400, 4, stream=20)),
    *(launch(387, 389, 5), kernel("K5", 402, 500, 5)),
]


def test_what_is_late_is_learned_from_the_trace():
    """A launch takes 4 us here, so that 13 us need a reason."""
    wait, last = path_of(SHORTLY_LATE)[-2:]
    assert (wait, last) == ((400, 402, "event_wait", "K5"), (402, 500, "kernel", "K5"))


def beside(*events):
    """Add a kernel that shows that streams do not wait for each other unasked."""
    return [*SHORTLY_LATE, launch(30, 32, 6), kernel("side", 36, 60, 6, stream=20), *events]


def test_a_start_is_doubted_if_another_thread_made_a_stream_wait():
    asked = beside(call("cudaStreamWaitEvent", 380, 381, tid=2))
    segments = read(asked).critical_path(whole=True).segments
    *_, late, last = segments.select("kind", "certainty", "rival").iter_rows()
    assert (late[:2], last[1]) == (("launch", "doubtful"), "certain")
    assert late[2] is not None
    unasked = read(beside()).critical_path(whole=True).segments
    assert unasked.select("kind", "certainty").row(-2) == ("launch", "certain")


def test_a_stream_that_runs_beside_another_one_does_not_wait_for_it():
    with_side = [*SERIAL, launch(12, 14, 6), kernel("side", 30, 60, 6, stream=20)]
    assert path_of(with_side)[-2:] == [(397, 402, "launch", "K5"), (402, 500, "kernel", "K5")]
