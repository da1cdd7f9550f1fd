"""Every table counts and sums what is in the file, by code that shares nothing with longpole."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles.raw_events import checks
from real_traces import SHARED

RECORDINGS = Path(__file__).parents[1] / "recordings"
OWN = ("graph4", "plain", "decode.before", "masks.after", "threads")
OTHERS = [
    *SHARED.glob("traces/*.json.gz"),
    *SHARED.glob("gpu/programs/*.json.gz"),
    *SHARED.glob("cases/public/*.sqlite"),
]
FEWEST_CHECKS = 20


def agrees(path):
    done = [*checks(path)]
    assert [row for each in done for row in each.differences] == []
    return sum(sum(each.counts.values()) for each in done)


@pytest.mark.parametrize(
    "name", [*OWN[:2], *(pytest.param(it, marks=pytest.mark.slow) for it in OWN[2:])]
)
def test_windows_and_tables_are_those_of_the_raw_events(name):
    assert agrees(RECORDINGS / f"{name}.json.gz") >= FEWEST_CHECKS


@pytest.mark.slow
@pytest.mark.skipif(not OTHERS, reason="no real traces beside the project")
@pytest.mark.parametrize("path", sorted(OTHERS), ids=lambda path: path.name)
def test_tables_of_other_traces_are_those_of_the_raw_events(path):
    agrees(path)


def test_a_figure_that_differs_is_found(monkeypatch):
    """An activity that is not counted changes busy time, idle time, streams and names."""
    monkeypatch.setattr("oracles.raw_events.read", _without_one)
    done = checks(RECORDINGS / "kernels.after.json.gz")
    found = {row.what for each in done for row in each.differences}
    assert {"summary: busy", "idle", "breakdown", "activities", "kernels", "launches"} <= found


def _without_one(path):
    from oracles.raw_file import _of_chrome

    raw = _of_chrome(path.read_bytes())
    middle = len(raw.works) // 2
    return raw._replace(works=raw.works[:middle] + raw.works[middle + 1 :])
