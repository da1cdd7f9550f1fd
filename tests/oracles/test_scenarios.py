"""Scenarios of the simulator: what they plant happens, and what they hide is not written."""

import json
from collections import Counter
from itertools import pairwise

import pytest

from oracles.simulator import Machine, simulate
from oracles.simulator.kinds import Kind
from oracles.simulator.losses import Losses
from oracles.simulator.program import (
    Busy,
    Get,
    Joint,
    Launch,
    Node,
    Poll,
    Program,
    Put,
    RecordEvent,
    Replay,
    Start,
    StartRecording,
    Stream,
    Synchronize,
    Work,
    operator,
)
from oracles.simulator.scenarios import SCENARIOS, run_scenario

EXACT = Machine(
    spread=0,
    launch_latency_ns=5_000,
    kernel_gap_ns=1_000,
    event_latency_ns=2_000,
    return_latency_ns=3_000,
    handover_ns=10_000,
)
COMPUTE, SIDE = Stream(0, 7), Stream(0, 20)


def work(name, duration_ns):
    return Work("kernel", name, duration_ns)


def kernel(name, duration_ns, stream=COMPUTE):
    return Launch((work(name, duration_ns),), stream, nominal_ns=4_000)


def chain(*items, helpers=(), losses=None, **more):
    """Run a program and return its true path as (kind, duration in us, name)."""
    run = simulate(Program("small", items, helpers, **more), machine=EXACT, losses=losses)
    return [
        (s.kind, (s.end_ns - s.start_ns) / 1_000, s.activity.name if s.activity else None)
        for s in run.truth.window("trace").segments
    ]


# What each new item plants


def test_a_node_begins_after_those_it_depends_on_and_the_next_work_after_all_nodes():
    nodes = (
        Node(work("root", 10_000), COMPUTE),
        Node(work("long", 50_000), SIDE, (0,)),
        Node(work("short", 5_000), COMPUTE),
        Node(work("join", 8_000), COMPUTE, (1,)),
        Node(work("late", 30_000), SIDE, (2,)),
    )
    assert chain(Replay(nodes, COMPUTE, nominal_ns=6_000), kernel("next", 9_000)) == [
        ("runtime", 6, "cudaGraphLaunch"),
        ("launch", 5, "root"),
        ("kernel", 10, "root"),
        ("event_wait", 2, "long"),
        ("kernel", 50, "long"),
        ("kernel_delay", 1, "late"),
        ("kernel", 30, "late"),
        ("kernel_delay", 1, "next"),
        ("kernel", 9, "next"),
    ]


def test_a_joint_collective_ends_after_the_last_device_began():
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    parts = tuple(Launch((work(name, 20_000),), Stream(device, 20)) for device in range(2))
    first, second = operator("slow", Busy(90_000)), kernel("K", 70_000, Stream(1, 20))
    run = simulate(Program("joint", (second, Joint(parts), first), n_devices=2), machine=EXACT)
    ends = [one.end.time_ns for one in run.timeline.activities if one.name == name]
    starts = [one.start.time_ns for one in run.timeline.activities if one.name == name]
    assert starts[1] - starts[0] > 20_000
    assert min(ends) >= max(starts) + 20_000
    (late,) = [one for one in run.timeline.activities if one.name == name and one.lane[0] == 0]
    assert late.end.binding().kind == Kind.COMMUNICATION
    assert late.end.binding().activity.lane == Stream(1, 20)


def test_who_takes_from_an_empty_queue_goes_on_after_who_fills_it():
    loader = (operator("load", Busy(50_000)), Put(0, wake_ns=7_000))
    early = operator("early", Busy(1_000))
    assert chain(early, Get(0), operator("use", Busy(5_000)), helpers=(loader,)) == [
        ("operator", 50, "load"),
        ("handover", 7, None),
        ("operator", 5, "use"),
    ]


def test_who_fills_a_full_queue_goes_on_after_who_empties_it():
    slow = (operator("early", Busy(1_000)), operator("slow", Busy(60_000)), Get(0, wake_ns=4_000))
    puts = (operator("make", Busy(2_000)), Put(0, 1), operator("make", Busy(2_000)), Put(0, 1))
    assert chain(*puts, operator("last", Busy(9_000)), helpers=(slow,)) == [
        ("operator", 1, "early"),
        ("operator", 60, "slow"),
        ("handover", 4, None),
        ("operator", 9, "last"),
    ]


def test_a_loop_that_polls_waits_for_the_device():
    body = (kernel("K", 50_000), RecordEvent(1, COMPUTE), Poll(1, rest_ns=300))
    path = chain(*body, operator("after", Busy(6_000)))
    assert path[:3] == [
        ("runtime", 4, "cudaLaunchKernel"),
        ("launch", 5, "K"),
        ("kernel", 50, "K"),
    ]
    kind, lag_us, name = path[3]
    assert (kind, name) == ("sync_return", "cudaEventQuery")
    assert 0.9 <= lag_us <= 2.1
    assert path[4:] == [("operator", 6, "after")]


def test_a_thread_that_starts_late_follows_who_started_it():
    helper = (operator("work", Busy(3_000)), kernel("K", 80_000), operator("rest", Busy(1_000)))
    main = (operator("ones_like", Busy(5_000)), Start(0, 40_000), Busy(99_000), Synchronize())
    assert chain(*main, helpers=(helper,), late_helpers=frozenset({0})) == [
        ("operator", 5, "ones_like"),
        ("handover", 40, None),
        ("operator", 3, "work"),
        ("runtime", 4, "cudaLaunchKernel"),
        ("launch", 5, "K"),
        ("kernel", 80, "K"),
        ("sync_return", 3, "cudaDeviceSynchronize"),
    ]


def test_the_legacy_stream_waits_for_all_others_and_they_for_it():
    body = (kernel("side", 50_000, SIDE), kernel("legacy", 10_000), kernel("after", 9_000, SIDE))
    path = chain(*body, legacy_stream=7)
    assert path[2:] == [
        ("kernel", 50, "side"),
        ("event_wait", 2, "legacy"),
        ("kernel", 10, "legacy"),
        ("event_wait", 2, "after"),
        ("kernel", 9, "after"),
    ]


# What is not recorded


def test_work_launched_before_the_recording_has_no_call():
    body = [operator("before", Busy(2_000), kernel("old", 50_000)), StartRecording()]
    body += [operator("after", Busy(30_000), kernel("new", 7_000))]
    run = simulate(Program("late", tuple(body)), machine=EXACT)
    events = [event for event in run.events if event["ph"] == "X"]
    numbers = {e["name"]: e["args"].get("correlation") for e in events if e["cat"] == "kernel"}
    calls = [e["args"]["correlation"] for e in events if e["cat"] == "cuda_runtime"]
    assert set(numbers) == {"old", "new"}
    assert calls == [numbers["new"]]
    assert "before" not in {event["name"] for event in events}
    assert run.truth.window("trace").start_ns == run.timeline.recorded_from_ns


@pytest.mark.parametrize(
    ("losses", "lost"),
    [
        (Losses(launches=1), "cudaLaunchKernel"),
        (Losses(kernels=1), "K"),
        (Losses(buffer=(0.0, 1.1)), "K"),
        (Losses(graph_nodes=1), "node"),
        (Losses(hidden_nodes=1), "node"),
    ],
)
def test_only_what_is_lost_is_missing(losses, lost):
    graph = Replay((Node(work("node", 5_000), COMPUTE), Node(work("node", 5_000), SIDE)), COMPUTE)
    program = Program("lossy", (operator("mm", kernel("K", 9_000), graph), Synchronize()))
    runs = [simulate(program, machine=EXACT, losses=some) for some in (None, losses)]
    whole, lossy = (Counter(e["name"] for e in r.events if e["ph"] == "X") for r in runs)
    missing = whole - lossy
    assert lost in missing
    assert set(missing) <= ({"K", "node"} if losses.buffer else {lost})
    ends = [run.truth.window("trace").end_ns for run in runs]
    assert ends[0] == ends[1]


def test_other_nodes_are_lost_in_every_replay_but_the_same_are_hidden():
    nodes = tuple(Node(work(f"n{number}", 2_000), COMPUTE) for number in range(40))
    program = Program("replays", (operator("mm", *[Replay(nodes, COMPUTE)] * 2), Synchronize()))

    def seen(losses):
        run = simulate(program, machine=EXACT, losses=losses)
        calls = [one for one in run.timeline.activities if one.name == "cudaGraphLaunch"]
        return [[one.name for one in call.works if one.is_recorded] for call in calls]

    first, second = seen(Losses(hidden_nodes=0.3))
    assert first == second
    assert 0 < len(first) < 40
    first, second = seen(Losses(graph_nodes=0.3))
    assert first != second


def test_the_truth_tells_how_far_the_clocks_are_apart():
    run = run_scenario("clocks of two devices apart", 1)
    assert run.truth.clock_offsets_ns == (40_000, -25_000)
    for one in run.timeline.activities:
        if one.is_work:
            written = run.events[run.truth.position(one)]["start_ns"]
            assert written - one.start.time_ns == run.truth.clock_offsets_ns[one.lane.device]


# Every scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_segments_tile_every_window_of_a_scenario(name):
    for seed in range(2):
        windows = run_scenario(name, seed).truth.windows
        assert windows
        for window in windows:
            borders = [(s.start_ns, s.end_ns) for s in window.segments]
            assert borders[0][0] == window.start_ns
            assert borders[-1][1] == window.end_ns
            assert all(start < end for start, end in borders)
            assert all(one[1] == other[0] for one, other in pairwise(borders))


@pytest.mark.parametrize("name", SCENARIOS)
def test_in_a_scenario_nothing_happens_before_its_causes(name):
    for seed in range(2):
        run = run_scenario(name, seed)
        for activity in run.timeline.activities:
            for moment in (activity.start, activity.end):
                assert all(cause.source.time_ns <= moment.time_ns for cause in moment.causes)
            if activity.is_work:
                assert activity.start.time_ns > activity.launched_by.start.time_ns
        for wait in run.truth.waits:
            if wait.awaited is not None and wait.waited_ns > 0:
                goes_on = wait.waiter.start if wait.waiter.is_work else wait.waiter.end
                assert goes_on.time_ns > wait.awaited.end.time_ns


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_gives_the_same_run_for_the_same_seed(name):
    runs = [run_scenario(name, seed) for seed in (3, 3, 4)]
    first, again, other = (json.dumps(run.events) + json.dumps(run.truth.to_json()) for run in runs)
    assert first == again != other


@pytest.mark.parametrize("name", SCENARIOS)
def test_threads_never_go_back_in_time(name):
    run = run_scenario(name, 0)
    on_thread = {}
    for activity in run.timeline.activities:
        if not activity.is_work:
            on_thread.setdefault(activity.lane, []).append(activity)
    for activities in on_thread.values():
        starts = [one.start.time_ns for one in activities]
        assert starts == sorted(starts)
        for one in activities:
            parent = one.parent
            assert parent is None or parent.end.time_ns >= one.end.time_ns


def kinds_on_paths(name):
    runs = [run_scenario(name, seed) for seed in range(3)]
    return {s.kind for run in runs for window in run.truth.windows for s in window.segments}


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("graph, 4 streams, 10", "event_wait"),
        ("joint", "communication"),
        ("late", "handover"),
        ("queue", "handover"),
        ("polling", "sync_return"),
        ("devices", "event_wait"),
    ],
)
def test_what_a_scenario_is_about_lies_on_its_paths(part, kind):
    for name in (name for name in SCENARIOS if part in name):
        assert kind in kinds_on_paths(name)
