"""Several changes together gain what the program gains when it runs again with all of them.

A step lasts from one completion to the next. Changes that shorten what delayed the step before more
than what delays this one make it longer than fewer changes do, in the program as in its answer: so
no answer is bounded by that of fewer changes.
"""

from __future__ import annotations

from itertools import combinations

import pytest

import longpole
from longpole import Question
from longpole.engine.arguments import ARGUMENTS
from longpole.engine.critical_path.changes import RemoveWait, Scale
from oracles.rerun import varied_program
from oracles.simulator.changes import NoWait
from oracles.simulator.changes import Scale as Run

CHANGES = {
    "communication": (Run("communication", by=0.5), Scale(by=0.5, kind="communication")),
    "copies": (Run("copy", by=0.5), Scale(by=0.5, kind="copy")),
    "stream waits": (NoWait("event_wait"), RemoveWait(kind="event_wait")),
    "blocking calls": (NoWait("sync_return"), RemoveWait(kind="sync_return")),
}
PAIRS = list(combinations(CHANGES, 2))
ERROR = 0.02
"""Of a gain: the answer knows recording only by estimate."""


def gains(seed, path):
    """Return the true gain and the answer of each change, and of each two together."""
    run = varied_program(seed)
    run.write(path)
    answer = longpole.read_trace(path, args=ARGUMENTS).answer(Question())

    def length_ns(windows):
        return sum(windows[f"step {step} period"] for step in answer.steps)

    before_ns = length_ns({window.name: window.duration_ns for window in run.truth.windows})
    found = {}
    for names in [*((name,) for name in CHANGES), *PAIRS]:
        again = run.what_if([*run.changes, *(CHANGES[name][0] for name in names)])
        gain = answer.gain([CHANGES[name][1] for name in names])
        found[names] = (1 - length_ns(again) / before_ns, gain)
    return found


@pytest.mark.parametrize("seed", [14, 16, 61133])
def test_two_changes_gain_what_the_program_gains(seed, tmp_path):
    for names, (true, gain) in gains(seed, tmp_path / "trace.json").items():
        assert gain.low - ERROR <= true <= gain.high + ERROR, names


@pytest.mark.parametrize("seed", [14, 61133])
def test_more_changes_can_gain_less(seed, tmp_path):
    found = gains(seed, tmp_path / "trace.json")
    one, both = found["stream waits",], found["communication", "stream waits"]
    assert both[0] < one[0] - 0.01
    assert both[1].high < one[1].low
