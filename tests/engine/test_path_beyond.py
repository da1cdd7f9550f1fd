"""Rules of the critical path that only longpole has: clocks, devices, graphs, queues, polling.

Each test is a tiny trace and the path it must give, in microseconds. How often the rules are right
is judged on simulated programs.
"""

from itertools import chain

from path_rules import graph_of

from tiny_traces import call, copy, frame, kernel, launch, operator, path_of, read, sync_record


def counts(events):
    return read(events).critical_path(whole=True).counts


def whole(events):
    return path_of(events, whole=True)


# Clocks


def launches(n, *, device_clock_us):
    """Launch kernels one after the other, each 6 us after its call began."""
    return [
        event
        for number in range(1, n + 1)
        for event in (
            launch(number * 100, number * 100 + 4, number),
            kernel(
                "K", number * 100 + 6 + device_clock_us, number * 100 + 40 + device_clock_us, number
            ),
        )
    ]


def test_three_kernels_before_their_calls_show_a_clock_that_is_behind():
    assert counts(launches(2, device_clock_us=-50))["clock_shifts"] == 0
    path = read(launches(3, device_clock_us=-50)).critical_path(whole=True)
    assert (path.counts["clock_shifts"], path.counts["clock_skew"]) == (1, 0)
    first = path.segments.filter(path.segments["kind"].cast(str) == "kernel").row(0, named=True)
    assert first["start_ns"] == 304_000


def test_launches_that_take_longer_than_on_another_device_show_a_clock_that_is_ahead():
    def on(device, late_us):
        starts = [100 * n + 50 * device for n in range(1, 5)]
        return [
            event
            for start in starts
            for event in (
                launch(start, start + 4, start),
                kernel("K", start + late_us, start + late_us + 9, start, device=device),
            )
        ]

    assert counts([*on(0, 6), *on(1, 9)])["clock_shifts"] == 0
    path = read([*on(0, 6), *on(1, 46)]).critical_path(whole=True)
    assert path.clock_shifts == ((1, None, -40_000),)


def test_clocks_that_agree_are_left_alone():
    assert counts(launches(9, device_clock_us=0))["clock_shifts"] == 0


def behind(*others):
    """Launch on a device whose clock lags 50 us, 2 us after each call: launches show 52 us."""
    return [
        event
        for number in range(1, 5)
        for event in (
            launch(number * 200, number * 200 + 4, number),
            kernel("K", number * 200 - 48, number * 200 - 8, number, device=1),
            *(event for other in others for event in other(number)),
        )
    ]


def beside(number):
    """Launch on another device, whose clock is right."""
    start, correlation = number * 200 + 100, 10 + number
    return [
        launch(start, start + 3, correlation),
        kernel("K", start + 4, start + 9, correlation, device=0),
    ]


def synchronize(number):
    """Wait for the device whose work ends 2 us before that is over."""
    return [call("cudaDeviceSynchronize", number * 200 + 5, number * 200 + 44)]


def waiting(delay_us):
    """Make the other device wait for the end of that work, and start this long after it."""

    def both(number):
        start, correlation = number * 200, 10 + number
        end = start + 42 + delay_us
        return [
            call("cudaEventRecord", start + 5, start + 6),
            call("cudaStreamWaitEvent", start + 7, start + 8),
            launch(start + 9, start + 12, correlation),
            kernel("K", end, end + 9, correlation, device=0),
        ]

    return both


def test_calls_that_return_too_soon_move_a_clock_back():
    assert shifts_of(behind(beside)) == ((1, 52_000),)
    assert shifts_of(behind(beside, synchronize)) == ((1, 50_000),)


def test_work_of_another_device_that_starts_too_soon_after_what_it_waits_for_moves_a_clock_back():
    assert shifts_of(behind(waiting(1))) == ((1, 50_000),)
    assert shifts_of(behind(waiting(9))) == ((1, 52_000),)
    assert shifts_of(behind(waiting(-20))) == ((1, 52_000),)


def awaited(delay_us):
    """Launch on a device, and let another one start so long after the end of that work."""
    return [
        event
        for number in range(1, 5)
        for event in (
            launch(number * 200, number * 200 + 4, number),
            kernel("K", number * 200 + 9, number * 200 + 42, number, device=1),
            *waiting(delay_us)(number),
        )
    ]


def returning(device, late_us):
    """Copy to the host on a device, in a call that returns so long after the copy."""
    return [
        call("cudaMemcpyAsync", 1900, 1930, 99),
        copy("Memcpy DtoH (Device -> Pageable)", 1915, 1930 - late_us, 99, device=device),
    ]


def test_starts_before_the_end_of_what_they_wait_for_move_clocks_that_nothing_else_speaks_against():
    assert shifts_of(awaited(2)) == ()
    assert shifts_of(awaited(-20)) == ()
    assert shifts_of(awaited(-4)) == ((1, -2_500), (0, 2_500))


def test_calls_that_waited_decide_which_of_two_clocks_is_moved():
    assert shifts_of([*awaited(-4), *returning(0, 9)]) == ((0, 5_000),)
    assert shifts_of([*awaited(-4), *returning(0, 2)]) == ((1, -5_000),)
    assert shifts_of([*awaited(-4), *returning(1, 0)]) == ((1, -2_000), (0, 3_000))


def shifts_of(events):
    graph_of(events)
    shifts = read(events).critical_path(whole=True).clock_shifts
    return tuple((device, shift_ns) for device, _, shift_ns in shifts)


# Lost work


def test_a_wait_for_nothing_that_was_recorded_is_unrecorded():
    events = [
        *(launch(0, 2, 1), kernel("K", 4, 20, 1), call("cudaDeviceSynchronize", 10, 120)),
        *(launch(121, 123, 2), kernel("L", 125, 900, 2)),
    ]
    assert counts(events)["unrecorded_waits"] == 1
    assert whole(events)[3] == (20, 120, "unrecorded", "cudaDeviceSynchronize")


def test_a_copy_without_its_copy_is_unrecorded_and_a_memset_is_not():
    events = [launch(0, 2, 1), kernel("K", 4, 20, 1)]
    lost = [*events, call("cudaMemcpyAsync", 10, 40, 7)]
    assert (counts(lost)["missing_activities"], counts(lost)["unrecorded_waits"]) == (1, 1)
    memset = [*events, call("cudaMemsetAsync", 10, 40, 7)]
    assert (counts(memset)["missing_activities"], counts(memset)["unrecorded_waits"]) == (0, 0)


# Devices


def test_a_collective_of_two_devices_ends_after_the_last_has_begun():
    name = "ncclDevKernel_AllReduce"
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), launch(6, 8, 3)),
        kernel(name, 6, 100, 1, device=0),
        kernel("slow", 7, 80, 2, device=1),
        kernel(name, 81, 99, 3, device=1),
    ]
    assert counts(events)["joint_collectives"] == 1
    assert whole(events)[-3:] == [
        (7, 80, "kernel", "slow"),
        (80, 81, "kernel_delay", name),
        (81, 100, "communication", name),
    ]


def test_a_device_synchronise_means_the_device_that_fell_idle_last():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), call("cudaDeviceSynchronize", 6, 60)),
        kernel("waited for", 4, 57, 1, device=0),
        kernel("goes on", 7, 90, 2, device=1),
        operator("after", 61, 200),
    ]
    assert whole(events)[-4:] == [
        (4, 57, "kernel", "waited for"),
        (57, 60, "sync_return", "cudaDeviceSynchronize"),
        (60, 61, "host_gap", None),
        (61, 200, "operator", "after"),
    ]


# Graphs


def replay(start, number, *, lag):
    """Launch A on one stream, then B on another, which waits for it."""
    return [
        call("cudaGraphLaunch", start, start + 5, number),
        kernel("A", start + 8, start + 30, number, stream=7),
        kernel("first", start + 9, start + 12, number, stream=8),
        kernel("B", start + 30 + lag, start + 60, number, stream=8),
    ]


def test_a_node_of_one_launch_waits_for_what_ended_just_before():
    assert whole(replay(0, 1, lag=1))[-3:] == [
        (8, 30, "kernel", "A"),
        (30, 31, "event_wait", "B"),
        (31, 60, "kernel", "B"),
    ]


def test_what_a_node_waits_for_is_learned_from_three_replays():
    events = list(chain(*(replay(100 * n, n + 1, lag=1 + n / 2) for n in range(3))))
    path = read(events).critical_path(whole=True)
    waits = path.edges.filter(path.edges["kind"].cast(str) == "event_wait")
    assert waits["evidence"].to_list() == ["replayed"] * 3
    last = path.segments.row(-2, named=True)
    assert (last["kind"], last["certainty"]) == ("event_wait", "certain")


def test_the_next_work_of_a_stream_waits_for_all_of_a_graph():
    events = [*replay(0, 1, lag=1), launch(20, 22, 2), kernel("next", 62, 80, 2, stream=7)]
    assert whole(events)[-3:] == [
        (31, 60, "kernel", "B"),
        (60, 62, "kernel_delay", "next"),
        (62, 80, "kernel", "next"),
    ]


def chained(start, number, *, lost=""):
    """Launch four kernels on one stream, but for the lost ones."""
    spans = {"A": (8, 30), "B": (31, 38), "C": (39, 60), "D": (61, 70)}
    kept = (name for name in spans if name not in lost)
    works = (kernel(name, *(start + at for at in spans[name]), number) for name in kept)
    return [call("cudaGraphLaunch", start, start + 5, number), *works]


def test_a_node_that_other_launches_have_is_lost_and_what_follows_waited_for_it():
    launches = [chained(100 * n, n + 1, lost="B" if n == 3 else "") for n in range(4)]
    path = read(list(chain(*launches))).critical_path(whole=True)
    assert path.counts["missing_nodes"] == 1
    assert (330, 339, "unrecorded", "C") in whole(list(chain(*launches)))


def test_a_launch_without_room_for_a_node_is_of_another_graph():
    other = [
        call("cudaGraphLaunch", 400, 405, 5),
        *(kernel("A", 408, 430, 5), kernel("C", 431, 452, 5), kernel("D", 453, 462, 5)),
    ]
    events = list(chain(*(chained(100 * n, n + 1) for n in range(4)), other))
    assert counts(events)["missing_nodes"] == 0


# Launches that are missing


def test_work_without_a_launcher_that_starts_late_follows_the_thread_that_launches():
    events = [
        *(launch(0, 2, 1), kernel("K", 4, 20, 1), operator("slow", 3, 60)),
        *(operator("lost", 60, 70), kernel("orphan", 72, 90, 99)),
        *(launch(80, 82, 2), kernel("next", 91, 300, 2)),
    ]
    path = whole(events)
    assert path[-5:] == [
        (3, 60, "operator", "slow"),
        (60, 72, "operator", "lost"),
        (72, 90, "kernel", "orphan"),
        (90, 91, "kernel_delay", "next"),
        (91, 300, "kernel", "next"),
    ]


def test_work_without_a_launcher_never_found_the_device_occupied():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), kernel("K", 4, 20, 1, stream=7)),
        kernel("busy", 8, 200, 2, stream=8),
        kernel("orphan", 60, 300, 99, stream=7),
    ]
    assert (20, 60, "unexplained", "orphan") in whole(events)


def test_a_late_start_behind_a_launch_without_work_is_unrecorded():
    events = [
        *(launch(0, 2, 1), launch(3, 5, 2), launch(6, 8, 3)),
        *(kernel("K", 4, 20, 1), kernel("next", 60, 900, 3)),
    ]
    assert whole(events)[-3:] == [
        (4, 20, "kernel", "K"),
        (20, 60, "unrecorded", "next"),
        (60, 900, "kernel", "next"),
    ]
    assert counts(events)["missing_activities"] == 1


def allocation(start, *, correlation, work_end):
    return [
        *(launch(start, start + 2, correlation), call("cudaMalloc", start + 3, start + 40)),
        kernel("K", start + 4, start + work_end, correlation),
    ]


def test_allocations_that_return_while_work_goes_on_never_wait():
    waits = allocation(0, correlation=1, work_end=38)
    assert (38, 40, "sync_return", "cudaMalloc") in whole([*waits, operator("end", 41, 99)])
    never = [*waits, operator("end", 41, 99), *allocation(100, correlation=2, work_end=90)]
    assert (3, 40, "runtime", "cudaMalloc") in whole([*never, operator("last", 141, 400)])


# Threads


def test_a_thread_means_its_own_streams_when_several_launch():
    events = [
        *(launch(0, 2, 1), launch(0, 2, 2, tid=2)),
        *(kernel("own", 4, 45, 1), kernel("other", 5, 48, 2, stream=9)),
        *(call("cudaStreamSynchronize", 10, 50), operator("after", 51, 99)),
    ]
    assert (4, 45, "kernel", "own") in whole(events)


def test_a_thread_begins_after_what_the_main_thread_did_last():
    events = [
        *(operator("main", 0, 50), operator("more", 60, 70), operator("main ends", 390, 400)),
        *(operator("helper", 150, 300, tid=2), launch(301, 303, 1, tid=2)),
        kernel("K", 310, 900, 1),
    ]
    assert counts(events)["thread_starts"] == 1
    assert whole(events)[:5] == [
        (0, 50, "operator", "main"),
        (50, 60, "host_gap", None),
        (60, 70, "operator", "more"),
        (70, 150, "handover", None),
        (150, 300, "operator", "helper"),
    ]


def consumer(n, *, lag_us):
    """Make a thread work whenever another one has made a batch, which takes 100 to 172 us."""
    events, made = [], 0
    for number in range(n):
        started, made = made, made + 100 + (number * 37) % 73
        events += [frame("make", started + 1, made, tid=2)]
        events += [operator("use", made + lag_us, made + lag_us + 20)]
    return events


def test_gaps_that_end_after_a_batch_was_made_wait_for_it():
    events = [operator("setup", -40, -30), *consumer(12, lag_us=6)]
    assert counts(events)["queue_waits"] == 12
    kinds = [(kind, name) for _, _, kind, name in whole(events)]
    assert kinds[-3:] == [("host_gap", "make"), ("handover", None), ("operator", "use")]


def test_a_queue_serves_who_waited_longest():
    """Two ends before the end of a gap: the first of them woke the thread."""
    events = [operator("setup", -40, -30), *consumer(12, lag_us=60)]
    last_end = max(event["ts"] + event["dur"] for event in events if event["name"] == "make")
    late = [frame("make", 1, 2, tid=3), frame("make", last_end - 5, last_end + 30, tid=3)]
    path = whole([*events, *late, operator("end", last_end + 85, last_end + 400)])
    assert (last_end, last_end + 60, "handover", None) in path


def slow_consumer(n, *, takes_more=0):
    """Wake a thread 70 to 109 us after a batch is made; every other time it finds one more.

    It may take more batches than are made: then it does not wait for them.
    """
    events, made = [operator("setup", -90, -80)], 0
    for number in range(n):
        made += 260
        woken = made + 70 + number * 17 % 40
        events += [frame("make", made - 120, made, tid=2), operator("use", woken, woken + 20)]
        if number % 2:
            events += [frame("make", made - 90, made + 60, tid=3)]
        for more in range(number % 2 + takes_more):
            events += [operator("use", woken + 21 + 5 * more, woken + 25 + 5 * more)]
    return events


def test_few_gaps_are_a_queue_where_as_many_are_taken_as_made():
    assert counts(slow_consumer(7))["queue_waits"] == 7
    assert counts(slow_consumer(7, takes_more=1))["queue_waits"] == 0


def test_a_few_gaps_are_no_queue():
    assert counts([operator("setup", -40, -30), *consumer(4, lag_us=6)])["queue_waits"] == 0


def polling(*, until, every=10):
    queries = range(10, until + 1, every)
    return [
        *(launch(0, 2, 1), kernel("K", 5, until - 2, 1), operator("after", until + 5, until + 50)),
        *(call("cudaEventQuery", start, start + 2) for start in queries),
    ]


def test_a_loop_of_queries_is_one_wait():
    events = polling(until=100)
    assert counts(events)["polling_loops"] == 1
    assert whole(events)[2:5] == [
        (5, 98, "kernel", "K"),
        (98, 102, "sync_return", "cudaEventQuery"),
        (102, 105, "host_gap", None),
    ]


def test_a_short_run_of_queries_is_no_wait():
    assert counts(polling(until=20))["polling_loops"] == 0


def test_work_without_a_launcher_that_began_before_the_end_of_what_was_waited_for_did_not_wait():
    waits = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 3}
    events = [
        *(launch(0, 2, 1), call("cudaEventRecord", 3, 4, 3), launch(5, 6, 6)),
        *(call("cudaStreamWaitEvent", 8, 9, 5), launch(11, 13, 7)),
        sync_record("Stream Wait Event", 8, 5, 28, **waits),
        *(kernel("waited", 4, 50, 1, stream=20), kernel("first", 7, 8, 6, stream=28)),
        *(kernel("orphan", 9, 12, 99, stream=28), kernel("waiting", 51, 60, 7, stream=28)),
    ]
    assert whole(events)[-3:] == [
        (4, 50, "kernel", "waited"),
        (50, 51, "event_wait", "waiting"),
        (51, 60, "kernel", "waiting"),
    ]


# Lost calls of copies


def copied(memory, *, between=(), name="Memcpy DtoH (Device -> {})"):
    """Copy from or to a device within an operator, in a call that the profiler lost."""
    return [
        *(launch(0, 2, 1), kernel("K", 4, 20, 1), operator("aten::item", 3, 60)),
        *(copy(name.format(memory), 21, 50, 99), call("cudaFree", 53, 56)),
        *between,
    ]


def test_a_thread_waits_for_a_copy_to_pageable_memory_whose_call_is_lost():
    events = copied("Pageable")
    assert counts(events)["missing_copy_calls"] == 1
    assert whole(events)[-4:] == [
        (21, 50, "copy", "Memcpy DtoH (Device -> Pageable)"),
        (50, 53, "sync_return", "aten::item"),
        (53, 56, "runtime", "cudaFree"),
        (56, 60, "operator", "aten::item"),
    ]


def test_a_thread_waits_for_a_copy_from_pageable_memory_whose_call_is_lost():
    name = "Memcpy HtoD ({} -> Device)"
    assert counts(copied("Pageable", name=name))["missing_copy_calls"] == 1
    assert counts(copied("Pinned", name=name))["missing_copy_calls"] == 0


def test_nobody_waits_for_a_copy_to_pinned_memory_or_while_doing_other_things():
    assert counts(copied("Pinned"))["missing_copy_calls"] == 0
    busy = copied("Pageable", between=[operator("aten::mul", 30, 40)])
    assert counts(busy)["missing_copy_calls"] == 0
    in_a_call = copied("Pageable", between=[call("cudaMemcpy", 10, 53)])
    assert counts(in_a_call)["missing_copy_calls"] == 0
