"""Paths of programs that are hard to understand, against the planted ones.

`benches/bench_truth.py` prints the whole table, over as many seeds as one has time for.
"""

import pytest

from oracles.judge import judge
from oracles.simulator.scenarios import SCENARIOS

SEEDS = range(100, 103)

# What holds of each scenario, in percent: the least mean share of time that is right, with records
# of synchronisation and without, and the most that is falsely certain.
LEAST_RIGHT = {
    "base: random": (100, 99, 1),
    "base: training": (100, 100, 0),
    "base: inference": (100, 100, 0),
    "base: graph on one stream": (100, 100, 0),
    "allocator scans": (100, 100, 0),
    "malloc that waits": (99, 99, 1),
    "clock ahead by 5 us": (98, 98, 2),
    "clock ahead by 50 us": (98, 98, 2),
    "clock behind by 5 us": (95, 95, 5),
    "clock behind by 2000 us": (95, 95, 5),
    "clocks of two devices 5 and -5 us off": (94, 94, 6),
    "clocks of two devices 0 and -5 us off": (99, 99, 1),
    "2 devices": (99, 98, 2),
    "4 devices": (99, 95, 5),
    "8 devices": (99, 95, 5),
    "malloc that does not": (90, 90, 10),
    "backlog": (97, 97, 3),
    "legacy default stream": (95, 95, 5),
    "two launching threads": (99, 90, 10),
    "two threads, a stream each": (99, 99, 1),
    "two threads, two streams each": (99, 99, 1),
    "two threads, the same streams": (99, 97, 2),
    "launches lost": (90, 90, 10),
    "kernels lost": (75, 75, 10),
    "device buffer lost": (65, 65, 25),
}


@pytest.mark.parametrize("name", LEAST_RIGHT)
def test_the_path_is_as_right_as_it_was(name, tmp_path):
    *least_right, most_false = LEAST_RIGHT[name]
    for sync_records, least in zip((True, False), least_right, strict=True):
        judgement = judge(name, SEEDS, tmp_path, sync_records=sync_records)
        assert 100 * judgement.mean >= least
        assert 100 * judgement.false <= most_false


def test_every_floor_is_that_of_a_scenario():
    assert LEAST_RIGHT.keys() <= SCENARIOS.keys()
