"""The simulator of workloads: what it writes, and that what it says to be true is."""

import gzip
import json
from collections import Counter
from itertools import pairwise

import pytest

from oracles import simulator
from oracles.simulator import Drop, Losses, Machine, NoWait, Scale, large, simulate, write_large
from oracles.simulator.changes import Kind
from oracles.simulator.program import (
    Backward,
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
    WaitEvent,
    Work,
    annotation,
    operator,
)
from oracles.simulator.scenarios import SCENARIOS, run_scenario

SEEDS = range(150)
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


def segments(run):
    """Return the true path of the whole trace as (kind, duration in us, name)."""
    return [
        (s.kind, (s.end_ns - s.start_ns) / 1_000, s.activity.name if s.activity else None)
        for s in run.truth.window("trace").segments
    ]


def chain(*items, helpers=(), machine=EXACT, **more):
    """Run a program and return its true path."""
    return segments(simulate(Program("small", items, helpers, **more), machine=machine))


def assert_consistent(run):
    """Check what holds of every run: paths tile their windows, and causes come first."""
    assert run.truth.windows
    for window in run.truth.windows:
        at_ns = window.start_ns
        for segment in window.segments:
            assert segment.start_ns == at_ns < segment.end_ns
            at_ns = segment.end_ns
        assert at_ns == window.end_ns
    for activity in run.timeline.activities:
        for moment in (activity.start, activity.end):
            assert all(cause.source.time_ns <= moment.time_ns for cause in moment.causes)
        if activity.is_work:
            assert activity.start.time_ns > activity.launched_by.start.time_ns
    for wait in awaited(run):
        goes_on = wait.waiter.start if wait.waiter.is_work else wait.waiter.end
        assert goes_on.time_ns > wait.awaited.end.time_ns
    assert_nested(run)


def awaited(run):
    return [wait for wait in run.truth.waits if wait.awaited is not None and wait.waited_ns > 0]


def assert_nested(run):
    """Check that no thread goes back in time, and that what a frame calls ends within it."""
    on_thread = {}
    for activity in run.timeline.activities:
        if not activity.is_work:
            on_thread.setdefault(activity.lane, []).append(activity)
    for activities in on_thread.values():
        assert all(one.start.time_ns <= other.start.time_ns for one, other in pairwise(activities))
        for one in activities:
            assert one.parent is None or one.parent.end.time_ns >= one.end.time_ns


# Truth


def test_a_synchronised_stream_binds_the_host():
    program = Program(
        "sync",
        (
            operator("aten::mm", Busy(10_000), kernel("K", 50_000), Busy(2_000)),
            Synchronize(stream=COMPUTE, nominal_ns=4_000),
            operator("aten::add", Busy(6_000)),
        ),
    )
    run = simulate(program, machine=EXACT)
    assert segments(run) == [
        ("operator", 10, "aten::mm"),
        ("runtime", 4, "cudaLaunchKernel"),
        ("launch", 5, "K"),
        ("kernel", 50, "K"),
        ("sync_return", 3, "cudaStreamSynchronize"),
        ("operator", 6, "aten::add"),
    ]
    assert run.what_if([Scale("kernel", "^K$", by=0.5)]) == {"trace": 53_000}
    assert run.what_if([Drop("launch")]) == {"trace": 73_000}
    assert run.what_if([NoWait("sync_return")]) == {"trace": 69_000}


def test_a_stream_waits_for_an_event_of_another():
    first = operator("aten::mm", kernel("producer", 80_000, SIDE), RecordEvent(1, SIDE))
    second = operator("aten::add", WaitEvent(1, COMPUTE), kernel("waiter", 7_000))
    assert chain(first, second) == [
        ("runtime", 4, "cudaLaunchKernel"),
        ("launch", 5, "producer"),
        ("kernel", 80, "producer"),
        ("event_wait", 2, "waiter"),
        ("kernel", 7, "waiter"),
    ]


def test_backward_is_handed_over_and_back():
    gradient = operator("autograd::engine::evaluate_function: A", Busy(30_000))
    forward, optimizer = operator("forward", Busy(10_000)), operator("optimizer", Busy(5_000))
    assert chain(forward, Backward((gradient,)), optimizer) == [
        ("operator", 10, "forward"),
        ("handover", 10, None),
        ("operator", 30, "autograd::engine::evaluate_function: A"),
        ("handover", 10, None),
        ("operator", 5, "optimizer"),
    ]


def test_a_full_queue_holds_the_launch_call():
    machine = Machine(spread=0, queue_limit=4, queue_poll_ns=0, return_latency_ns=1_000)
    launches = [kernel(f"K{number}", 50_000) for number in range(6)]
    path = chain(*launches, operator("slow", Busy(900_000)), machine=machine)
    assert path[-2:] == [("queue_full", 1, "cudaLaunchKernel"), ("operator", 900, "slow")]


def test_a_step_ends_with_the_work_launched_in_it():
    steps = [
        annotation(f"ProfilerStep#{step}", kernel("K", 40_000), Busy(2_000), step=step)
        for step in range(2)
    ]
    run = simulate(Program("steps", tuple(steps)), machine=EXACT)
    assert [(w.name, w.duration_ns) for w in run.truth.windows] == [
        ("trace", 90_000),
        ("step 0", 49_000),
        ("step 1", 84_000),
        ("step 1 period", 41_000),
    ]


def test_what_is_true_of_random_runs_holds_together():
    seen, n_waits = set(), Counter()
    for seed in SEEDS:
        run = simulate("random", seed=seed)
        assert_consistent(run)
        assert_no_stream_overlaps(run)
        seen |= {s.kind for window in run.truth.windows for s in window.segments}
        n_waits.update(wait.kind for wait in awaited(run))
    assert seen == set(Kind)
    assert set(n_waits) == {Kind.EVENT_WAIT, Kind.SYNC_RETURN, Kind.QUEUE_FULL}
    assert min(n_waits.values()) > 10


def assert_no_stream_overlaps(run):
    works = [activity for activity in run.timeline.activities if activity.is_work]
    free_ns = Counter()
    for work in sorted(works, key=lambda work: work.start.time_ns):
        assert work.start.time_ns >= free_ns[work.lane]
        free_ns[work.lane] = work.end.time_ns


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_holds_together_and_is_the_same_for_the_same_seed(name):
    runs = [run_scenario(name, seed) for seed in (0, 0, 1)]
    first, again, other = (json.dumps(run.events) + json.dumps(run.truth.to_json()) for run in runs)
    assert first == again != other
    assert_consistent(runs[-1])


@pytest.mark.parametrize("limit", [1, 7, 1_024])
def test_a_queue_never_holds_more_than_its_limit(limit):
    program = simulator.random_program(3, features={"streams", "full_queue", "graphs"})
    run = simulate(program, machine=Machine(queue_limit=limit))
    changes = {}
    for call in run.timeline.activities:
        if call.works:
            stream = changes.setdefault(call.works[0].lane, [])
            stream += [(call.works[-1].end.time_ns, -1), (call.end.time_ns, 1)]
    for stream in changes.values():
        n_held = 0
        for _, change in sorted(stream):
            n_held += change
            assert n_held <= limit


# What each item of a program plants


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
    numbers = {
        event["name"]: event["args"].get("correlation")
        for event in events
        if event["cat"] == "kernel"
    }
    calls = [event["args"]["correlation"] for event in events if event["cat"] == "cuda_runtime"]
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
    whole, lossy = (
        Counter(event["name"] for event in run.events if event["ph"] == "X") for run in runs
    )
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


# Changes


@pytest.mark.parametrize("seed", range(10))
def test_no_change_changes_nothing(seed):
    run = simulate("random", seed=seed)
    assert run.what_if([]) == {w.name: w.duration_ns for w in run.truth.windows}
    assert run.what_if([Scale("kernel", by=1)]) == run.what_if([])


def test_a_change_leaves_the_noise_of_everything_else():
    run = simulate("training", seed=5)
    changed = run.again([Scale("operator", "aten::addmm", by=3), NoWait("sync_return")])

    def durations(some_run):
        works = (activity for activity in some_run.timeline.activities if activity.is_work)
        return [work.end.time_ns - work.start.time_ns for work in works]

    assert durations(run) == durations(changed)
    assert run.events != changed.events


@pytest.mark.parametrize("kind", ["kernel", "operator", "runtime", "copy", "launch", "host_gap"])
def test_less_work_never_takes_longer(kind):
    for seed in range(20):
        run = simulate("random", seed=seed, features={"streams", "event_waits", "backward"})
        assert run.what_if([Drop(kind)])["trace"] <= run.truth.window("trace").duration_ns


# Traces


@pytest.mark.parametrize("name", ["training", "inference", "graphed", "random"])
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    paths = [tmp_path / f"{number}.json.gz" for number in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        simulate(name, seed=seed).write(path)
    first, again, other = (path.read_bytes() for path in paths)
    assert first == again != other


def test_the_file_holds_the_events(tmp_path):
    run = simulate("training", seed=2, python_frames=True, shapes=True)
    order = run.write(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert len(trace["traceEvents"]) == len(order) == len(run.events)
    for written, position in zip(trace["traceEvents"], order, strict=True):
        expected = dict(run.events[position])
        assert round(written.pop("ts") * 1_000) == expected.pop("start_ns")
        assert round(written.pop("dur", 0) * 1_000) == expected.pop("duration_ns", 0)
        assert written == expected


def test_synchronisation_records_can_be_left_out(tmp_path):
    run = simulate("training", seed=1)
    counts = []
    for sync_records in (True, False):
        run.write(tmp_path / "trace.json", sync_records=sync_records)
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        counts.append(Counter(event.get("cat") for event in events))
    assert counts[0].pop("cuda_sync") > 0
    assert counts[0] == counts[1]


def test_the_truth_names_events_by_their_position_in_the_file(tmp_path):
    run = simulate("random", seed=8)
    order = run.write(tmp_path / "trace.json", sync_records=False)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    truth = json.loads(json.dumps(run.truth.to_json(order)))
    segments = [s for window in truth["windows"] for s in window["segments"]]
    kernels = [s for s in segments if s["kind"] == "kernel"]
    assert kernels
    assert all(events[s["event"]]["cat"] == "kernel" for s in kernels)
    assert all(events[s["event"]]["ts"] * 1_000 <= s["start_ns"] + 1 for s in kernels)


def test_one_graph_launch_has_many_kernels():
    run = simulate("graphed", steps=1, kernels=12)
    kernels = [event for event in run.events if event.get("cat") == "kernel"]
    assert len(kernels) == 12
    assert len({event["args"]["correlation"] for event in kernels}) == 1


def test_the_clock_of_a_device_may_be_off():
    runs = [simulate("training", machine=Machine(device_clock_offset_ns=ns)) for ns in (0, 7_000)]
    truths = [run.truth.to_json() for run in runs]
    assert [truth.pop("clock_offsets_ns") for truth in truths] == [[0], [7_000]]
    assert truths[0] == truths[1]
    kernels = [
        [event["start_ns"] for event in run.events if event.get("cat") == "kernel"] for run in runs
    ]
    assert {late - early for early, late in zip(*kernels, strict=True)} == {7_000}


def test_stacks_are_there_when_they_are_asked_for():
    events = simulate("training", python_frames=True).events
    frames = {
        event["args"]["Python id"]: event
        for event in events
        if event.get("cat") == "python_function"
    }
    parents = [frame["args"]["Python parent id"] for frame in frames.values()]
    assert parents.count(None) == 1
    assert all(parent in frames for parent in parents if parent is not None)


# Large traces


@pytest.mark.parametrize("megabytes", [1, 5])
def test_a_large_trace_has_the_size_asked_for(megabytes, tmp_path):
    path = tmp_path / "large.json"
    n_events = write_large(path, megabytes)
    assert path.stat().st_size == pytest.approx(megabytes * 1_000_000, rel=0.05)
    assert len(json.loads(path.read_text())["traceEvents"]) == n_events


def test_numbers_in_a_large_trace_are_given_once(tmp_path):
    write_large(tmp_path / "large.json.gz", 3, python_frames=True)
    with gzip.open(tmp_path / "large.json.gz") as file:
        events = json.load(file)["traceEvents"]
    calls = [
        event["args"] for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")
    ]
    frames = [event["args"] for event in events if event.get("cat") == "python_function"]
    indices = [event["args"]["Ev Idx"] for event in events if "Ev Idx" in event.get("args", {})]
    assert len({args["correlation"] for args in calls}) == len(calls)
    assert len({args["Python id"] for args in frames}) == len(frames)
    assert len(set(indices)) == len(indices)
    assert_arrows_join(events)


def assert_arrows_join(events):
    """Check that each kernel has the arrow of its call."""
    starts = {
        event["id"]: event["ts"]
        for event in events
        if event["ph"] == "s" and event["cat"] == "ac2g"
    }
    for event in events:
        if event.get("cat") == "kernel":
            assert starts[event["args"]["correlation"]] < event["ts"]


def test_the_command_line_writes_a_trace_and_its_truth(tmp_path):
    trace, truth = tmp_path / "trace.json.gz", tmp_path / "truth.json"
    arguments = ["training", "--steps", "2", "--seed", "3", "-o", str(trace), "--truth", str(truth)]
    assert large.main(arguments) == 0
    with gzip.open(trace) as file:
        assert json.load(file)["traceEvents"]
    assert next(window["name"] for window in json.loads(truth.read_text())["windows"]) == "trace"
