"""The critical path's definition, rule by rule: what streams and calls wait for.

Each test is a tiny trace and the path it must give, in microseconds.

One file: a rule each, in the order of the definition.
"""

import pytest
from path_rules import TWO_STREAMS, graph_of, makespan_us

from longpole import Drop, RemoveWait
from tiny_traces import call, copy, kernel, launch, operator, path_of, read, sync_record

# Waits between streams.


def test_a_kernel_may_wait_for_several_recorded_events():
    events = [
        *(launch(0, 2, 1), launch(2, 4, 2)),
        *(call("cudaEventRecord", 5, 6, 3), call("cudaEventRecord", 6, 7, 4)),
        *(call("cudaStreamWaitEvent", 8, 9, 5), call("cudaStreamWaitEvent", 9, 10, 6)),
        launch(11, 13, 7),
        *(kernel("P1", 4, 50, 1, stream=20), kernel("P2", 7, 30, 2, stream=24)),
        kernel("K", 51, 60, 7, stream=28),
        sync_record(
            *("Stream Wait Event", 8, 5, 28),
            wait_on_stream=20,
            wait_on_cuda_event_record_corr_id=3,
        ),
        sync_record(
            *("Stream Wait Event", 9, 6, 28),
            wait_on_stream=24,
            wait_on_cuda_event_record_corr_id=4,
        ),
    ]
    graph = graph_of(events)
    assert [edge.evidence for edge in graph.with_role("event_wait")] == ["recorded"] * 2
    assert path_of(events)[-3:] == [
        (4, 50, "kernel", "P1"),
        (50, 51, "event_wait", "K"),
        (51, 60, "kernel", "K"),
    ]


def test_a_recorded_wait_reaches_only_to_work_before_its_event():
    events = [
        *(launch(0, 2, 1), call("cudaEventRecord", 3, 4, 2), launch(5, 7, 3)),
        *(call("cudaStreamWaitEvent", 8, 9, 4), launch(10, 12, 5)),
        *(kernel("before", 4, 30, 1), kernel("after", 31, 90, 3)),
        kernel("K", 33, 95, 5, stream=28),
        sync_record(
            *("Stream Wait Event", 8, 4, 28),
            wait_on_stream=7,
            wait_on_cuda_event_record_corr_id=2,
        ),
    ]
    assert path_of(events)[-3:] == [
        (4, 30, "kernel", "before"),
        (30, 33, "event_wait", "K"),
        (33, 95, "kernel", "K"),
    ]


def test_a_late_start_just_after_another_streams_end_waited_for_it():
    events = [*TWO_STREAMS, kernel("P", 4, 50, 1), kernel("K", 55, 60, 2, stream=8)]
    graph = graph_of(events)
    assert [edge.evidence for edge in graph.with_role("event_wait")] == ["inferred"]
    assert path_of(events)[-2:] == [
        (50, 55, "event_wait", "K"),
        (55, 60, "kernel", "K"),
    ]


def test_where_a_program_makes_wait_calls_a_wait_needs_one():
    events = [
        *(launch(0, 2, 1), launch(4, 6, 2), call("cudaStreamWaitEvent", 7, 8, 9), launch(9, 11, 3)),
        kernel("P", 4, 50, 1),
        kernel("without", 52, 60, 2, stream=8),
        kernel("with", 70, 80, 3, stream=9),
    ]
    graph = graph_of(events)
    waiters = [edge.name for edge in graph.with_role("event_wait")]
    assert waiters == ["with"]
    assert path_of(events)[-2:] == [(60, 70, "event_wait", "with"), (70, 80, "kernel", "with")]


def recorded_behind(*events):
    """Launch P on stream 7, record an event after it, make the next launch wait: K on 8."""
    return [
        *(launch(0, 2, 1), call("cudaEventRecord", 2, 3), call("cudaStreamWaitEvent", 3, 4)),
        *(launch(4, 6, 2), *events),
    ]


def test_a_stream_asked_to_wait_waits_for_work_with_an_event_behind_it():
    events = recorded_behind(
        *(kernel("P", 3, 20, 1), kernel("before", 5, 19, stream=8)),
        kernel("K", 21.5, 30, 2, stream=8),
    )
    assert path_of(events)[-2:] == [(20, 21.5, "event_wait", "K"), (21.5, 30, "kernel", "K")]


def test_a_wait_that_was_over_binds_where_the_host_is_faster():
    events = [
        *(launch(0, 2, 1), call("cudaEventRecord", 2, 3), call("cudaStreamWaitEvent", 3, 4)),
        *(kernel("P", 3, 60, 1), operator("slow", 4, 90)),
        *(launch(90, 92, 2), kernel("K", 95, 99, 2, stream=8)),
    ]
    assert path_of(events)[-2:] == [(92, 95, "launch", "K"), (95, 99, "kernel", "K")]
    assert makespan_us(events, Drop(kind="operator")) == 60 + 4


def test_a_start_in_time_did_not_wait_for_work_without_an_event_behind_it():
    events = [
        *(call("cudaEventRecord", -1, 0), launch(0, 2, 1), call("cudaStreamWaitEvent", 3, 4)),
        *(launch(4, 6, 2), kernel("P", 3, 20, 1), kernel("before", 5, 19, stream=8)),
        kernel("K", 21.5, 30, 2, stream=8),
    ]
    assert path_of(events)[-2:] == [(19, 21.5, "kernel_delay", "K"), (21.5, 30, "kernel", "K")]


@pytest.mark.parametrize(
    ("start", "kind"), [(12, "launch"), (19, "launch"), (26, "launch"), (27, "event_wait")]
)
def test_only_a_very_late_start_waited_for_work_without_an_event_behind_it(start, kind):
    events = [
        *(call("cudaEventRecord", -1, 0), launch(0, 2, 1), call("cudaStreamWaitEvent", 3, 4)),
        *(launch(4, 6, 2), kernel("P", 3, start - 1, 1), kernel("K", start, 40, 2, stream=8)),
    ]
    assert path_of(events)[-2][2] == kind


@pytest.mark.parametrize(("end", "kind"), [(34, "launch"), (35, "event_wait"), (50, "event_wait")])
def test_where_a_wait_was_asked_for_its_end_may_be_a_little_back(end, kind):
    events = recorded_behind(kernel("P", 3, end, 1), kernel("K", 60, 70, 2, stream=8))
    assert path_of(events)[-2][2] == kind


def test_work_that_was_submitted_later_is_not_waited_for():
    events = [
        *(launch(0, 2, 2), launch(30, 32, 1), kernel("P", 33, 50, 1)),
        kernel("K", 55, 60, 2, stream=8),
    ]
    assert path_of(events)[-2:] == [(2, 55, "launch", "K"), (55, 60, "kernel", "K")]


def test_of_two_that_ended_the_one_with_an_event_behind_it_was_waited_for():
    events = recorded_behind(
        *(kernel("P", 3, 50, 1), launch(-3, -1, 3), kernel("Q", 4, 52, 3, stream=9)),
        kernel("K", 54, 60, 2, stream=8),
    )
    assert path_of(events)[-2:] == [(50, 54, "event_wait", "K"), (54, 60, "kernel", "K")]


def test_what_ended_as_shortly_before_as_is_usual_is_likelier_than_what_ended_long_before():
    events = [
        *(launch(-4, -2, 3), call("cudaEventRecord", -1, 0), launch(0, 2, 1)),
        *(call("cudaEventRecord", 2, 3), call("cudaStreamWaitEvent", 3, 4), launch(4, 6, 2)),
        *(kernel("other", 3, 60, 3, stream=9), kernel("P", 3, 42, 1)),
        kernel("K", 62, 70, 2, stream=8),
    ]
    assert path_of(events)[-2:] == [(60, 62, "event_wait", "K"), (62, 70, "kernel", "K")]


def test_events_recorded_in_a_row_belong_to_one_stream_after_the_other():
    events = [
        *(launch(-3, -1, 3), launch(0, 2, 1)),
        *(call("cudaEventRecord", 2, 3), call("cudaEventRecord", 3, 4)),
        *(call("cudaStreamWaitEvent", 5, 6), call("cudaStreamWaitEvent", 6, 7), launch(7, 9, 2)),
        *(kernel("P", 3, 20, 1), kernel("Q", 3, 24, 3, stream=9)),
        kernel("K", 26, 30, 2, stream=8),
    ]
    assert path_of(events)[-2:] == [(24, 26, "event_wait", "K"), (26, 30, "kernel", "K")]


def test_a_wait_call_is_used_up_by_the_next_launch():
    events = recorded_behind(
        *(kernel("P", 3, 20, 1), kernel("K", 21, 30, 2, stream=8)),
        *(launch(10, 13, 3), kernel("L", 21.5, 40, 3, stream=9)),
    )
    assert path_of(events)[-2:] == [(13, 21.5, "launch", "L"), (21.5, 40, "kernel", "L")]


def test_without_calls_that_record_any_wait_call_since_the_last_launch_there_will_do():
    events = [
        *(launch(0, 2, 1), call("cudaStreamWaitEvent", 3, 4), launch(4, 5, 3), launch(5, 7, 2)),
        *(kernel("P", 4, 15, 1), kernel("other", 6, 8, 3, stream=9)),
        kernel("K", 18, 25, 2, stream=8),
    ]
    assert path_of(events)[-2:] == [(15, 18, "event_wait", "K"), (18, 25, "kernel", "K")]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (52, (50, 52, "event_wait", "first")),
        (30, (0, 30, "kernel", "other")),
        (252, (50, 252, "unexplained", "first")),
    ],
)
def test_work_to_which_nothing_leads_still_has_a_reason(start, expected):
    events = [kernel("other", 0, 50), kernel("first", start, 300, stream=8)]
    assert path_of(events)[-2] == expected


def test_a_kernel_a_little_late_does_not_wait_for_the_device():
    events = recorded_behind(kernel("holder", 3, 90, 1), kernel("K", 14, 99, 2, stream=8))
    assert path_of(events)[-2:] == [(6, 14, "launch", "K"), (14, 99, "kernel", "K")]


def test_a_kernel_waits_for_the_device_another_stream_holds():
    events = [*TWO_STREAMS, kernel("holder", 4, 90, 1), kernel("K", 55, 99, 2, stream=8)]
    assert path_of(events)[-2:] == [(4, 55, "kernel", "holder"), (55, 99, "kernel", "K")]


def test_a_long_idle_stream_is_openly_unexplained():
    events = [launch(0, 2, 1), kernel("K1", 4, 10, 1), kernel("lost", 500, 510)]
    assert path_of(events)[-2:] == [
        (10, 500, "unexplained", "lost"),
        (500, 510, "kernel", "lost"),
    ]
    assert read(events).critical_path(whole=True).status == "inconclusive"


def test_a_long_gap_in_a_graph_is_called_so():
    events = [call("cudaGraphLaunch", 0, 5, 1), kernel("G1", 8, 20, 1), kernel("G2", 150, 160, 1)]
    assert (20, 150, "graph_gap", "G2") in path_of(events)


# Calls that wait for the device.


def waiting_call(name, end, *more, tail=()):
    return [launch(0, 2, 1), call(name, 10, end, 2), kernel("K", 4, 35, 1), *more, *tail]


@pytest.mark.parametrize(
    "name",
    [
        "cudaDeviceSynchronize",
        "cuCtxSynchronize",
        "cudaStreamSynchronize",
        "hipStreamSynchronize",
        "hipEventSynchronize",
        "cudaFree",
    ],
)
def test_a_waiting_call_is_replaced_by_what_it_waited_for(name):
    assert path_of(waiting_call(name, 40)) == [
        (0, 2, "runtime", "cudaLaunchKernel"),
        (2, 4, "launch", "K"),
        (4, 35, "kernel", "K"),
        (35, 40, "sync_return", name),
    ]


@pytest.mark.parametrize("name", ["cudaEventQuery", "cudaStreamQuery", "cudaMallocAsync"])
def test_polling_and_stream_ordered_calls_never_wait(name):
    assert path_of(waiting_call(name, 40))[-1] == (10, 40, "runtime", name)


def test_a_recorded_query_is_no_wait_either():
    record = sync_record("Event Sync", 10, 2, -1, wait_on_stream=7)
    events = waiting_call("cudaEventQuery", 40, record)
    assert path_of(events)[-1] == (10, 40, "runtime", "cudaEventQuery")


def test_a_slow_allocation_is_not_a_wait():
    assert path_of(waiting_call("cudaMalloc", 9000))[-1] == (10, 9000, "runtime", "cudaMalloc")


def test_an_allocation_during_which_the_device_works_on_is_not_a_wait():
    more = [launch(3, 5, 3), kernel("other", 6, 60, 3, stream=8)]
    events = [*waiting_call("cudaMalloc", 40, *more), operator("next", 40, 70)]
    assert (10, 40, "runtime", "cudaMalloc") in path_of(events)


def test_a_call_shorter_than_any_wait_is_not_asked():
    events = [launch(0, 2, 1), call("cudaStreamSynchronize", 10, 13, 2), kernel("K", 4, 12, 1)]
    assert path_of(events)[-1] == (10, 13, "runtime", "cudaStreamSynchronize")


def test_a_call_that_found_the_device_idle_did_not_wait():
    events = [launch(0, 2, 1), kernel("K", 6, 10, 1), call("cudaDeviceSynchronize", 20, 30)]
    assert path_of(events)[-1] == (20, 30, "runtime", "cudaDeviceSynchronize")


def test_a_stream_that_outlives_the_call_was_not_waited_for():
    more = [launch(3, 5, 3), kernel("elsewhere", 6, 90, 3, stream=8)]
    events = [*waiting_call("cudaStreamSynchronize", 40, *more), operator("next", 40, 99)]
    assert (4, 35, "kernel", "K") in path_of(events)


def waited_for(events):
    """Return the names of the work that calls waited for."""
    path_of(events)
    trace = read(events)
    names = dict(trace.events.select("event", "name").iter_rows())
    return [names[source] for source in trace.sync_dependencies(whole=True)["source"]]


def stream_sync(end, *works):
    """Launch on stream 8 (A), then on 7 (B); then synchronise one stream, from 10 on."""
    return [
        *(launch(0, 2, 1), launch(2, 4, 2), call("cudaStreamSynchronize", 10, end)),
        *(kernel("A", 4, works[0], 1, stream=8), kernel("B", 5, works[1], 2)),
        operator("next", end, 120),
    ]


@pytest.mark.parametrize(
    ("end", "works", "waited"),
    [
        pytest.param(17, (14, 8), [], id="short: the last stream had been over"),
        pytest.param(17, (16, 15), ["B"], id="short: the last stream, not the last end"),
        pytest.param(17, (15, 90), ["A"], id="short: the last stream runs on, so the one before"),
        pytest.param(17, (14, 16.5), [], id="short: too near its end"),
        pytest.param(17, (90, 20), [], id="short: both run on"),
        pytest.param(40, (35, 38), ["B"], id="long: the last end"),
        pytest.param(40, (38, 35), ["A"], id="long: the last end, whichever stream"),
        pytest.param(40, (39.5, 35), ["B"], id="long: one too near its end"),
        pytest.param(40, (39.5, 20), ["A"], id="long: too near its end, but nothing else is near"),
        pytest.param(40, (38, 44), ["A"], id="long: what is over, not what is over soon"),
        pytest.param(40, (15, 44), ["B"], id="long: clocks disagree"),
        pytest.param(40, (44, 42), ["B"], id="long: clocks disagree, and the last stream"),
        pytest.param(40, (44, 15), ["A"], id="long: clocks disagree, on any stream"),
        pytest.param(40, (20, 15), ["A"], id="long: it returned late"),
    ],
)
def test_a_call_that_names_no_stream_means_the_likeliest(end, works, waited):
    events = stream_sync(end, *works)
    assert waited_for(events) == waited


@pytest.mark.parametrize("end", [14, 16.5, 17, 20])
def test_where_there_is_one_stream_a_call_means_that(end):
    events = [launch(0, 2, 1), call("cudaStreamSynchronize", 10, 17), kernel("K", 4, end, 1)]
    assert waited_for([*events, operator("next", 17, 40)]) == ["K"]


def event_sync(end, *works):
    """Record an event after A on stream 8; later launch B on 7; synchronise from 10 on."""
    return [
        *(launch(0, 2, 1), launch(-2, 0, 2, tid=2), call("cudaEventRecord", 2, 3)),
        call("cudaEventSynchronize", 10, end),
        *(kernel("A", 4, works[0], 1, stream=8), kernel("B", 5, works[1], 2)),
        operator("next", end, 120),
    ]


@pytest.mark.parametrize(
    ("end", "works", "waited"),
    [
        pytest.param(40, (32, 38), ["A"], id="the thread that recorded had launched A"),
        pytest.param(40, (8, 38), ["B"], id="long: at least it was the last of its stream"),
        pytest.param(40, (20, 38), ["B"], id="long: and A had been over for too long"),
        pytest.param(40, (20, 22), ["A"], id="long: both had, so the likelier"),
        pytest.param(17, (8, 16), [], id="short: that is not enough"),
        pytest.param(17, (19, 8), [], id="short: clocks are taken to agree"),
        pytest.param(40, (44, 8), ["A"], id="clocks disagree"),
        pytest.param(40, (44, 38), ["B"], id="what is over, not what is over soon"),
        pytest.param(40, (8, 44), [], id="clocks disagree, but there is no good reason"),
    ],
)
def test_a_call_that_names_no_event_means_the_likeliest(end, works, waited):
    events = event_sync(end, *works)
    assert waited_for(events) == waited


def test_an_event_wait_ends_with_work_an_event_was_recorded_after():
    events = [
        *(launch(0, 2, 1), call("cudaEventRecord", 2, 3), launch(3, 5, 2)),
        call("cudaEventSynchronize", 10, 40),
        *(kernel("marked", 4, 20, 1), kernel("unmarked", 20, 38, 2), operator("next", 40, 50)),
    ]
    assert path_of(events)[-3:] == [
        (4, 20, "kernel", "marked"),
        (20, 40, "sync_return", "cudaEventSynchronize"),
        (40, 50, "operator", "next"),
    ]


def test_a_record_decides_even_against_the_nearer_end():
    more = [launch(3, 5, 3), kernel("later", 6, 38, 3, stream=8)]
    record = sync_record("Stream Sync", 10, 2, stream=7)
    events = waiting_call("cudaStreamSynchronize", 40, *more, record)
    assert path_of(events)[-2:] == [
        (4, 35, "kernel", "K"),
        (35, 40, "sync_return", "cudaStreamSynchronize"),
    ]
    assert read(events).critical_path(whole=True).inferred_ns == 0


def test_a_recorded_event_sync_reaches_only_to_work_before_its_event():
    record = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    events = [
        *(launch(0, 2, 1), call("cudaEventRecord", 3, 4, 2), launch(5, 7, 3)),
        *(call("cudaEventSynchronize", 10, 40, 4), operator("next", 40, 50)),
        *(kernel("before", 4, 30, 1), kernel("after", 31, 38, 3)),
        sync_record("Event Sync", 10, 4, -1, **record),
    ]
    assert path_of(events)[-3:] == [
        (4, 30, "kernel", "before"),
        (30, 40, "sync_return", "cudaEventSynchronize"),
        (40, 50, "operator", "next"),
    ]


def test_a_recorded_device_sync_waits_for_all_streams_of_that_device_only():
    events = [
        *(launch(0, 2, 1), launch(2, 4, 3), launch(4, 6, 4)),
        *(kernel("K", 4, 35, 1), kernel("slower", 6, 38, 3, stream=8)),
        kernel("other device", 8, 39, 4, device=1),
        call("cudaDeviceSynchronize", 10, 40, 2),
        sync_record("Context Sync", 10, 2, stream=-1),
    ]
    assert path_of(events)[-2:] == [
        (6, 38, "kernel", "slower"),
        (38, 40, "sync_return", "cudaDeviceSynchronize"),
    ]


@pytest.mark.parametrize("kind", ["Unknown Sync", "Event Sync"])
def test_an_unknown_record_stays_unknown_and_covers_nothing(kind):
    record = sync_record(kind, 10, 2, wait_on_stream=-1)
    graph = graph_of(waiting_call("cudaStreamSynchronize", 40, record))
    assert graph.counts["unknown_sync"] == 1
    assert [edge.evidence for edge in graph.with_role("sync")] == ["inferred"]


def test_work_that_ends_a_little_after_its_sync_is_cut_off_there():
    events = [
        *(launch(0, 4, 1), call("cudaDeviceSynchronize", 5, 30)),
        *(operator("after", 30, 35), kernel("K", 6, 32, 1)),
    ]
    assert path_of(events)[-2:] == [(6, 30, "kernel", "K"), (30, 35, "operator", "after")]


def test_a_blocking_copy_waits_for_the_copy():
    name = "Memcpy DtoH (Device -> Pageable)"
    events = [
        *(launch(0, 4, 1), call("cudaMemcpyAsync", 10, 50, 2)),
        *(kernel("K", 6, 40, 1), copy(name, 41, 44, 2)),
    ]
    assert path_of(events)[-4:] == [
        (6, 40, "kernel", "K"),
        (40, 41, "kernel_delay", name),
        (41, 44, "copy", name),
        (44, 50, "sync_return", "cudaMemcpyAsync"),
    ]


def test_staging_pageable_memory_is_time_of_the_copy():
    name = "Memcpy HtoD (Pageable -> Device)"
    events = [
        *(launch(0, 2, 1), kernel("K", 4, 20, 1)),
        *(call("cudaMemcpyAsync", 5, 50, 2), copy(name, 21, 90, 2), operator("B", 50, 99)),
    ]
    assert path_of(events)[-3:] == [
        (20, 21, "kernel_delay", name),
        (21, 50, "copy", name),
        (50, 99, "operator", "B"),
    ]


def test_without_the_copy_its_staging_goes_and_without_the_wait_it_stays():
    name = "Memcpy HtoD (Pageable -> Device)"
    events = [
        *(launch(0, 2, 1), kernel("K", 4, 20, 1)),
        *(call("cudaMemcpyAsync", 5, 50, 2), copy(name, 21, 90, 2), operator("B", 50, 149)),
    ]
    assert makespan_us(events, Drop(kind="copy")) == 21 + 99
    assert makespan_us(events, RemoveWait()) == 5 + 29 + 99


def test_a_copy_that_starts_when_its_call_ends_was_not_waited_for():
    name = "Memcpy HtoD (Pageable -> Device)"
    events = [call("cudaMemcpyAsync", 0, 10, 1), copy(name, 10, 11, 1), operator("B", 10, 20)]
    assert path_of(events)[0] == (0, 10, "runtime", "cudaMemcpyAsync")


def test_a_copy_to_pinned_memory_does_not_block():
    events = [
        call("cudaMemcpyAsync", 0, 5, 2),
        operator("after", 6, 36),
        copy("Memcpy DtoH (Device -> Pinned)", 8, 18, 2),
    ]
    assert path_of(events)[-1] == (6, 36, "operator", "after")


def full_queue(n_outstanding):
    """Build a stream with work outstanding, and a launch of 25 us that ends 1 us after a kernel."""
    ends = [1_010 + 10 * i for i in range(n_outstanding)]
    return [
        *(launch(i / 2, i / 2 + 0.25, i + 1) for i in range(n_outstanding)),
        *(kernel("K", end - 10, end, i + 1) for i, end in enumerate(ends)),
        *(launch(1_000, 1_025, 5_000), kernel("K", ends[-1], ends[-1] + 10, 5_000)),
        operator("next", 1_025, 90_000),
    ]


def test_a_long_launch_into_a_full_queue_waits_for_room():
    assert path_of(full_queue(1_021))[-2:] == [
        (1_020, 1_025, "queue_full", "cudaLaunchKernel"),
        (1_025, 90_000, "operator", "next"),
    ]


def test_a_long_launch_into_a_queue_with_room_was_just_slow():
    assert (1_000, 1_025, "runtime", "cudaLaunchKernel") in path_of(full_queue(900))
