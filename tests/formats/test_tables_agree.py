"""Tables against the bytes they come from, counted in the plainest way.

Times, links, nesting and busy time are computed anew from the JSON text with sets and loops.
"""

import gzip
import json
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal

import polars as pl
import pytest
from hypothesis import example, given, settings

import longpole
from real_traces import real_traces
from strategies import traces
from styles import document

CROSSING_TOLERANCE_NS = 1_000
"""By how much a child may outlast its parent."""


def unlinked_work(*, call_us, linked_us, unlinked_us):
    """Return a step with a linked GPU activity, followed by one without a launch on its stream."""
    parts = [
        ("user_annotation", "ProfilerStep#3", 1, (2, 10), {}),
        ("cuda_driver", "cudaLaunchKernel", 1, call_us, {"correlation": 1}),
        ("kernel", "gemm", 0, linked_us, {"correlation": 1}),
        ("gpu_memset", "Memset (Device)", 0, unlinked_us, {}),
    ]
    return [
        {
            "ph": "X",
            "pid": 1,
            "tid": thread,
            "cat": category,
            "name": name,
            "ts": start,
            "dur": end - start,
            "args": args,
        }
        for category, name, thread, (start, end), args in parts
    ]


@settings(max_examples=2 * settings.default.max_examples)
@given(traces())
# Work without a launch belongs to the step of the launched work that it follows, ...
@example(unlinked_work(call_us=(3, 4), linked_us=(5, 9), unlinked_us=(12, 15)))
# ... unless it began long after that and after the step, or that was launched after the step.
@example(unlinked_work(call_us=(3, 4), linked_us=(5, 9), unlinked_us=(20, 25)))
@example(unlinked_work(call_us=(11, 12), linked_us=(1, 2), unlinked_us=(9, 15)))
def test_the_tables_of_a_generated_trace_agree_with_its_text(events):
    assert_agrees(document(events))


@pytest.mark.parametrize("path", real_traces(slow_bytes=300_000))
def test_the_tables_of_a_real_trace_agree_with_its_text(path):
    if not path.is_file():
        pytest.skip(f"no traces in {path}")
    assert_agrees(gzip.decompress(path.read_bytes()))


def assert_agrees(data):
    """Compare what follows from the bytes."""
    trace = longpole.read_trace(data)
    found = json.loads(data, parse_float=Decimal, parse_int=Decimal)
    events = found["traceEvents"] if isinstance(found, dict) else found
    assert trace.phases == Counter(event.get("ph") for event in events)
    assert_same_times(trace, events)
    assert_links_share_a_number(trace)
    assert_parents_enclose_their_children(trace)
    assert_self_times_close(trace)
    assert_device_time_closes(trace)


def assert_same_times(trace, events):
    """Compare the complete events with the text, by their place in the file."""
    written = {
        place: (str(event["name"]), nanoseconds(event["ts"]))
        for place, event in enumerate(events)
        if event.get("ph") == "X" and event.get("dur", -1) >= 0 and "ts" in event
    }
    rows = trace.events.select("position", "name", "start_ns").rows()
    read = {place: rest for place, *rest in rows if place in written}
    assert read == {place: list(event) for place, event in written.items()}


def nanoseconds(microseconds):
    return int((microseconds * 1000).to_integral_value(ROUND_HALF_EVEN))


def assert_links_share_a_number(trace):
    number_of = dict(trace.events.select("event", "correlation").iter_rows())
    for event, call, linked_by in trace.launches.select("event", "call", "linked_by").iter_rows():
        if linked_by == "correlation":
            assert number_of[event] == number_of[call] != 0


def assert_parents_enclose_their_children(trace):
    rows = {row["event"]: row for row in trace.events.iter_rows(named=True)}
    for child in rows.values():
        parent = rows.get(child["parent"])
        if parent is None:
            assert child["depth"] in {0, None}
            continue
        assert child["lane"] == parent["lane"]
        assert child["depth"] == parent["depth"] + 1
        assert parent["start_ns"] <= child["start_ns"] <= end_ns(parent)
        assert end_ns(child) <= end_ns(parent) + CROSSING_TOLERANCE_NS


def end_ns(row):
    return row["start_ns"] + row["duration_ns"]


def assert_self_times_close(trace):
    """Compare the self time of a lane with the time in which anything is open on it."""
    total_ns, spans = Counter(), {}
    for row in trace.events.join(trace.self_times, on="event").iter_rows(named=True):
        if row["self_ns"] is not None:
            total_ns[row["lane"]] += row["self_ns"]
            spans.setdefault(row["lane"], []).append((row["start_ns"], end_ns(row)))
    assert total_ns == {lane: union_ns(of_lane) for lane, of_lane in spans.items()}


def assert_device_time_closes(trace):
    if trace.window is None:
        return
    start, end = trace.window
    third = (end - start) // 3
    for window in [(start, end), (start + third, end - third)]:
        for row in trace.busy(*window).iter_rows(named=True):
            parts = ("compute_ns", "communication_ns", "copy_ns", "idle_ns")
            assert sum(row[name] for name in parts) == window[1] - window[0]
            assert row["busy_ns"] == union_ns(clipped(work_of(trace, row), *window))


def work_of(trace, row):
    """List the spans of the GPU activities of a device, or of one of its streams."""
    work = trace.events.filter(
        pl.col("kind").is_in(["kernel", "copy", "fill"]), device=row["device"]
    )
    if row["stream"] is not None:
        work = work.filter(stream=row["stream"])
    return [(one["start_ns"], end_ns(one)) for one in work.iter_rows(named=True)]


def clipped(spans, start, end):
    return [(max(one, start), min(two, end)) for one, two in spans if one < end and two > start]


def union_ns(spans):
    """Return the length of the union of some spans."""
    total_ns, reached_ns = 0, None
    for start, end in sorted(spans):
        begin_ns = start if reached_ns is None else max(start, reached_ns)
        total_ns += max(end - begin_ns, 0)
        reached_ns = end if reached_ns is None else max(reached_ns, end)
    return total_ns
