"""A side that is named alone limits the program whatever recording cost."""

from __future__ import annotations

import pytest

from longpole.remedies.limits import DependsOnCost, Sides
from oracles.planted_costs import balanced


@pytest.mark.parametrize("seed", range(12))
def test_a_side_that_is_named_alone_limits_at_the_least_and_the_most_cost_too(seed, tmp_path):
    trace = balanced(seed, tmp_path)
    limit = trace.without_profiler().verdict().limit
    cost = trace.recording_cost()
    bounds_ns = (cost["least_step_ns"], cost["most_step_ns"])
    at_bounds = [trace.without_profiler(step_time_ns=it).verdict().limit for it in bounds_ns]
    if isinstance(limit, Sides) and len(limit.sides) == 1:
        others = [it for it in at_bounds if isinstance(it, Sides)]
        assert all(limit.sides[0] in it.sides for it in others), (limit, at_bounds)


def test_where_the_bounds_name_different_sides_the_cost_decides(tmp_path):
    """Among these programs are some of that kind, so the property is not an empty one."""
    limits = (balanced(seed, tmp_path).without_profiler().verdict().limit for seed in range(12))
    assert any(isinstance(limit, DependsOnCost) for limit in limits)
