"""`breakdown` by concurrency: how many streams are busy at once, in a window."""

from __future__ import annotations

import longpole
from longpole.testing import TraceBuilder

US = 1_000


def times(trace, window=None, **choices):
    found = longpole.breakdown(trace, window, **choices, by="concurrency")
    return {(row["device"], row["streams"]): row["duration_ns"] // US for row in found.to_dicts()}


def test_streams_count_while_they_are_busy():
    builder = TraceBuilder().kernel("gemm", (0, 30), stream=7)
    trace = builder.kernel("add", (20, 60), stream=9).kernel("mul", (70, 80), stream=7).read()
    assert times(trace) == {(0, 0): 10, (0, 1): 60, (0, 2): 10}
    row = longpole.breakdown(trace, by="concurrency").row(2, named=True)
    assert (row["busy_share"], row["window_share"]) == (10 / 70, 10 / 80)


def test_activities_of_one_stream_count_once_though_they_overlap():
    builder = TraceBuilder().kernel("gemm", (0, 30)).kernel("inside", (5, 10))
    assert times(builder.kernel("add", (20, 40)).read()) == {(0, 1): 40}


def test_a_condition_says_which_activities_count():
    builder = TraceBuilder().kernel("gemm", (0, 30), stream=7)
    trace = builder.copy("Memcpy HtoD", (10, 40), stream=9).read()
    assert times(trace, where="kind = 'kernel'") == {(0, 0): 10, (0, 1): 30}


def test_a_device_that_does_nothing_in_a_window_is_idle_there():
    trace = TraceBuilder().kernel("a", (0, 50)).kernel("b", (60, 70), device=1).read()
    window = longpole.choose_window(trace, between=(10 * US, 40 * US))
    assert times(trace, window) == {(0, 1): 30, (1, 0): 30}
