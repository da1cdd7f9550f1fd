"""The critical path's definition, rule by rule: a tiny trace, and the path it must give.

The naive twin gives it, and longpole the same.

Times are microseconds. A path is a list of (start, end, kind, name of the event).
"""

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest

import longpole
from real_traces import SHARED, real_traces
from tiny_traces import (
    BACKWARD,
    US,
    annotation,
    call,
    copy,
    frame,
    kernel,
    launch,
    operator,
    read,
    segments,
    sync_record,
)
from twins.path_edges import Edge, Evidence, Kind, Points, Role
from twins.path_events import nanoseconds, parse_trace
from twins.path_graph import _without_circles
from twins.path_twin import (
    Detach,
    Drop,
    Scale,
    build_graph,
    critical_path,
    find_window,
    read_events,
    slack,
    sync_dependencies,
    what_if,
)

# What the twin says, and that longpole says the same.


def path_of(events, **window):
    graph = build_graph(events)
    path = critical_path(graph, find_window(graph, **window))
    trace = read(events)
    between = {"between": window.pop("between_ns")} if "between_ns" in window else {}
    assert segments(trace, trace.critical_path(**window, **between)) == path.segments
    return named(events, path)


def named(events, path):
    return [
        (s.start_ns / US, s.end_ns / US, s.kind, None if s.row is None else events[s.row]["name"])
        for s in path.segments
    ]


def makespan_us(events, *changes):
    graph = build_graph(events)
    makespan_ns = what_if(graph, find_window(graph), changes).makespan_ns
    ours = [OURS[type(change)](**vars(change)) for change in changes]
    assert read(events).critical_path().what_if(ours).makespan_ns == makespan_ns
    return makespan_ns / US


OURS = {Scale: longpole.Scale, Drop: longpole.Drop, Detach: longpole.Detach}


# Times and events.


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1.0005", 1000), ("1.0015", 1002), ("1e3", 1_000_000), ("1712195495519695.8123", None)],
)
def test_times_are_exact_and_round_half_to_even(text, ns):
    assert nanoseconds(text) == (1712195495519695812 if ns is None else ns)


def test_an_event_of_negative_duration_is_dropped_and_counted():
    events = [operator("A", 0, 10), operator("broken", 5, 3)]
    assert path_of(events) == [(0, 10, "operator", "A")]
    assert build_graph(events).counts["negative_duration"] == 1


def test_the_order_in_the_file_changes_nothing():
    events = [
        *(launch(i * 3, i * 3 + 2, i + 1) for i in range(20)),
        *(kernel("same", 4 + 5 * i, 9 + 5 * i, i + 1, stream=i % 3) for i in range(20)),
        call("cudaDeviceSynchronize", 70, 120),
    ]
    expected = path_of(events)
    for seed in range(10):
        shuffled = random.Random(seed).sample(events, len(events))  # noqa: S311
        assert path_of(shuffled) == expected


def test_numbers_of_processes_and_threads_mean_nothing():
    events = [
        *(operator("forward", 0, 10), operator("forward again", 70, 80)),
        *(operator(BACKWARD + "B", 15, 50, tid=2), operator("helper", 0, 99, tid=3)),
    ]
    numbers = {1: 900, 2: 70, 3: 5}
    renumbered = [{**e, "pid": numbers[e["pid"]], "tid": numbers[e["tid"]]} for e in events]
    assert path_of(renumbered) == path_of(events)


# Threads.


def test_time_between_operators_counts():
    events = [operator("A", 0, 10), operator("B", 15, 20)]
    assert path_of(events) == [
        (0, 10, "operator", "A"),
        (10, 15, "host_gap", None),
        (15, 20, "operator", "B"),
    ]


def test_time_belongs_to_what_started_last_and_calls_come_before_operators():
    events = [operator("A", 0, 20), call("cudaMalloc", 4, 12), frame("f", 14, 16)]
    assert path_of(events) == [
        (0, 4, "operator", "A"),
        (4, 12, "runtime", "cudaMalloc"),
        (12, 14, "operator", "A"),
        (14, 16, "operator", "f"),
        (16, 20, "operator", "A"),
    ]


def test_a_crossing_operator_takes_over_and_is_counted():
    events = [operator("A", 0, 10), operator("B", 5, 15)]
    assert path_of(events) == [(0, 5, "operator", "A"), (5, 15, "operator", "B")]
    assert build_graph(events).counts["crossing"] == 1


def test_a_gap_is_named_after_the_open_frame_or_annotation():
    events = [
        annotation("epoch", 0, 40),
        operator("A", 0, 10),
        frame("prepare", 12, 20),
        operator("B", 25, 30),
    ]
    assert path_of(events) == [
        (0, 10, "operator", "A"),
        (10, 12, "host_gap", "epoch"),
        (12, 20, "host_gap", "prepare"),
        (20, 25, "host_gap", "epoch"),
        (25, 30, "operator", "B"),
    ]


def test_inside_a_data_loader_all_but_calls_is_data_loading():
    events = [
        annotation("enumerate(DataLoader)#next", 0, 30),
        operator("aten::stack", 5, 20),
        call("cudaHostAlloc", 10, 15),
        operator("train", 30, 40),
    ]
    assert path_of(events) == [
        (5, 10, "data_loading", "aten::stack"),
        (10, 15, "runtime", "cudaHostAlloc"),
        (15, 20, "data_loading", "aten::stack"),
        (20, 30, "data_loading", "enumerate(DataLoader)#next"),
        (30, 40, "operator", "train"),
    ]


def test_events_without_duration_take_no_time():
    events = [operator("A", 0, 10), call("cudaGetDevice", 5, 5), operator("B", 10, 10)]
    assert path_of(events) == [(0, 10, "operator", "A")]


# Launches.


def test_a_kernel_waits_for_the_end_of_its_launch_call():
    events = [operator("A", 0, 10), launch(4, 8, 1), kernel("K", 11, 30, 1)]
    assert path_of(events) == [
        (0, 4, "operator", "A"),
        (4, 8, "runtime", "cudaLaunchKernel"),
        (8, 11, "launch", "K"),
        (11, 30, "kernel", "K"),
    ]


def test_a_kernel_that_starts_inside_its_call_waits_for_the_calls_start():
    events = [launch(4, 8, 1), kernel("K", 6, 30, 1)]
    assert path_of(events) == [(4, 6, "runtime", "cudaLaunchKernel"), (6, 30, "kernel", "K")]


def test_one_graph_launch_starts_many_kernels():
    events = [
        call("cudaGraphLaunch", 0, 5, 1),
        kernel("first", 8, 20, 1),
        kernel("second", 21, 40, 1),
        kernel("aside", 9, 15, 1, stream=8),
    ]
    assert path_of(events) == [
        (0, 5, "runtime", "cudaGraphLaunch"),
        (5, 8, "launch", "first"),
        (8, 20, "kernel", "first"),
        (20, 21, "kernel_delay", "second"),
        (21, 40, "kernel", "second"),
    ]


def test_of_two_calls_with_one_number_the_latest_before_the_kernel_launched_it():
    events = [launch(0, 2, 9), launch(10, 12, 9), launch(50, 52, 9), kernel("K", 14, 60, 9)]
    assert path_of(events)[-2:] == [(12, 14, "launch", "K"), (14, 60, "kernel", "K")]


def test_a_kernel_before_its_own_call_hangs_on_its_thread_and_is_counted():
    events = [operator("A", 0, 6), launch(10, 12, 1), kernel("K", 8, 30, 1)]
    graph = build_graph(events)
    assert named(events, critical_path(graph)) == [
        (0, 6, "operator", "A"),
        (6, 8, "clock_skew", "K"),
        (8, 30, "kernel", "K"),
    ]
    assert [edge.role for edge in graph.violations] == [Role.LAUNCH]
    assert (graph.counts["clock_skew"], graph.counts["large_clock_skew"]) == (1, 0)


# Streams.


def test_a_busy_stream_delays_its_next_kernel():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("K1", 4, 20, 1), kernel("K2", 21, 30, 2)]
    assert path_of(events) == [
        (0, 2, "runtime", "cudaLaunchKernel"),
        (2, 4, "launch", "K1"),
        (4, 20, "kernel", "K1"),
        (20, 21, "kernel_delay", "K2"),
        (21, 30, "kernel", "K2"),
    ]


def test_copies_and_collectives_have_kinds_of_their_own():
    events = [
        copy("Memcpy DtoD", 0, 5, 0),
        kernel("ncclDevKernel_AllReduce", 5, 20),
        kernel("hipblaslt_gemm", 20, 30),
    ]
    assert [kind for _, _, kind, _ in path_of(events)] == ["copy", "communication", "kernel"]


def test_of_overlapping_kernels_the_earlier_one_has_the_common_time():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("K1", 4, 20, 1), kernel("K2", 15, 30, 2)]
    assert path_of(events)[1:] == [
        (2, 4, "launch", "K1"),
        (4, 20, "kernel", "K1"),
        (20, 30, "kernel", "K2"),
    ]


def test_a_kernel_inside_another_one_of_its_stream_is_a_side_branch():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("long", 4, 40, 1), kernel("in", 15, 30, 2)]
    assert path_of(events)[-1] == (4, 40, "kernel", "long")


def test_an_early_start_is_released_from_inside_the_running_kernel():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), launch(6, 8, 3)),
        *(kernel("K1", 4, 20, 1), kernel("K2", 15, 18, 2), kernel("K3", 19, 40, 3)),
    ]
    graph = build_graph(events)
    roles = {edge.role for edge in graph.edges}
    assert {Role.OVERLAP_INSIDE, Role.OVERLAP_TAIL} <= roles
    assert named(events, critical_path(graph))[-2:] == [
        (4, 20, "kernel", "K1"),
        (20, 40, "kernel", "K3"),
    ]


def test_an_overlapping_start_just_after_its_launch_needs_no_other_reason():
    events = [launch(0, 2, 1), launch(3, 14, 2), kernel("K1", 4, 20, 1), kernel("K2", 15, 18, 2)]
    roles = Counter(edge.role for edge in build_graph(events).edges)
    assert (roles[Role.STREAM_OVERLAP], roles[Role.OVERLAP_INSIDE]) == (1, 0)


def test_a_stream_number_means_nothing_without_its_device():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2)),
        kernel("K0", 4, 100, 1, device=0),
        kernel("K1", 120, 130, 2, device=1),
    ]
    assert path_of(events)[-2:] == [(5, 120, "unexplained", "K1"), (120, 130, "kernel", "K1")]


# Waits between streams.

TWO_STREAMS = [launch(0, 2, 1), launch(11, 13, 2)]


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
    graph = build_graph(events)
    assert [e.evidence for e in graph.edges if e.role is Role.EVENT_WAIT] == ["recorded"] * 2
    assert named(events, critical_path(graph))[-3:] == [
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
    graph = build_graph(events)
    assert [e.evidence for e in graph.edges if e.role is Role.EVENT_WAIT] == ["inferred"]
    assert named(events, critical_path(graph))[-2:] == [
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
    graph = build_graph(events)
    waiters = [edge.event.name for edge in graph.edges if edge.role is Role.EVENT_WAIT]
    assert waiters == ["with"]
    assert path_of(events)[-2:] == [(60, 70, "event_wait", "with"), (70, 80, "kernel", "with")]


def test_a_kernel_waits_for_the_device_another_stream_holds():
    events = [*TWO_STREAMS, kernel("holder", 4, 90, 1), kernel("K", 55, 99, 2, stream=8)]
    assert path_of(events)[-2:] == [(4, 55, "kernel", "holder"), (55, 99, "kernel", "K")]


def test_a_long_idle_stream_is_openly_unexplained():
    events = [launch(0, 2, 1), kernel("K1", 4, 10, 1), kernel("lost", 500, 510)]
    graph = build_graph(events)
    path = critical_path(graph)
    assert named(events, path)[-2:] == [
        (10, 500, "unexplained", "lost"),
        (500, 510, "kernel", "lost"),
    ]
    assert path.is_inconclusive


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
    graph = build_graph(events)
    assert named(events, critical_path(graph))[-2:] == [
        (4, 35, "kernel", "K"),
        (35, 40, "sync_return", "cudaStreamSynchronize"),
    ]
    assert critical_path(graph).inferred_ns == 0


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
    graph = build_graph(waiting_call("cudaStreamSynchronize", 40, record))
    assert graph.counts["unknown_sync"] == 1
    assert [edge.evidence for edge in graph.edges if edge.role is Role.SYNC] == ["inferred"]


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


def test_staging_pageable_memory_is_the_calls_own_work():
    name = "Memcpy HtoD (Pageable -> Device)"
    events = [
        *(launch(0, 2, 1), kernel("K", 4, 20, 1)),
        *(call("cudaMemcpyAsync", 5, 50, 2), copy(name, 21, 90, 2), operator("B", 50, 99)),
    ]
    assert path_of(events)[-3:] == [
        (20, 21, "kernel_delay", name),
        (21, 50, "runtime", "cudaMemcpyAsync"),
        (50, 99, "operator", "B"),
    ]


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


# Autograd.


def test_the_backward_thread_takes_over_and_hands_back():
    events = [
        annotation("ProfilerStep#1", 0, 100),
        operator("forward", 0, 10),
        *(operator(BACKWARD + "B", 15, 50, tid=2), operator(BACKWARD + "A", 52, 80, tid=2)),
        operator("optimizer", 84, 94),
    ]
    assert path_of(events) == [
        (0, 10, "operator", "forward"),
        (10, 15, "handover", "ProfilerStep#1"),
        (15, 50, "operator", BACKWARD + "B"),
        (50, 52, "host_gap", None),
        (52, 80, "operator", BACKWARD + "A"),
        (80, 84, "handover", "ProfilerStep#1"),
        (84, 94, "operator", "optimizer"),
    ]


def test_an_operator_waits_only_if_it_holds_all_of_the_backward_work():
    backward = operator(BACKWARD + "A", 15, 50, tid=2)
    holding = [operator("call", 10, 60), operator("next", 60, 70), backward]
    assert (15, 50, "operator", BACKWARD + "A") in path_of(holding)
    crossing = [operator("call", 10, 40), operator("next", 40, 70), backward]
    assert path_of(crossing) == [(10, 40, "operator", "call"), (40, 70, "operator", "next")]


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


def test_a_circle_of_no_length_loses_its_inferred_edge():
    points = Points(parse_trace([operator("A", 0, 0), operator("B", 0, 0)]).events)
    (a_start, a_end, b_start, b_end) = range(4)

    def edge(source, target, role, evidence):
        return Edge(source, target, Kind.RUNTIME, role, None, evidence)

    guess = edge(b_end, a_start, Role.SYNC, Evidence.INFERRED)
    order, cut = _without_circles(
        [
            edge(a_start, a_end, Role.THREAD_ORDER, Evidence.ORDER),
            edge(a_end, b_start, Role.LAUNCH, Evidence.CORRELATION),
            edge(b_start, b_end, Role.DEVICE_WORK, Evidence.ORDER),
            guess,
        ],
        points,
    )
    assert (order, cut) == ([a_start, a_end, b_start, b_end], [guess])


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
    assert path_of(events, between_ns=(5 * US, 20 * US)) == [
        (5, 10, "operator", "A"),
        (10, 15, "host_gap", None),
        (15, 20, "operator", "B"),
    ]


def test_beyond_the_first_and_last_event_nothing_is_known():
    events = [operator("A", 10, 20)]
    assert path_of(events, between_ns=(5 * US, 25 * US)) == [
        (5, 10, "before_first_event", None),
        (10, 20, "operator", "A"),
        (20, 25, "after_last_event", None),
    ]


def test_a_helper_thread_never_ends_the_trace():
    events = [operator("A", 0, 10), operator("B", 10, 20), operator("watchdog", 0, 999, tid=5)]
    assert path_of(events)[-1] == (10, 20, "operator", "B")


@pytest.mark.parametrize("window", [{"step": 7}, {"annotation": "fit"}, {"between_ns": (5, 6)}])
def test_a_window_that_is_not_there_is_an_error_in_words(window):
    graph = build_graph([operator("A", 10, 20)])
    with pytest.raises(ValueError, match=r"no |annotations 'fit'"):
        find_window(graph, **window)


# Slack, waits, what-if.

OVERLAPPED = [
    *(launch(0, 2, 1), launch(3, 5, 2), call("cudaDeviceSynchronize", 10, 40)),
    *(kernel("long", 4, 35, 1), kernel("short", 7, 18, 2, stream=8), operator("after", 40, 45)),
    operator("elsewhere", 0, 3, tid=5),
]


def test_slack_is_what_an_event_may_be_late_and_null_where_nothing_follows():
    events = [launch(0, 2, 1), kernel("K", 4, 30, 1), operator("A", 2, 22), operator("x", 0, 1, 5)]
    graph = build_graph(events)
    assert slack(graph, find_window(graph)) == {0: 0, 1: 0, 2: None, 3: None}
    joined = [*events, call("cudaDeviceSynchronize", 22, 32)]
    graph = build_graph(joined)
    assert slack(graph, find_window(graph))[2] == 8 * US


def test_waits_are_listed_with_their_evidence():
    graph = build_graph(OVERLAPPED)
    (sync,) = sync_dependencies(graph, critical_path(graph))
    assert (sync.source.name, sync.target.name) == ("long", "cudaDeviceSynchronize")
    assert (sync.kind, sync.evidence) == ("sync_return", "inferred")
    assert sync.waited
    assert sync.on_path


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
        ([Detach(kind="sync_return")], 35),
        ([Detach(matching="StreamSync")], 45),
        ([Drop(kind="host_gap")], 45),
    ],
)
def test_what_if(changes, makespan):
    assert makespan_us(OVERLAPPED, *changes) == makespan


def test_what_if_names_the_new_long_pole():
    graph = build_graph(OVERLAPPED)
    changed = what_if(graph, find_window(graph), [Drop(matching="long")])
    assert named(OVERLAPPED, changed.critical_path)[-2:] == [
        (10, 15, "runtime", "cudaDeviceSynchronize"),
        (15, 20, "operator", "after"),
    ]


def test_a_launch_that_did_not_bind_is_assumed_to_be_as_quick_as_those_that_did():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("K1", 4, 60, 1), kernel("K2", 61, 70, 2)]
    assert makespan_us(events, Drop(matching="K1")) == 5 + 2 + 9


def test_the_tail_of_an_overlapped_kernel_keeps_its_length():
    events = [launch(0, 2, 1), launch(3, 5, 2), kernel("K1", 4, 20, 1), kernel("K2", 15, 30, 2)]
    assert makespan_us(events, Scale(matching="K1", by=0.5)) == 22


# The same on shared and on real traces.


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def test_the_shared_cases():
    cases = json.loads(shared("path_cases.json").read_text())
    for case in cases:
        graph = build_graph(case["traceEvents"])
        window = find_window(graph, **case.get("options", {}))
        segments = [
            {"start": s.start_ns / US, "end": s.end_ns / US, "kind": s.kind, "row": s.row}
            for s in critical_path(graph, window).segments
        ]
        assert segments == case["expect_us"], case["name"]
        for question in case.get("what_if", []):
            makespan_ns = what_if(graph, window, changes_of(question)).makespan_ns
            # The cases were written down in whole microseconds, the rest cut off.
            assert makespan_ns // US == int(question["makespan_us"]), case["name"]
    assert len(cases) == 21


def changes_of(question):
    changes = []
    if question["drop_sync"]:
        changes.append(Detach(kind="sync_return"))
    if question["zero_launch"]:
        changes.append(Drop(kind="launch"))
    if question["scale"]:
        matching, by = question["scale"]
        changes.append(Scale(matching=matching, by=Fraction(by)))
    return changes


def windows_of(graph):
    """Give the whole trace, and every step with every end it has."""
    windows = [find_window(graph)]
    steps = {e.name for e in graph.trace.events if e.name.startswith("ProfilerStep#")}
    for step in sorted(steps):
        windows += [find_window(graph, step=step, end=end) for end in ("period", "last", "cpu")]
    return windows


@pytest.mark.parametrize("file", real_traces(500_000))
def test_real_traces(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    events = read_events(file)
    graph = build_graph(events)
    windows = windows_of(graph)
    for window in windows:
        assert_tiled(critical_path(graph, window))
        unchanged = what_if(graph, window)
        assert unchanged.makespan_ns == window.end_ns - window.start_ns
        assert unchanged.critical_path.segments == critical_path(graph, window).segments
    assert all(late is None or late >= 0 for late in slack(graph, windows[0]).values())
    assert_same_in_any_order(events, windows)


def assert_tiled(path):
    if path.segments:
        assert path.segments[0].start_ns == path.window.start_ns
        assert path.segments[-1].end_ns == path.window.end_ns
    assert all(left.end_ns == right.start_ns for left, right in pairwise(path.segments))
    assert path.length_ns == path.window.end_ns - path.window.start_ns


def assert_same_in_any_order(events, windows):
    rows = random.Random(1).sample(range(len(events)), len(events))  # noqa: S311
    shuffled = build_graph([events[row] for row in rows])
    original = build_graph(events)
    for window, again in zip(windows, windows_of(shuffled), strict=True):
        moved = [
            s if s.row is None else s._replace(row=rows[s.row])
            for s in critical_path(shuffled, again).segments
        ]
        assert contents(events, moved) == contents(events, critical_path(original, window).segments)


def contents(events, segments):
    """Replace rows by what stands there: identical events may change places."""
    return [
        (
            *s[:3],
            s.evidence,
            None if s.row is None else (events[s.row]["name"], events[s.row]["ts"]),
        )
        for s in segments
    ]
