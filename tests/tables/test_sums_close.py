"""Times that are parts of a whole sum to it, on traces of every shape."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.testing import TraceBuilder

US = 1_000
NAMES = ("gemm", "ncclDevKernel_AllReduce", "Memcpy HtoD", "Memset (Device)")
CLASSES = dict(zip(NAMES, ("compute", "communication", "copy", "copy"), strict=True))
LONGEST_US = 60

spans = st.tuples(st.integers(0, LONGEST_US), st.integers(0, 20)).map(lambda x: (x[0], sum(x)))
activity = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "work": spans,
        "call": st.one_of(st.none(), st.tuples(st.integers(-20, 0), st.integers(1, 9))),
        "device": st.integers(0, 1),
        "stream": st.integers(7, 8),
    }
)
windows = st.tuples(st.integers(-5, 40), st.integers(1, 60)).map(lambda x: (x[0], sum(x)))
activities = st.lists(activity, min_size=1, max_size=12)


def built(rows):
    """Build a trace: calls below separate operators, and records that are not activities."""
    builder = TraceBuilder()
    for number, row in enumerate(rows):
        place = {"device": row["device"], "stream": row["stream"]}
        if row["call"] is None:
            add = builder.copy if row["name"].startswith("Mem") else builder.kernel
            add(row["name"], row["work"], **place)
        else:
            before, length = row["call"]
            start = row["work"][0] + before
            call = (start, start + length)
            thread = 100 + number
            builder.operator(f"aten::op{number % 3}", call, thread=thread)
            builder.launch(row["name"], call=call, work=row["work"], thread=thread, **place)
    builder.synchronization("Stream Sync", (0, LONGEST_US), device=0, stream=7)
    builder.annotation("fit", (-30, LONGEST_US), thread=100)
    return builder.event(
        ph="X",
        cat="gpu_user_annotation",
        name="fit",
        pid=0,
        tid=7,
        ts=0,
        dur=LONGEST_US,
        args={"device": 0, "stream": 7},
    )


def instants(rows, device, stream, window):
    """Return the classes that ran in each microsecond of a window, by brute force."""
    start, end = window
    found = [set() for _ in range(start, end)]
    for row in rows:
        if row["device"] == device and stream in {None, row["stream"]}:
            for time in range(max(row["work"][0], start), min(row["work"][1], end)):
                found[time - start].add(CLASSES[row["name"]])
    return found


def first_of(classes):
    return next((name for name in ("compute", "communication", "copy") if name in classes), "idle")


def between(window):
    return longpole.Window("time_range", None, window[0] * US, window[1] * US, "as asked")


@given(rows=activities, window=windows)
def test_a_window_is_split_as_by_brute_force(rows, window):
    found = longpole.breakdown(built(rows).read(), between(window))
    assert found.height
    for row in found.iter_rows(named=True):
        expected = [first_of(each) for each in instants(rows, row["device"], row["stream"], window)]
        for part in ("compute", "communication", "copy", "idle"):
            assert row[f"{part}_ns"] == expected.count(part) * US
        assert row["window_ns"] == row["busy_ns"] + row["idle_ns"]


@given(rows=activities, window=windows)
def test_types_at_the_same_time_are_as_by_brute_force(rows, window):
    found = longpole.breakdown(built(rows).read(), between(window), by="types")
    for row in found.iter_rows(named=True):
        types = set(row["types"].split(" + ")) - {"idle"}
        expected = instants(rows, row["device"], None, window).count(types)
        assert row["duration_ns"] == expected * US
    sums = found.group_by("device").agg(pl.col("duration_ns", "window_share").sum())
    assert set(sums["duration_ns"]) == {(window[1] - window[0]) * US}
    assert sums["window_share"].to_list() == pytest.approx([1] * sums.height)


@given(rows=activities, window=windows)
def test_streams_that_are_busy_at_once_are_as_by_brute_force(rows, window):
    found = longpole.breakdown(built(rows).read(), between(window), by="concurrency")
    expected = {}
    for device in {row["device"] for row in rows}:
        lanes = [instants(rows, device, stream, window) for stream in (7, 8)]
        for here in zip(*lanes, strict=True):
            key = (device, sum(map(bool, here)))
            expected[key] = expected.get(key, 0) + US
    assert {row[:2]: row[2] for row in found.rows()} == expected


@given(rows=activities, window=windows)
def test_idle_time_by_cause_is_the_idle_time(rows, window):
    trace = built(rows).read()
    keys = ["device", "stream"]
    causes = longpole.idle(trace, between(window))
    by_cause = causes.group_by(keys).agg(pl.col("duration_ns", "share_of_idle").sum())
    whole = longpole.breakdown(trace, between(window)).select(*keys, "idle_ns")
    both = whole.join(by_cause, on=keys, how="left", nulls_equal=True)
    assert both["duration_ns"].fill_null(0).to_list() == both["idle_ns"].to_list()
    assert by_cause["share_of_idle"].to_list() == pytest.approx([1] * by_cause.height)


@given(rows=activities, window=windows)
def test_what_the_host_did_sums_to_the_idle_time_before_launches_returned(rows, window):
    trace, (start_ns, end_ns) = built(rows).read(), (time * US for time in window)
    found = longpole.idle(trace, between(window), by="host")
    gaps = trace.gaps(start_ns, end_ns).filter(pl.col("host_ns") > 0)
    expected = dict(gaps.group_by("device").agg(pl.col("host_ns").sum()).rows())
    assert dict(found.group_by("device").agg(pl.col("duration_ns").sum()).rows()) == expected


@given(rows=activities, window=windows)
def test_every_activity_is_in_one_row_of_each_grouping(rows, window):
    trace, part = built(rows).read(), between(window)
    listed = longpole.activities(trace, part)
    inside = [row for row in rows if row["work"][0] < window[1] and row["work"][1] > window[0]]
    instant = [
        row
        for row in rows
        if row["work"][0] == row["work"][1] and window[0] <= row["work"][0] <= window[1]
    ]
    assert listed.height == len([row for row in rows if row in inside or row in instant])
    total = (listed.height, listed["inside_ns"].sum())
    for question in (longpole.kernels, partial(longpole.kernels, by="annotation")):
        found = question(trace, part)
        assert (found["count"].sum(), found["duration_ns"].sum()) == total
    found = longpole.kernels(trace, part, by="operator")
    n_kernels = (found["count"] * found["kernels"].list.len()).sum()
    assert (n_kernels, found["duration_ns"].sum()) == total
    linked = listed["call"].count()
    assert longpole.launches(trace, part).height == linked
    assert longpole.launches(trace, part, by="call")["count"].sum() == linked


@given(rows=activities)
def test_a_queue_is_empty_when_all_activities_have_begun(rows):
    trace = built(rows).read()
    found = longpole.queue(trace, between((-LONGEST_US, 2 * LONGEST_US)), by="time")
    last = found.group_by("device", "stream", maintain_order=True).last()
    assert set(last["queue_length"]) <= {0}
    joined = [row for row in rows if row["call"] is not None]
    assert found.height == 2 * len(joined)


@given(rows=activities, window=windows)
def test_a_queue_in_a_window_is_as_by_brute_force(rows, window):
    found = longpole.queue(built(rows).read(), between(window))
    for row in found.iter_rows(named=True):
        waits = [
            (each["work"][0] + each["call"][0], each["work"][0])
            for each in rows
            if each["call"] and (each["device"], each["stream"]) == (row["device"], row["stream"])
        ]
        lengths = [sum(begin <= time < end for begin, end in waits) for time in range(*window)]
        assert row["time_mean"] == pytest.approx(sum(lengths) / len(lengths))


@given(rows=activities, window=windows)
def test_a_condition_gives_what_a_trace_of_these_activities_gives(rows, window):
    kept = [row for row in rows if row["name"] == "gemm"]
    ours = longpole.breakdown(built(rows).read(), between(window), where="name = 'gemm'")
    if not kept:
        assert ours.is_empty()
        return
    theirs = longpole.breakdown(built(kept).read(), between(window))
    assert ours.equals(theirs)


@settings(max_examples=settings.default.max_examples // 2)
@given(rows=activities, window=windows, data=st.data())
def test_the_order_of_the_file_changes_no_figure(rows, window, data):
    shuffled = data.draw(st.permutations(rows))
    traces = built(rows).read(), built(shuffled).read()
    for question in (longpole.breakdown, partial(longpole.breakdown, by="types"), longpole.idle):
        one, two = (question(trace, between(window)) for trace in traces)
        assert one.equals(two)
    one, two = (longpole.kernels(trace, between(window)) for trace in traces)
    # Of activities of one length any may be the longest.
    of_longest = ("longest_event", "operator", "operator_event", "operator_name")
    assert one.drop(of_longest).equals(two.drop(of_longest))
