"""What the host did while a device waited for it."""

import polars as pl
import pytest
from hypothesis import given

import longpole
from longpole.tables.host_pieces import device_gaps, host_pieces, host_spans
from longpole.testing import TraceBuilder
from strategies import traces
from styles import STYLES, document


def rows_of(builder):
    return longpole.idle(builder.read(), by="host").rows(named=True)


def test_each_moment_counts_for_the_innermost_event_of_the_launching_thread():
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    builder.python("train.py(9): augment", (10, 70)).operator("aten::add", (60, 70))
    builder.operator("aten::other", (10, 70), thread=2)
    builder.launch("add", call=(66, 68), work=(69, 80))
    found = {row["name"]: row for row in rows_of(builder)}
    assert found["train.py(9): augment"]["duration_ns"] == 50_000
    assert found["aten::add"]["duration_ns"] == 6_000
    assert found["cudaLaunchKernel"]["duration_ns"] == 3_000  # 1 us of the first launch
    assert "aten::other" not in found
    idle_us = 59 + 2
    assert found["train.py(9): augment"]["share_of_idle"] == pytest.approx(50 / idle_us)
    assert found["train.py(9): augment"]["kind"] == "python"


@given(events=traces())
def test_a_span_has_the_same_pieces_alone_as_among_others(events):
    trace = longpole.read_trace(document(events, STYLES["compact"]))
    window = longpole.choose_window(trace, whole=True)
    if window is None:
        return
    spans = host_spans(device_gaps(trace, window))
    alone = [host_pieces(trace, spans[number : number + 1]) for number in range(spans.height)]
    together = host_pieces(trace, spans)
    assert pl.concat([together.clear(), *alone]).rows() == together.rows()


def test_idle_time_after_the_launch_returned_is_not_the_hosts():
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    builder.launch("add", call=(3, 5), work=(50, 80)).operator("aten::mm", (10, 50))
    assert {row["name"] for row in rows_of(builder)} == {"cudaLaunchKernel"}


def test_each_device_waits_for_its_own_launches():
    builder = TraceBuilder()
    for device, thread in ((0, 1), (1, 2)):
        builder.launch("gemm", call=(0, 1), work=(1, 10), device=device, thread=thread)
        builder.operator(f"aten::op{device}", (10, 40 + device), thread=thread)
        call = (41 + device, 42 + device)
        builder.launch("add", call=call, work=(42 + device, 60), device=device, thread=thread)
    found = [(row["device"], row["name"], row["duration_ns"]) for row in rows_of(builder)]
    assert (0, "aten::op0", 30_000) in found
    assert (1, "aten::op1", 31_000) in found
    assert not {(0, "aten::op1"), (1, "aten::op0")} & {row[:2] for row in found}


def test_a_trace_without_devices_has_no_rows():
    assert rows_of(TraceBuilder().operator("aten::mm", (0, 9))) == []


def test_time_in_no_event_is_named_by_what_came_before_and_after():
    builder = TraceBuilder().step(1, (0, 200)).launch("gemm", call=(1, 2), work=(3, 10))
    builder.operator("aten::item", (4, 12)).operator("aten::transpose", (50, 60))
    builder.annotation("load", (70, 90)).launch("add", call=(100, 102), work=(103, 190))
    found = {(row["kind"], row["name"]): row for row in rows_of(builder)}
    assert found["host_gap", "between aten::item and aten::transpose"]["duration_ns"] == 38_000
    assert found["host_gap", "between aten::transpose and cudaLaunchKernel"]["count"] == 2
    assert found["annotation", "load"]["duration_ns"] == 20_000
    assert "ProfilerStep#1" not in {name for _, name in found}


def test_the_event_that_started_last_owns_the_time_where_events_cross():
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 10))
    builder.python("train.py(1): step", (9, 30)).annotation("epoch", (20, 50))
    builder.launch("add", call=(60, 62), work=(63, 70))
    found = {row["name"]: row["duration_ns"] for row in rows_of(builder)}
    assert found["train.py(1): step"] == 10_000
    assert found["epoch"] == 30_000


@pytest.mark.parametrize("names", [("detach", "aten::detach"), ("aten::detach", "detach")])
def test_time_between_is_named_by_the_outermost_of_operators_with_equal_times(names):
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    for name in names:
        builder.operator(name, (20, 30))
    trace = builder.launch("add", call=(40, 42), work=(43, 50)).read()
    operators = trace.events.filter(pl.col("kind") == "operator", pl.col("depth") == 0)
    [outermost] = operators["name"]
    found = {row["name"] for row in longpole.idle(trace, by="host").rows(named=True)}
    assert f"between {outermost} and cudaLaunchKernel" in found
    assert f"between cudaLaunchKernel and {outermost}" in found
