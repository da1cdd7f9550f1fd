"""Invariants of the critical path: tiling, no change, order of the file, numbers of threads."""

import decimal
import gzip
import json
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longpole
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
    read,
    sync_record,
)

ENDS = ("period", "last", "cpu", "gpu")
CHANGES = [
    [longpole.Scale(kind="kernel", by=0.5)],
    [longpole.Scale(matching="A|K1", by=1.7)],
    [longpole.Drop(kind="launch"), longpole.Drop(matching="^K")],
    [longpole.RemoveWait(kind="sync_return")],
    [longpole.RemoveWait(kind="event_wait", matching="K2")],
]


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


# Random traces: nothing in them makes sense, and still the invariants hold.

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


TRACES = ANY_TRACES
EXAMPLES, SLOW = settings.default.max_examples, [HealthCheck.too_slow]


def assert_what_if_holds(path):
    """Check that changed paths tile, and that dropping work saves no less than halving it."""
    for changes in CHANGES:
        assert_tiled(path.what_if(changes).critical_path)
    halved, dropped = (
        path.what_if(change).makespan_ns
        for change in (longpole.Scale(kind="kernel", by=0.5), longpole.Drop(kind="kernel"))
    )
    assert dropped <= halved <= path.length_ns


@settings(max_examples=5 * EXAMPLES, suppress_health_check=SLOW)
@given(TRACES)
def test_a_path_tiles_its_window_and_nothing_changed_changes_nothing(events):
    try:
        path = read(events).critical_path(whole=True)
    except longpole.WindowError:
        return
    assert_tiled(path)
    assert_unchanged(path)
    assert_what_if_holds(path)
    assert min(path.slack["slack_ns"].drop_nulls(), default=0) >= 0


@settings(max_examples=2 * EXAMPLES, suppress_health_check=SLOW)
@given(TRACES, SPANS)
def test_between_two_times_a_path_tiles_its_window(events, span):
    between = tuple(int(time * US) for time in span)
    try:
        path = read(events).critical_path(between=between)
    except (longpole.WindowError, ValueError):
        return
    assert path.window == between
    assert_tiled(path)
    assert_unchanged(path)
    assert_what_if_holds(path)


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
    """List the whole trace, and every step with every end that it has."""
    windows = [{"step": step, "end": end} for step in trace.steps["step"] for end in ENDS]
    return [{"whole": True}, *(window for window in windows if has_window(trace, **window))]


def has_window(trace, step, end):
    """Whether a step ends so: without work on a device it has no end there."""
    try:
        trace.critical_path(step, end=end)
    except longpole.WindowError:
        assert end == "gpu"
        return False
    return True


@pytest.mark.parametrize("file", real_traces(200_000))
def test_on_real_traces_a_path_tiles_its_window(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    trace = longpole.read_trace(file)
    for window in windows_of(trace):
        path = trace.critical_path(**window)
        assert_tiled(path)
        assert_unchanged(path)


@pytest.mark.parametrize("file", real_traces(200_000))
def test_on_real_traces_neither_order_nor_numbers_matter(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    events, trace = read_events(file), longpole.read_trace(file)
    paths = [contents(trace.critical_path(**window)) for window in windows_of(trace)]
    for seed in range(3):
        dice = random.Random(seed)  # noqa: S311 - nothing secret
        shuffled = read_exactly(dice.sample(events, len(events)))
        again = [contents(shuffled.critical_path(**window)) for window in windows_of(shuffled)]
        assert again == paths
    renumbered = read_exactly([with_other_numbers(event) for event in events])
    assert [contents(renumbered.critical_path(**window)) for window in windows_of(trace)] == paths


def read_events(file):
    """Return the events of a file, with the times as decimals."""
    document = json.loads(gzip.decompress(file.read_bytes()), parse_float=decimal.Decimal)
    return document["traceEvents"] if isinstance(document, dict) else document


def read_exactly(events):
    """Read events whose times are decimals, digit by digit: a double would round them."""
    text = json.dumps({"traceEvents": events}, default=lambda number: f"<{number}>")
    return longpole.read_trace(re.sub(r'"<([-+.eE\d]+)>"', r"\1", text).encode())


def with_other_numbers(event):
    """Return an event whose threads and processes have other numbers, in the same order."""
    changed = dict(event)
    if event.get("cat") not in {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}:
        for key in ("pid", "tid"):
            if isinstance(event.get(key), int):
                changed[key] = 3 * event[key] + 1_000
    return changed
