"""Simulated programs that are slow for one known reason, and the same mended."""

from __future__ import annotations

import pytest

from oracles.patterns import judged
from oracles.simulator.patterns import PATTERNS, pair


def _seeds(number: int) -> list[int]:
    """Return seeds of which each pattern has some."""
    found: dict[str, list[int]] = {name: [] for name in PATTERNS}
    seed = 0
    while any(len(seeds) < number for seeds in found.values()):
        seeds = found[pair(seed).pattern]
        if len(seeds) < number:
            seeds.append(seed)
        seed += 1
    return sorted(seed for seeds in found.values() for seed in seeds)


@pytest.mark.parametrize("seed", _seeds(1))
def test_the_reason_is_named_first_with_an_interval_that_holds(seed, tmp_path):
    row = judged(seed, tmp_path)
    assert not row.still_named
    if row.is_worth:
        assert row.is_first, row
        assert row.holds, row


@pytest.mark.slow
def test_of_500_programs_nearly_all_are_judged_right(tmp_path):
    rows = [row for seed in range(10_000, 10_500) if (row := judged(seed, tmp_path)).is_worth]
    assert sum(row.is_first for row in rows) >= 0.95 * len(rows)
    assert sum(row.holds for row in rows) >= 0.9 * len(rows)
    assert not any(row.still_named for row in rows)
