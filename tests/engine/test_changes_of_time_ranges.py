"""Changes of time ranges of a thread, and times that are replaced or inserted."""

from __future__ import annotations

import pytest

import longpole
from longpole import Drop, Insert, RemoveWait, Replace, Scale
from longpole.testing import TraceBuilder


@pytest.fixture
def path() -> longpole.CriticalPath:
    """Python for 40 us between two operators, then a kernel of 100 us that is waited for."""
    builder = TraceBuilder().operator("aten::item", (0, 10)).operator("aten::mm", (50, 60))
    builder.launch("gemm", call=(52, 58), work=(60, 160))
    builder.call("cudaDeviceSynchronize", (70, 165))
    return builder.read().critical_path()


def test_a_time_range_of_a_thread_can_go_without_what_is_around_it(path):
    gap = (0, 10_000, 50_000)
    assert path.what_if(Drop(time_ranges=[gap])).gain_ns == 40_000
    assert path.what_if(Scale(by=0.25, time_ranges=[gap])).gain_ns == 30_000
    assert path.n_chosen(Drop(time_ranges=[(0, 11_000, 49_000)])) == [0]


def test_any_factor_is_exact_to_the_nanosecond(path):
    seventh = path.what_if(Scale(by=1 / 7, kind="kernel")).makespan_ns
    assert path.length_ns - seventh == 100_000 - 14_286


def test_an_activity_takes_the_time_that_replaces_its_own(path):
    kernel = [3]
    assert path.what_if(Replace(time_ns=30_000, events=kernel)).gain_ns == 70_000
    cost = Insert(time_ns=5_000, events=kernel)
    assert path.what_if([Replace(time_ns=30_000, events=kernel), cost]).gain_ns == 65_000


def test_a_wait_within_a_time_range_can_go(path):
    assert path.what_if(RemoveWait(time_ranges=[(0, 60_000, 165_000)])).gain_ns > 0
    assert path.n_chosen(RemoveWait(time_ranges=[(0, 0, 60_000)])) == [0]


def test_a_time_below_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 0 ns, not -1"):
        Insert(time_ns=-1, events=[0])
