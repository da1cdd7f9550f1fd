"""The critical path where there are two ways to the same answer: they must agree."""

import json
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from path_rules import is_beyond_twin, our_edges, their_edges

import longpole
from oracles.simulator.scenarios import SCENARIOS, run_scenario
from oracles.twin import path_twin as twin
from real_traces import real_traces
from tiny_traces import (
    US,
    annotation,
    arrow,
    call,
    copy,
    frame,
    kernel,
    operator,
    positions,
    read,
    segments,
    sync_record,
)

ENDS = ("period", "last", "cpu", "gpu")
CHANGES = [
    [(longpole.Scale, twin.Scale, {"kind": "kernel", "by": 0.5})],
    [(longpole.Scale, twin.Scale, {"matching": "A|K1", "by": 1.7})],
    [
        (longpole.Drop, twin.Drop, {"kind": "launch"}),
        (longpole.Drop, twin.Drop, {"matching": "^K"}),
    ],
    [(longpole.RemoveWait, twin.RemoveWait, {"kind": "sync_return"})],
    [(longpole.RemoveWait, twin.RemoveWait, {"kind": "event_wait", "matching": "K2"})],
]


# The same rows for both.


def assert_same_as_twin(graph, trace, **window):
    chosen = {name: value for name, value in window.items() if name != "whole"}
    theirs = twin.find_window(graph, **chosen)
    path = trace.critical_path(**(chosen or {"whole": True}))
    assert path.window == (theirs.start_ns, theirs.end_ns)
    assert segments(trace, path) == twin.critical_path(graph, theirs).segments
    return theirs, path


def assert_tiled(path):
    starts = path.segments["start_ns"].to_list()
    ends = (path.segments["start_ns"] + path.segments["duration_ns"]).to_list()
    start_ns, end_ns = path.window
    assert [*starts, end_ns] == [start_ns, *ends]


def assert_unchanged(path):
    """Ask what would be if nothing were different."""
    unchanged = path.what_if([])
    assert unchanged.makespan_ns == path.length_ns
    assert unchanged.critical_path.nodes.equals(path.nodes)
    assert unchanged.critical_path.segments.equals(path.segments)


def twin_slack(graph, window, place):
    by_row = twin.slack(graph, window)
    return {event: by_row[row] for event, row in place.items() if row in by_row}


def twin_syncs(graph, window):
    found = twin.sync_dependencies(graph, twin.critical_path(graph, window))
    return sorted(
        (sync.source.row, sync.target.row, sync.kind, sync.evidence, sync.waited, sync.on_path)
        for sync in found
    )


def our_syncs(path, place):
    columns = ["source", "target", "kind", "evidence", "waited", "on_path"]
    rows = path.sync_dependencies.select(columns).iter_rows()
    return sorted((place[source], place[target], *rest) for source, target, *rest in rows)


# Random traces: nothing in them makes sense, and still both find the same.

TIMES = st.integers(0, 120).map(lambda half: half / 2)
SPANS = st.tuples(TIMES, st.integers(0, 80)).map(lambda pair: (pair[0], pair[0] + pair[1] / 2))
NUMBERS, THREADS = st.integers(0, 9), st.integers(1, 3)
STREAMS, DEVICES = st.sampled_from([7, 8, 9]), st.sampled_from([0, 0, 1])
CALLS = st.sampled_from(
    [
        *("cudaLaunchKernel", "cudaGraphLaunch", "cudaDeviceSynchronize", "hipStreamSynchronize"),
        *("cudaEventSynchronize", "cudaStreamWaitEvent", "cudaEventRecord", "cudaEventQuery"),
        *("cudaMemcpy", "cudaMemcpyAsync", "cudaFree", "cuMemAlloc_v2"),
    ]
)
RECORDS = st.sampled_from(
    ["Stream Sync", "Context Sync", "Event Sync", "Stream Wait Event", "Unknown Sync"]
)
OPERATORS = st.sampled_from(["A", "B", "autograd::engine::evaluate_function: C"])
COPIES = st.sampled_from(["Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pinned -> Device)"])
KERNELS = st.sampled_from(["K1", "K2", "ncclDevKernel_AllReduce"])
LABELS = st.sampled_from(["ProfilerStep#1", "ProfilerStep#2", "enumerate(DataLoader)#next", "fit"])


def placed(make, names, **places):
    """Draw an event of a name and a span with some places."""
    return st.builds(
        lambda name, times, rest: make(name, *times, **rest),
        names,
        SPANS,
        st.fixed_dictionaries(places),
    )


EVENTS = st.one_of(
    placed(operator, OPERATORS, tid=THREADS),
    placed(frame, st.sampled_from(["f", "dataloader.py(1): g"]), tid=THREADS),
    placed(annotation, LABELS, tid=THREADS),
    placed(call, CALLS, tid=THREADS, number=NUMBERS),
    placed(call, CALLS, tid=THREADS, number=NUMBERS),
    placed(kernel, KERNELS, number=NUMBERS, stream=STREAMS, device=DEVICES),
    placed(kernel, KERNELS, number=NUMBERS, stream=STREAMS, device=DEVICES),
    st.builds(lambda name, times, n: copy(name, *times, n), COPIES, SPANS, NUMBERS),
    st.builds(
        lambda kind, start, number, stream, waited, record: sync_record(
            kind,
            start,
            number,
            stream=stream,
            wait_on_stream=waited,
            wait_on_cuda_event_record_corr_id=record,
        ),
        *(RECORDS, TIMES, NUMBERS, STREAMS, st.sampled_from([-1, 7, 8]), NUMBERS),
    ),
)
ARROWS = st.lists(st.tuples(TIMES, TIMES, THREADS, THREADS), max_size=3).map(
    lambda ends: [
        one
        for number, (start, end, source, target) in enumerate(ends)
        for one in arrow(start, end, number, from_thread=source, to_thread=target)
    ]
)
ANY_TRACES = st.tuples(st.lists(EVENTS, min_size=1, max_size=24), ARROWS).map(
    lambda parts: [*parts[0], *parts[1]]
)


def without_new_rules(events):
    """Put all on one thread and one device, without graphs: where the twin has every rule."""
    return [
        event
        if event.get("cat") in {"gpu_memcpy", "cuda_sync"}
        else event | {"pid": 0, "args": event["args"] | {"device": 0}}
        if event.get("cat") == "kernel"
        else event | {"tid": 1, "name": event["name"].replace("cudaGraph", "cuda")}
        for event in events
    ]


def assert_same_what_if(graph, window, trace, path):
    for changes in CHANGES:
        theirs = twin.what_if(graph, window, [made(**given) for _, made, given in changes])
        ours = path.what_if([made(**given) for made, _, given in changes])
        assert ours.makespan_ns == theirs.makespan_ns
        assert segments(trace, ours.critical_path) == theirs.critical_path.segments
        assert_tiled(ours.critical_path)


TRACES = ANY_TRACES | ANY_TRACES.map(without_new_rules)
EXAMPLES, SLOW = settings.default.max_examples, [HealthCheck.too_slow]


@settings(max_examples=5 * EXAMPLES, suppress_health_check=SLOW)
@given(TRACES)
def test_on_random_traces_longpole_and_its_twin_agree(events):
    graph, trace = twin.build_graph(events), read(events)
    try:
        window = twin.find_window(graph)
    except ValueError:
        with pytest.raises(longpole.WindowError):
            trace.critical_path(whole=True)
        return
    place = positions(trace)
    if is_beyond_twin(trace.critical_path(whole=True)):
        return
    _, path = assert_same_as_twin(graph, trace)
    assert our_edges(path, path.edges, place) == their_edges(graph, graph.edges)
    not_compared = {"untimed", "lost_launches", "lost_copy_calls", "sibling_devices"}
    compared = path.counts.keys() - not_compared
    assert {name: path.counts[name] for name in compared} == {
        name: graph.counts[name] for name in compared
    }
    slack = dict(path.slack.iter_rows())
    assert {event: slack[event] for event in twin_slack(graph, window, place)} == twin_slack(
        graph, window, place
    )
    assert our_syncs(path, place) == twin_syncs(graph, window)
    assert_unchanged(path)
    assert_same_what_if(graph, window, trace, path)


@pytest.mark.parametrize("name", SCENARIOS)
def test_on_simulated_programs_longpole_and_its_twin_agree(name, tmp_path):
    for sync_records in (True, False):
        run_scenario(name, 5).write(tmp_path / "trace.json", sync_records=sync_records)
        graph = twin.build_graph(twin.read_events(tmp_path / "trace.json"))
        trace = longpole.read_trace(tmp_path / "trace.json")
        path, place = trace.critical_path(), positions(trace)
        if is_beyond_twin(path):
            pytest.skip("a rule takes part that the naive twin does not have")
        base_ns = min(event.start_ns for event in graph.trace.events) - min_start_ns(path)
        assert our_edges(path, path.edges, place) == their_edges(graph, graph.edges, base_ns)


def min_start_ns(path):
    return path.nodes["time_ns"].min()


@settings(max_examples=2 * EXAMPLES, suppress_health_check=SLOW)
@given(TRACES, SPANS)
def test_between_two_times_longpole_and_its_twin_agree(events, span):
    between = tuple(int(time * US) for time in span)
    graph, trace = twin.build_graph(events), read(events)
    try:
        window = twin.find_window(graph, between_ns=between)
    except ValueError:
        with pytest.raises((longpole.WindowError, ValueError)):
            trace.critical_path(between=between)
        return
    path = trace.critical_path(between=between)
    if is_beyond_twin(path):
        return
    assert segments(trace, path) == twin.critical_path(graph, window).segments
    assert_unchanged(path)
    assert_same_what_if(graph, window, trace, path)


@settings(suppress_health_check=SLOW)
@given(TRACES, st.randoms(use_true_random=False))
def test_the_order_in_the_file_changes_nothing(events, dice):
    trace, shuffled = read(events), read(dice.sample(events, len(events)))
    try:
        path = trace.critical_path(whole=True)
    except longpole.WindowError:
        return
    assert contents(shuffled.critical_path(whole=True)) == contents(path)


def contents(path):
    columns = ["start_ns", "duration_ns", "kind", "name", "evidence"]
    return path.segments.select(columns).rows()


# Real traces.


def windows_of(trace):
    """Name the whole trace, and every step with every end that it has."""
    windows = [{"step": step, "end": end} for step in trace.steps["step"] for end in ENDS]
    return [{"whole": True}, *(window for window in windows if has_window(trace, **window))]


def has_window(trace, step, end):
    """Say whether a step ends so: without work on a device it has no end there."""
    try:
        trace.critical_path(step, end=end)
    except longpole.WindowError:
        assert end == "gpu"
        return False
    return True


@pytest.mark.parametrize("file", real_traces(200_000))
def test_on_real_traces_longpole_and_its_twin_agree(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    graph, trace = twin.build_graph(twin.read_events(file)), longpole.read_trace(file)
    place = positions(trace)
    windows = windows_of(trace)
    if is_beyond_twin(trace.critical_path(**windows[0])):
        pytest.skip("a rule takes part that the naive twin does not have")
    for window in windows:
        _, path = assert_same_as_twin(graph, trace, **window)
        assert_tiled(path)
        assert_unchanged(path)
    theirs, path = assert_same_as_twin(graph, trace)
    slack = dict(path.slack.iter_rows())
    expected = twin_slack(graph, theirs, place)
    assert {event: slack[event] for event in expected} == expected
    assert our_syncs(path, place) == twin_syncs(graph, theirs)


@pytest.mark.parametrize("file", real_traces(200_000))
def test_on_real_traces_neither_order_nor_numbers_matter(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    events, trace = twin.read_events(file), longpole.read_trace(file)
    paths = [contents(trace.critical_path(**window)) for window in windows_of(trace)]
    for seed in range(3):
        dice = random.Random(seed)  # noqa: S311 - nothing secret
        shuffled = read_exactly(dice.sample(events, len(events)))
        again = [contents(shuffled.critical_path(**window)) for window in windows_of(shuffled)]
        assert again == paths
    renumbered = read_exactly([with_other_numbers(event) for event in events])
    assert [contents(renumbered.critical_path(**window)) for window in windows_of(trace)] == paths


def read_exactly(events):
    """Read events whose times are decimals, digit by digit: a double would round them."""
    text = json.dumps({"traceEvents": events}, default=lambda number: f"<{number}>")
    return longpole.read_trace(re.sub(r'"<([-+.eE\d]+)>"', r"\1", text).encode())


def with_other_numbers(event):
    """Give the threads of processes other numbers, in the same order."""
    changed = dict(event)
    if event.get("cat") not in {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}:
        for key in ("pid", "tid"):
            if isinstance(event.get(key), int):
                changed[key] = 3 * event[key] + 1_000
    return changed
