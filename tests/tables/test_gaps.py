"""The idle gaps of devices: one row for each, longest first, with what came before and after."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import longpole
from longpole.engine.windows import Window
from longpole.tables.host_pieces import device_gaps, host_pieces, host_spans
from longpole.testing import TraceBuilder

LAST = {"call": (240, 250), "work": (252, 254)}
RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture(scope="module")
def trace():
    builder = TraceBuilder().step(1, (0, 400))
    builder.operator("aten::item", (1, 40)).launch("early", call=(5, 8), work=(10, 30))
    builder.operator("aten::mm", (58, 64)).launch("late", call=(60, 62), work=(70, 90))
    builder.launch("queued", call=(66, 68), work=(180, 200))
    return builder.annotation("load", (210, 238)).launch("last", **LAST).read()


def test_a_gap_has_its_cause_the_host_and_both_neighbours(trace):
    window = Window("time_range", None, 9_000, 254_000, "given")
    rows = longpole.gaps(trace, window).select(
        "offset_ns", "duration_ns", "cause", "host_name", "previous_name", "next_name"
    )
    assert rows.rows() == [
        (81_000, 90_000, "other_wait", None, "late", "queued"),
        (191_000, 52_000, "waiting_for_launch", "load", "queued", "last"),
        (
            *(21_000, 40_000, "waiting_for_launch"),
            *("between aten::item and aten::mm", "early", "late"),
        ),
        (0, 1_000, "between_activities", None, None, "early"),
    ]


def test_a_late_launch_and_the_wait_after_it_are_two_rows():
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    builder.operator("aten::add", (12, 40))
    trace = builder.launch("add", call=(30, 35), work=(90, 100)).read()
    columns = ("start_ns", "duration_ns", "cause", "host_ns", "host_name")
    found = longpole.gaps(trace, Window("time_range", None, 0, 100_000, "given"))
    assert found.select(columns).rows() == [
        (35_000, 55_000, "other_wait", 0, None),
        (10_000, 25_000, "waiting_for_launch", 25_000, "aten::add"),
        (0, 2_000, "between_activities", 1_000, "cudaLaunchKernel"),
    ]
    cut = longpole.gaps(trace, Window("time_range", None, 20_000, 60_000, "given"))
    assert cut.select(columns).rows() == [
        (35_000, 25_000, "other_wait", 0, None),
        (20_000, 15_000, "waiting_for_launch", 15_000, "aten::add"),
    ]


def test_times_that_are_rounded_to_a_nanosecond_make_no_gap():
    builder = TraceBuilder().launch("first", call=(0, 1), work=(2, 9.999))
    builder.launch("second", call=(3, 4), work=(10, 20)).launch("third", call=(5, 6), work=(22, 30))
    found = longpole.gaps(builder.read(), Window("time_range", None, 2_000, 30_000, "given"))
    assert found.select("start_ns", "duration_ns").rows() == [(20_000, 2_000)]


def test_a_gap_keeps_its_cause_where_the_window_cuts_it(trace):
    cut = longpole.gaps(trace, Window("time_range", None, 61_000, 65_000, "given"))
    assert cut.select("duration_ns", "cause", "previous_name").row(0) == (
        4_000,
        "waiting_for_launch",
        "early",
    )


def test_after_the_last_activity_nothing_follows(trace):
    last = longpole.gaps(trace, Window("time_range", None, 260_000, 300_000, "given"))
    assert last.select("cause", "host_name", "next_name", "next_event").rows() == [
        ("after_last", None, None, None)
    ]


@pytest.mark.parametrize("name", ["download.before", "masks.before", "decode.before", "threads"])
def test_gaps_sum_to_the_idle_time_and_pieces_to_self_times(name):
    trace = longpole.read_trace(RECORDINGS / f"{name}.json.gz")
    window = longpole.choose_window(trace)
    idle = longpole.idle(trace, window).filter(pl.col("stream").is_null())
    found = longpole.gaps(trace, window)
    causes = found.group_by("cause").agg(
        pl.len().cast(pl.Int64), pl.col("duration_ns").sum(), pl.col("host_ns").sum()
    )
    of_cause = idle.select("cause", "count", "duration_ns", pl.col("host_ns").fill_null(0))
    assert sorted(causes.rows()) == sorted(of_cause.rows())
    spans = host_spans(device_gaps(trace, window))
    pieces = host_pieces(trace, spans).filter(pl.col("kind") != "host_gap")
    length_ns = (pl.col("end_ns") - pl.col("start_ns")).sum()
    own = dict(pieces.group_by("event").agg(length_ns).rows())
    ran = trace.times_within(spans).filter(pl.col("self_ns") > 0).select("event", "self_ns")
    named = trace.steps["event"].to_list()
    assert own == {event: ns for event, ns in ran.rows() if event not in named}
