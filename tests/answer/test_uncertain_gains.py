"""A gain beside its upper bound, where the cost of recording leaves much open."""

from __future__ import annotations

import pytest

from longpole.answer.gains import Gains
from longpole.remedies.gains import Gain, _gain


def told(value, low, high, by):
    """Return the gain of the kernels as text."""
    gain = _gain((0, value, (low, high, by, by), []))
    return Gains({"gains": {"kernels": gain}, "uncertainty": {"inferred": 0.0}}).of_side("kernels")


def test_a_bound_far_above_the_gain_stands_beside_it(said):
    found = told(0.21, 0.07, 0.98, "recording_cost")
    said(found)


@pytest.mark.parametrize(
    ("gain", "most"),
    [
        ((0.6, 0.4, 0.7, "recording_cost"), "up to 70 %"),
        ((0.0, 0.0, 0.29, "recording_cost"), "up to 29 %"),
        ((0.1, 0.0, 0.6, "missing_activities"), "at most 60 %"),
        ((0.3, 0.2, 0.6, "missing_activities"), "at least 20 %, at most 60 %"),
    ],
    ids=["near", "nothing", "missing", "partly missing"],
)
def test_other_bounds_stand_alone(gain, most):
    assert told(*gain) == most


def test_a_gain_cannot_be_made_by_hand():
    with pytest.raises(TypeError, match="computed"):
        Gain()
