"""`queue` by stream, time and full: what waits on a stream, in and across windows."""

from __future__ import annotations

import pytest

import longpole
from longpole.testing import TraceBuilder
from longpole.trace.sweeps import FULL_QUEUE_OPERATIONS

US = 1_000


def between(trace, start_us, end_us):
    return longpole.choose_window(trace, between=(start_us * US, end_us * US))


@pytest.fixture
def trace():
    """Three launched in the first 3 us, that begin at 10, 20 and 30 us; one at 40 us."""
    builder = TraceBuilder()
    for number in range(3):
        start = 10 * (number + 1)
        builder.launch("gemm", call=(number, number + 1), work=(start, start + 10))
    return builder.launch("add", call=(36, 37), work=(40, 50)).read()


def test_what_waits_before_and_after_a_window_counts_in_it(trace):
    # At 5 us three wait, of which one begins in the window and two after it.
    found = longpole.queue(trace, between(trace, 5, 15), by="time")
    assert found.select("time_ns", "queue_length").rows() == [(5 * US, 3), (10 * US, 2)]
    summary = longpole.queue(trace, between(trace, 5, 15))
    assert summary.select("count", "time_mean").row(0) == (2, (3 * 5 + 2 * 5) / 10)


def test_the_opening_row_has_the_last_event_before_the_window(trace):
    (event, *_) = longpole.queue(trace, between(trace, 12, 15), by="time")["event"]
    assert trace.events.filter(event=event)["start_ns"].item() == 10 * US


def test_a_window_without_a_change_has_the_length_at_its_start(trace):
    found = longpole.queue(trace, between(trace, 22, 28), by="time")
    assert found.select("time_ns", "queue_length").rows() == [(22 * US, 1)]
    full = longpole.queue(trace, between(trace, 22, 28), max_length=1, by="full")
    assert full.select("duration_ns", "window_share", "longest").row(0) == (6 * US, 1.0, 1)


def test_a_queue_in_which_nothing_waits_has_no_opening_row(trace):
    found = longpole.queue(trace, between(trace, 33, 45), by="time")
    assert found.select("time_ns", "queue_length").rows() == [(36 * US, 1), (40 * US, 0)]
    assert longpole.queue(trace, between(trace, 31, 35), by="time").is_empty()


def test_a_condition_holds_of_activities_outside_the_window_too(trace):
    found = longpole.queue(trace, between(trace, 5, 15), where="start_ns > 15000", by="time")
    assert found.select("time_ns", "queue_length").rows() == [(5 * US, 2)]


def test_a_queue_is_full_before_its_last_entry_is_seen():
    n_waiting = FULL_QUEUE_OPERATIONS
    builder = TraceBuilder()
    for number in range(n_waiting):
        builder.launch("k", call=(number, number + 1), work=(2_000 + number, 2_001 + number))
    trace = builder.read()
    (row,) = longpole.queue(trace, between(trace, 0, 4_000), by="full").to_dicts()
    # Full from the start of the last call to the start of the first activity.
    assert (row["duration_ns"], row["longest"]) == ((2_000 - (n_waiting - 1)) * US, n_waiting)
