"""The critical path's definition, rule by rule: threads, launches and streams.

Each test is a tiny trace and the path it must give, in microseconds.
"""

import random

import pytest
from path_rules import graph_of

import longpole
from tiny_traces import (
    BACKWARD,
    annotation,
    arrow,
    call,
    copy,
    frame,
    kernel,
    launch,
    operator,
    path_of,
)

# Times and events.


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        *(("1.0005", 1000), ("1.0015", 1002), ("1e3", 1_000_000)),
        ("1712195495519695.8123", 1712195495519695812),
    ],
)
def test_times_are_exact_and_round_half_to_even(text, ns):
    event = (
        f'{{"ph": "X", "cat": "cpu_op", "name": "A", "pid": 1, "tid": 1, "ts": {text}, "dur": 1}}'
    )
    assert longpole.read_trace(f"[{event}]".encode()).window[0] == ns


def test_an_event_of_negative_duration_is_dropped_and_counted():
    events = [operator("A", 0, 10), operator("broken", 5, 3)]
    assert path_of(events) == [(0, 10, "operator", "A")]
    assert graph_of(events).counts["negative_duration"] == 1


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
    renumbered = [
        {**event, "pid": numbers[event["pid"]], "tid": numbers[event["tid"]]} for event in events
    ]
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
    assert graph_of(events).counts["crossing"] == 1


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
    graph = graph_of(events)
    assert path_of(events) == [
        (0, 6, "operator", "A"),
        (6, 8, "clock_skew", "K"),
        (8, 30, "kernel", "K"),
    ]
    assert [edge.role for edge in graph.violations] == ["launch"]
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
    assert {"overlap_inside", "overlap_tail"} <= graph_of(events).roles().keys()
    assert path_of(events)[-2:] == [
        (4, 20, "kernel", "K1"),
        (20, 40, "kernel", "K3"),
    ]


def test_an_overlapping_start_just_after_its_launch_needs_no_other_reason():
    events = [launch(0, 2, 1), launch(3, 14, 2), kernel("K1", 4, 20, 1), kernel("K2", 15, 18, 2)]
    roles = graph_of(events).roles()
    assert (roles["stream_overlap"], roles["overlap_inside"]) == (1, 0)


def test_a_stream_number_means_nothing_without_its_device():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2)),
        kernel("K0", 4, 100, 1, device=0),
        kernel("K1", 120, 130, 2, device=1),
    ]
    assert path_of(events)[-2:] == [(5, 120, "unexplained", "K1"), (120, 130, "kernel", "K1")]


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


@pytest.mark.parametrize(("one", "other"), [(4, 5), (5, 4)])
def test_of_two_forward_threads_the_main_one_waits_whatever_its_number(one, other):
    events = [
        *(annotation("ProfilerStep#1", 0, 90, one), operator("forward", 0, 10, one)),
        *(operator("beside", 0, 12, other), operator("backward", 15, 50, 6)),
        *(operator("optimizer", 60, 70, one), operator("more", 62, 65, other)),
        *arrow(5, 15, 1, from_thread=one, to_thread=6),
        *arrow(6, 15, 2, from_thread=other, to_thread=6),
    ]
    assert (15, 50, "operator", "backward") in path_of(events)


@pytest.mark.parametrize(("one", "other"), [(4, 5), (5, 4)])
def test_of_two_other_forward_threads_that_of_the_first_arrow_waits(one, other):
    events = [
        *(annotation("ProfilerStep#1", 0, 90, 1), operator("main", 0, 5, 1)),
        *(operator("first", 0, 10, one), operator("second", 0, 10, other)),
        *(operator("backward", 15, 50, 6), operator("next", 60, 70, one)),
        *(operator("soon", 12, 20, other), call("cudaLaunchKernel", 70, 72, 1, tid=one)),
        kernel("K", 74, 90, 1),
        *arrow(5, 15, 1, from_thread=one, to_thread=6),
        *arrow(6, 15, 2, from_thread=other, to_thread=6),
    ]
    assert (15, 50, "operator", "backward") in path_of(events)


def test_an_operator_waits_only_if_it_holds_all_of_the_backward_work():
    backward = operator(BACKWARD + "A", 15, 50, tid=2)
    holding = [operator("call", 10, 60), operator("next", 60, 70), backward]
    assert (15, 50, "operator", BACKWARD + "A") in path_of(holding)
    crossing = [operator("call", 10, 40), operator("next", 40, 70), backward]
    assert path_of(crossing) == [(10, 40, "operator", "call"), (40, 70, "operator", "next")]
