"""What the critical path admits not to know, and how far each of its segments can be relied on.

Each test is a tiny trace, in microseconds.
"""

from itertools import chain

import pytest
from path_rules import TWO_STREAMS

from tiny_traces import call, kernel, launch, operator, read


def certainties(events):
    rows = (
        read(events)
        .critical_path(whole=True)
        .segments.select("kind", "name", "certainty", "busy_ns")
    )
    return rows.rows()


def test_time_that_nothing_explains_is_unknown_and_what_lies_behind_it_doubtful():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), kernel("A", 4, 10, 1), kernel("B", 400, 500, 2)),
    ]
    assert certainties(events) == [
        ("runtime", "cudaLaunchKernel", "certain", None),
        ("launch", "A", "certain", None),
        ("kernel", "A", "doubtful", None),
        ("unexplained", "B", "unknown", 0),
        ("kernel", "B", "certain", None),
    ]


def test_what_the_devices_did_in_unexplained_time_is_measured():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), launch(6, 8, 3), kernel("A", 4, 10, 1)),
        *(kernel("other", 20, 120, 3, stream=9, device=1), kernel("B", 400, 500, 2)),
    ]
    path = read(events).critical_path(whole=True)
    assert path.segments.filter(path.segments["kind"] == "unexplained")["busy_ns"].to_list() == [
        100_000
    ]


def test_an_inferred_wait_is_likely_unless_a_third_stream_ended_as_shortly_before():
    alone = [*TWO_STREAMS, kernel("P", 4, 50, 1), kernel("K", 55, 60, 2, stream=8)]
    assert certainties(alone)[-2:] == [
        ("event_wait", "K", "likely", None),
        ("kernel", "K", "certain", None),
    ]
    rival = [launch(3, 5, 9), kernel("rival", 6, 49, 9, stream=9)]
    path = read([*alone, *rival]).critical_path(whole=True)
    last = path.segments.row(-2, named=True)
    assert (last["kind"], last["certainty"]) == ("event_wait", "doubtful")
    names = dict(read([*alone, *rival]).events.select("event", "name").iter_rows())
    assert names[last["rival"]] == "rival"
    assert path.doubtful_ns == 5_000


@pytest.mark.parametrize(("end_us", "status"), [(1_600, "ok"), (1_400, "inconclusive")])
def test_a_tenth_of_unknown_time_is_too_much(end_us, status):
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), kernel("A", 4, 10, 1), kernel("B", 160, end_us, 2)),
    ]
    path = read(events).critical_path(whole=True)
    assert path.status == status
    assert (path.unexplained_ns, path.behind_unexplained_ns) == (150_000, 10_000)


def test_a_clock_that_is_behind_is_said_with_its_shift():
    events = []
    for number in range(1, 9):
        start = 20 * number
        events += [
            launch(start, start + 2, number),
            kernel("K", start - 30, start - 20, number),
            call("cudaDeviceSynchronize", start + 3, start + 15),
        ]
    path = read(events).critical_path(whole=True)
    ((device, _, shift_ns),) = path.clock_shifts
    assert (device, shift_ns > 0) == (0, True)
    assert f"Device 0 has a clock {shift_ns / 1000:.1f} µs behind the host's" in path.explain()


@pytest.mark.parametrize(("start_us", "doubtful"), [(103, True), (99, False)])
def test_work_that_begins_late_after_work_and_launch_at_once_may_have_waited_for_either(
    start_us, doubtful
):
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), launch(95, 97.5, 3), kernel("A", 7, 50, 1)),
        *(kernel("B", 51, 98, 2), kernel("C", start_us, 120, 3)),
    ]
    way = "doubtful" if doubtful else "certain"
    assert certainties(events) == [
        ("runtime", "cudaLaunchKernel", "certain", None),
        ("launch", "A", way, None),
        ("kernel", "A", way, None),
        ("kernel_delay", "B", way, None),
        ("kernel", "B", way, None),
        ("kernel_delay", "C", way, None),
        ("kernel", "C", "certain", None),
    ]
    rivals = read(events).critical_path(whole=True).segments["rival"].drop_nulls()
    assert len(rivals) == doubtful


@pytest.mark.parametrize(("end_us", "certainty"), [(49, "doubtful"), (43, "certain")])
def test_a_window_that_host_and_device_end_at_once_may_have_ended_with_either(end_us, certainty):
    events = [launch(0, 2, 1), operator("aten::mm", 3, end_us), kernel("A", 7, 50, 1)]
    assert [row[2] for row in certainties(events)] == ["certain", certainty, certainty]


def graph_launch(start, number, ends):
    """Launch a graph whose last node may wait for a node of either of two other streams."""
    at = [(7, 10, 20), (8, 10, ends[0]), (9, 10, ends[1]), (7, 102, 110)]
    nodes = [
        kernel(f"node {place}", start + begin, start + end, number, stream=stream)
        for place, (stream, begin, end) in enumerate(at)
    ]
    return [call("cudaGraphLaunch", start, start + 5, number), *nodes]


@pytest.mark.parametrize(
    ("ends", "undecided_ns", "status"),
    [((100, 99.95), 90_000, "inconclusive"), ((100, 97), 0, "ok")],
)
def test_nodes_of_a_graph_that_end_together_leave_undecided_which_was_waited_for(
    ends, undecided_ns, status
):
    path = read(graph_launch(0, 1, ends)).critical_path(whole=True)
    assert (path.undecided_ns, path.status) == (undecided_ns, status)
    waited = [row["certainty"] for row in path.segments.iter_rows(named=True)]
    assert ("doubtful" in waited[:3]) == bool(undecided_ns)


def test_replays_of_a_graph_tell_what_its_nodes_wait_for():
    launches = [graph_launch(500 * n, n + 1, (100, 99.95 - 10 * n)) for n in range(4)]
    path = read(chain.from_iterable(launches)).critical_path(whole=True)
    assert path.undecided_ns == 0
