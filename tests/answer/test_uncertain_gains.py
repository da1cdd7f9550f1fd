"""A gain beside its upper bound, where the cost of recording leaves much open."""

from __future__ import annotations

import pytest

from longpole.answer.gains import Gains


def told(gain, *, recorded, of_cost, inferred=0.0):
    """Return the gain of the kernels, with bounds by missing records and by the cost as well."""
    parts = {
        "gains": [("kernels", gain)],
        "bounds": [("kernels", (*recorded, "recorded", "recorded"))],
        "bounds_of_cost": [("kernels", (*of_cost, "recording_cost", "recording_cost"))],
        "uncertainty": {"inferred": inferred},
    }
    return Gains(parts).told("kernels")


def test_a_bound_far_above_the_gain_stands_beside_it():
    found = told(0.21, recorded=(0.21, 0.21), of_cost=(0.07, 0.98))
    assert found == "about 21 % (7 to 98 %, as the cost of recording is uncertain)"


@pytest.mark.parametrize(
    ("gain", "recorded", "of_cost", "most"),
    [
        (0.6, (0.6, 0.6), (0.4, 0.7), "up to 70 %"),
        (0.0, (0.0, 0.0), (0.0, 0.29), "up to 29 %"),
        (0.1, (0.0, 0.6), (0.0, 0.6), "up to 60 %"),
    ],
    ids=["near", "nothing", "by missing records"],
)
def test_other_bounds_stand_alone(gain, recorded, of_cost, most):
    assert told(gain, recorded=recorded, of_cost=of_cost) == most
