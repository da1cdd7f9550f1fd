"""What was measured of a remedy, and what is recorded against it, decide how it is told."""

from __future__ import annotations

from statistics import median

import pytest

from longpole.remedies.catalogue import remedies
from longpole.remedies.evidence import measured
from longpole.remedies.gains import beyond

_TOLERANCE = 0.03
_MOSTLY = 0.8


def pairs(remedy):
    """Return the measured gain of each program, with the bounds that were predicted."""
    rows = [row for row in measured(remedy) if row["predicted"] is not None]
    return [(row["gain"][0], *row["predicted"]) for row in rows]


MEASURED = [remedy for remedy in remedies() if pairs(remedy.id)]


@pytest.mark.parametrize("remedy", MEASURED, ids=lambda remedy: remedy.id)
def test_a_remedy_that_gained_less_than_predicted_promises_nothing(remedy):
    """It is told as "up to", counts half in the order, and is no first line beside a sure one."""
    came_true = median(gain / low for gain, low, _ in pairs(remedy.id) if low > 0)
    assert remedy.is_upper_bound or came_true >= _MOSTLY


def test_three_of_four_measured_programs_keep_the_upper_bound():
    found = [pair for remedy in MEASURED for pair in pairs(remedy.id)]
    assert len(found) >= 30
    kept = sum(gain <= beyond(high) for gain, _, high in found)
    assert kept >= 0.7 * len(found)
    assert sum(gain >= low - _TOLERANCE for gain, low, _ in found) >= 0.95 * len(found)
