"""Two ranks of NCCL, as they were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from longpole import read_traces

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture(params=["late_rank", "communication_overlap"])
def ranks(request):
    paths = [RECORDINGS / f"{request.param}.rank{number}.json.gz" for number in (0, 1)]
    return request.param, read_traces(paths)


def test_all_calls_are_matched(ranks):
    name, traces = ranks
    n_calls = {"late_rank": 4, "communication_overlap": 16}[name]
    assert traces.calls.height == n_calls
    assert "unmatched call" not in [finding.kind for finding in traces.findings]


def test_the_rank_that_works_on_the_host_makes_the_other_wait():
    paths = [RECORDINGS / f"late_rank.rank{number}.json.gz" for number in (0, 1)]
    assert read_traces(paths).calls["last"].to_list() == [1, 1, 1, 1]
