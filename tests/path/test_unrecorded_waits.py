"""Paths through waits that are not recorded are right, or doubted."""

from __future__ import annotations

import statistics

import pytest
from path_rules import path_of

from oracles.unrecorded_waits import KINDS, judged, run_of
from tiny_traces import kernel, launch

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


def test_a_stream_that_runs_beside_another_one_does_not_wait_for_it():
    beside = [*SERIAL, launch(12, 14, 6), kernel("side", 30, 60, 6, stream=20)]
    assert path_of(beside)[-2:] == [(397, 402, "launch", "K5"), (402, 500, "kernel", "K5")]
