"""The critical path's definition, rule by rule: what binds, windows, slack and what-if.

Each test is a tiny trace and the path it must give, in microseconds.
"""

from fractions import Fraction

import pytest
from path_rules import makespan_us

import longpole
from longpole import Drop, RemoveWait, Scale
from tiny_traces import (
    BACKWARD,
    US,
    annotation,
    call,
    kernel,
    launch,
    named,
    operator,
    path_of,
    positions,
    read,
)

# Binding and ties.


def test_the_own_lane_wins_a_tie():
    events = [launch(0, 2, 1), launch(4, 10, 2), kernel("K1", 3, 10, 1), kernel("K2", 10, 15, 2)]
    assert path_of(events)[-2:] == [(3, 10, "kernel", "K1"), (10, 15, "kernel", "K2")]


def test_between_equals_the_name_decides():
    events = [
        *(launch(0, 2, 1), launch(0, 2, 1)),
        *(kernel("B", 4, 40, 1, stream=8), kernel("A", 4, 40, 1, stream=9)),
    ]
    assert path_of(events)[-1] == (4, 40, "kernel", "A")


# Windows.

STEPS = [
    *(annotation("ProfilerStep#1", 0, 20), annotation("ProfilerStep#2", 20, 40)),
    *(launch(5, 7, 1), launch(25, 27, 2)),
    *(kernel("K1", 10, 30, 1), kernel("K2", 31, 60, 2)),
]


@pytest.mark.parametrize(
    ("end", "window"),
    [("period", (30, 60)), ("last", (20, 60)), ("gpu", (20, 60)), ("cpu", (20, 40))],
)
def test_a_step_ends_with_its_annotation_and_all_work_it_launched(end, window):
    path = path_of(STEPS, step=2, end=end)
    assert (path[0][0], path[-1][1]) == window


@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(61, 70, id="it follows what the step launched at once"),
        pytest.param(38, 70, id="it began within the step"),
    ],
)
def test_work_whose_launch_is_missing_completes_the_step_it_is_likely_to_be_of(start, end):
    stream = 7 if start > 60 else 8
    before = [launch(6, 7, 3), kernel("other", 11, 12, 3, stream=8)]
    events = [*STEPS, *before, kernel("orphan", start, end, 99, stream=stream)]
    path = path_of(events, step=2)
    assert path[-1] == (start, end, "kernel", "orphan")
    assert path_of(events, step=1)[-1][1] == 30


def test_a_period_begins_where_the_step_before_was_complete():
    assert path_of(STEPS, step=2) == [(30, 31, "kernel_delay", "K2"), (31, 60, "kernel", "K2")]


def test_a_period_without_the_step_before_begins_at_its_annotation():
    assert path_of(STEPS, step=1)[0] == (0, 5, "host_gap", "ProfilerStep#1")


def test_instances_of_an_annotation_count_in_the_order_of_time():
    events = [annotation("fit", 50, 60), annotation("fit", 0, 10), operator("A", 52, 58)]
    assert path_of(events, annotation="fit", instance=1) == [
        (50, 52, "host_gap", "fit"),
        (52, 58, "operator", "A"),
        (58, 60, "host_gap", "fit"),
    ]


def test_between_two_times_the_path_is_clipped():
    events = [operator("A", 0, 10), operator("B", 15, 30)]
    assert path_of(events, between=(5 * US, 20 * US)) == [
        (5, 10, "operator", "A"),
        (10, 15, "host_gap", None),
        (15, 20, "operator", "B"),
    ]


def test_in_a_gap_of_the_main_thread_what_leads_on_decides():
    events = [operator("A", 0, 10), operator("B", 50, 60)]
    assert path_of(events, between=(20 * US, 30 * US)) == [(20, 30, "host_gap", None)]
    backward = [operator("f", 0, 10), operator(BACKWARD + "A", 15, 50, 2), operator("o", 55, 60)]
    path = path_of(backward, between=(5 * US, 40 * US))
    assert path[-1] == (15, 40, "operator", BACKWARD + "A")


def test_beyond_the_first_and_last_event_nothing_is_known():
    events = [operator("A", 10, 20)]
    assert path_of(events, between=(5 * US, 25 * US)) == [
        (5, 10, "before_first_event", None),
        (10, 20, "operator", "A"),
        (20, 25, "after_last_event", None),
    ]


def test_a_helper_thread_never_ends_the_trace():
    events = [operator("A", 0, 10), operator("B", 10, 20), operator("watchdog", 0, 999, tid=5)]
    assert path_of(events)[-1] == (10, 20, "operator", "B")


@pytest.mark.parametrize("window", [{"step": 7}, {"annotation": "fit"}, {"between": (5, 6)}])
def test_a_window_that_is_not_there_is_an_error_in_words(window):
    events = [operator("A", 10, 20)]
    with pytest.raises(longpole.WindowError, match=r"no |annotations 'fit'"):
        read(events).critical_path(**window)


# Slack, waits, what-if.

OVERLAPPED = [
    *(launch(0, 2, 1), launch(3, 5, 2), call("cudaDeviceSynchronize", 10, 40)),
    *(kernel("long", 4, 35, 1), kernel("short", 7, 18, 2, stream=8), operator("after", 40, 45)),
    operator("elsewhere", 0, 3, tid=5),
]


def test_slack_is_what_an_event_may_be_late_and_null_where_nothing_follows():
    events = [launch(0, 2, 1), kernel("K", 4, 30, 1), operator("A", 2, 22), operator("x", 0, 1, 5)]
    assert slack_of(events) == {0: 0, 1: 0, 2: None, 3: None}
    assert slack_of([*events, call("cudaDeviceSynchronize", 22, 32)])[2] == 8 * US


def slack_of(events):
    """Return the slack by row of the file."""
    trace = read(events)
    place = positions(trace)
    return {place[event]: ns for event, ns in trace.critical_path(whole=True).slack.iter_rows()}


def test_waits_are_listed_with_their_evidence():
    columns = ["source_name", "target_name", "kind", "evidence", "waited", "on_path"]
    assert read(OVERLAPPED).sync_dependencies().select(columns).rows() == [
        ("long", "cudaDeviceSynchronize", "sync_return", "inferred", True, True)
    ]


@pytest.mark.parametrize(
    ("changes", "makespan"),
    [
        ([], 45),
        ([Scale(kind="kernel", matching="long", by=0.5)], 29.5),
        ([Scale(matching="long", by=Fraction(1, 2))], 29.5),
        ([Scale(kind="kernel", by=2)], 76),
        ([Drop(matching="long")], 20),
        ([Drop(kind="launch")], 43),
        ([Drop(kind="sync_return")], 40),
        ([RemoveWait(kind="sync_return")], 35),
        ([RemoveWait(matching="StreamSync")], 45),
        ([Drop(kind="host_gap")], 45),
    ],
)
def test_what_if(changes, makespan):
    assert makespan_us(OVERLAPPED, *changes) == makespan


@pytest.mark.parametrize(
    ("changes", "length"),
    [
        pytest.param([], 52, id="nothing"),
        pytest.param([Drop(matching="later")], 52, id="what comes later"),
        pytest.param([Drop(matching="before")], 52, id="what was before"),
        pytest.param([Drop(matching="^K$")], 12, id="a kernel of which 40 us lie inside"),
        pytest.param([Scale(matching="^K$", by=0.5)], 32, id="half of it"),
        pytest.param([Drop(matching="^next$")], 42, id="an operator of which 10 us lie inside"),
        pytest.param([RemoveWait()], 40, id="a wait of 40 us, beside work that still takes them"),
        pytest.param([Drop(matching="^K$"), RemoveWait()], 10, id="both"),
    ],
)
def test_between_two_times_only_what_lies_inside_gains(changes, length):
    events = [
        *(operator("before", -50, -10), launch(0, 2, 1), call("cudaDeviceSynchronize", 2, 102)),
        *(kernel("K", 2, 100, 1), operator("next", 102, 152), operator("later", 160, 900)),
    ]
    between = (60 * US, 112 * US)
    path = read(events).critical_path(between=between)
    assert path.what_if(changes).makespan_ns == length * US


def test_what_if_names_the_new_long_pole():
    changed = read(OVERLAPPED).critical_path(whole=True).what_if(Drop(matching="long"))
    assert named(changed.critical_path)[-2:] == [
        (10, 15, "runtime", "cudaDeviceSynchronize"),
        (15, 20, "operator", "after"),
    ]


def test_a_launch_that_did_not_bind_is_assumed_to_be_as_quick_as_those_that_did():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("K1", 4, 60, 1), kernel("K2", 61, 70, 2)]
    assert makespan_us(events, Drop(matching="K1")) == 5 + 2 + 9


def test_work_that_its_launch_held_up_follows_its_stream_more_quickly_without_the_launch():
    events = [
        *(launch(0, 2, 1), kernel("K1", 4, 40, 1), launch(3, 5, 2), kernel("K2", 41, 60, 2)),
        *(launch(54, 56, 3), kernel("K3", 61, 70, 3)),
        *(launch(64, 68, 4), kernel("K4", 73, 90, 4)),
    ]
    path = path_of(events)
    assert path[-2:] == [(70, 73, "kernel_delay", "K4"), (73, 90, "kernel", "K4")]
    assert makespan_us(events) == 90
    assert makespan_us(events, Drop(kind="host_gap"), Drop(matching="cudaLaunch")) == 86


def test_the_tail_of_an_overlapped_kernel_keeps_its_length():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("K1", 4, 20, 1), kernel("K2", 15, 30, 2)]
    assert makespan_us(events, Scale(matching="K1", by=0.5)) == 22
