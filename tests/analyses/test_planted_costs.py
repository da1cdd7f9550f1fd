"""Costs of recording that were planted in programs of many shapes are found."""

from __future__ import annotations

from oracles.planted_costs import found

SEEDS = 6


def test_planted_costs_are_found_and_the_step_lies_in_its_interval(tmp_path):
    rows = [found(seed, tmp_path) for seed in range(SEEDS)]
    for event_class in ("outer_operator", "nested_operator", "launch", "annotation"):
        assert all(row.is_found(event_class) for row in rows), event_class
    assert all(row.is_bounded("python_function") for row in rows)
    assert sum(row.is_inside for row in rows) >= 0.8 * SEEDS
