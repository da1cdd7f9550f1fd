"""The idle gaps of devices: one row for each, longest first, with what came before and after."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import longpole
from longpole.analyses.host_pieces import device_gaps, host_pieces, host_spans
from longpole.testing import TraceBuilder
from longpole.windows import Window

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
    idle = longpole.idle_time(trace, window).filter(pl.col("stream").is_null())
    found = longpole.gaps(trace, window)
    assert found["duration_ns"].sum() == idle["duration_ns"].sum()
    of_cause = dict(found.group_by("cause").agg(pl.len()).rows())
    assert set(of_cause) <= {*idle["cause"]}
    spans = host_spans(device_gaps(trace, window))
    pieces = host_pieces(trace, spans).filter(pl.col("kind") != "host_gap")
    length_ns = (pl.col("end_ns") - pl.col("start_ns")).sum()
    own = dict(pieces.group_by("event").agg(length_ns).rows())
    ran = trace.times_within(spans).filter(pl.col("self_ns") > 0).select("event", "self_ns")
    named = trace.steps["event"].to_list()
    assert own == {event: ns for event, ns in ran.rows() if event not in named}
