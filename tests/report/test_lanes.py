"""Pictures on a page: swim lanes of a step, of steps, of two runs, and flame graphs."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from pathlib import Path

import pytest

import longpole
from longpole.engine.windows import choose_window
from longpole.plot.diff_lanes import diff_lanes
from longpole.plot.flame_lanes import TITLES, flame_lanes
from longpole.plot.lanes import lanes
from longpole.plot.step_lanes import step_columns, step_lanes
from longpole.report.page import page_text
from longpole.report.sections import Page, Section
from longpole.testing import TraceBuilder
from longpole.words.wording import duration

RECORDINGS = Path(__file__).parents[1] / "recordings"
SIDES = ("before", "after")


def three_steps():
    found = TraceBuilder()
    for step in range(3):
        begin = 1_000 * step
        found.step(step, (begin, begin + 900))
        found.operator("aten::mm", (begin, begin + 20))
        found.launch("gemm", call=(begin + 5, begin + 10), work=(begin + 12, begin + 700))
        found.launch("ncclAllReduce", call=(begin + 30, begin + 40), work=(begin + 60, begin + 90))
    return found


def intervals(row):
    """Undo the packing of a lane: where each span starts and ends."""
    starts = [sum(row["starts"][: n + 1]) for n in range(len(row["starts"]))]
    return [(start, start + length) for start, length in zip(starts, row["lengths"], strict=True)]


def test_the_lanes_hold_what_ran_and_the_path_tiles_the_window():
    trace = three_steps().read()
    path = trace.critical_path(1)
    picture = lanes(trace, None, path)
    assert picture.notes == []
    first = picture.rows[0]
    assert first["label"] == "critical path"
    assert sum(first["lengths"]) == picture.length_ns == path.length_ns
    labels = [row["label"] for row in picture.rows[1:]]
    assert labels[:2] == ["device 0, stream 7"] * 2
    assert set(labels[2:]) == {"thread 1"}
    for row in picture.rows:
        starts = [sum(row["starts"][: n + 1]) for n in range(len(row["starts"]))]
        ends = [start + length for start, length in zip(starts, row["lengths"], strict=True)]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
        assert 0 <= min(starts) <= max(ends) <= picture.length_ns


def test_the_longest_events_are_drawn_and_the_others_counted(said):
    trace = three_steps().read()
    picture = lanes(trace, None, None, most=2)
    drawn = [length for row in picture.rows for length in row["lengths"]]
    assert len(drawn) == 3
    said.within(picture.notes[0])
    assert 688_000 in drawn


def test_kernels_that_are_shorter_than_operators_are_drawn():
    builder = TraceBuilder().step(1, (0, 1_000))
    for number in range(20):
        begin = 50 * number
        builder.operator("aten::add", (begin, begin + 40))
        builder.launch("add", call=(begin + 8, begin + 35), work=(begin + 36, begin + 37))
    picture = lanes(builder.read(), None, None, most=20)
    [device, step, operators] = [(row["label"], len(row["lengths"])) for row in picture.rows]
    assert (device, step) == (("device 0, stream 7", 20), ("thread 1", 1))
    assert operators == ("thread 1", 9)


def test_what_is_nested_too_deep_or_on_too_many_threads_is_counted():
    nested = TraceBuilder()
    for depth in range(9):
        nested.operator(f"level {depth}", (depth, 100 - depth))
    picture = lanes(nested.read())
    assert (picture.rows[0]["lengths"], len(picture.rows)) == ([100_000], 6)
    assert picture.notes[0].startswith("3 parts are not drawn")
    threads = TraceBuilder()
    for thread in range(1, 251):
        threads.operator("op", (0, thread), thread=thread)
    picture = lanes(threads.read())
    assert len(picture.rows) == 200
    assert picture.notes[0].startswith("50 parts are not drawn")
    assert min(row["lengths"][0] for row in picture.rows) == 51_000


def test_the_path_is_listed_by_name_with_count_and_total():
    builder = TraceBuilder()
    for kernel in range(3):
        begin = 100 * kernel
        work = (begin + 12, begin + 40 + 10 * kernel)
        builder.launch("gemm", call=(begin + 5, begin + 10), work=work)
        builder.call("cudaDeviceSynchronize", (begin + 10, begin + 95))
    trace = builder.launch("relu", call=(300, 305), work=(310, 380)).read()
    path = trace.critical_path()
    picture = lanes(trace, None, path)
    names = [picture.names[name] for name in picture.rows[0]["names"]]
    assert names.count("kernel: gemm") == 3
    listed = [picture.names[picture.rows[row]["names"][place]] for row, place, _ in picture.longest]
    assert len(set(listed)) == len(listed)
    [gemm] = [segment for segment in picture.longest if " kernel: gemm" in segment.words]
    totals = {
        row["name"]: row["duration_ns"] for row in path.name_totals if row["kind"] == "kernel"
    }
    assert gemm.words.startswith(f"{duration(totals['gemm'])} (")
    assert gemm.words.endswith("3 segments, longest 48.0 µs")
    assert picture.rows[gemm.row]["lengths"][gemm.place] == 48_000
    page = page_text(Page("t", [], [Section("one", "One", [picture])]))
    places = re.findall(r'data-segment="(\d+)">', page)
    assert [int(place) for place in places] == [segment.place for segment in picture.longest]


def test_events_and_launching_operators_are_known_of_what_is_drawn():
    trace = three_steps().read()
    picture = lanes(trace, None, trace.critical_path(1))
    for row in picture.rows[1:]:
        events = list(accumulate(row["events"]))
        assert trace.events["name"].gather(events).to_list() == [
            picture.names[name] for name in row["names"]
        ]
    kernels = next(row for row in picture.rows if "stream" in row["label"])
    assert {picture.names[name - 1] for name in kernels["launchers"]} == {"aten::mm"}


def test_a_step_that_is_far_longer_does_not_squash_the_others(said):
    builder = TraceBuilder()
    for step, (begin, end) in enumerate([(0, 5_000), (5_000, 5_400), (5_400, 5_850)]):
        builder.step(step, (begin, end))
        builder.launch("gemm", call=(begin, begin + 5), work=(begin + 6, end - 10))
    picture = step_lanes(builder.read())
    first, *others = picture.rows
    assert picture.length_ns == max(sum(row["lengths"]) for row in others) < 1_000_000
    said(first["label"])
    assert sum(first["lengths"]) == picture.length_ns
    assert picture.notes == ["1 step takes more than 3 times the median; the bar is cut off."]
    trace = builder.read()
    columns = step_columns(trace, choose_window(trace, 1))
    assert [column.length for column in columns.columns[::2]] == [1, 1]
    assert columns.chosen == columns.columns[1].label == "1"
    assert columns.notes == ["1 step takes more than 3 times the median; it is drawn shorter."]


def test_a_colour_stands_for_one_thing_and_the_legend_says_which():
    trace = three_steps().read()
    picture = lanes(trace, None, trace.critical_path(1))
    assert dict(picture.legend)["kernel"] == "kernels"
    assert {color for color, _ in picture.legend} == set(picture.colors)
    assert len(picture.colors) == len(picture.kinds)


def test_steps_are_lanes_of_what_the_device_did():
    trace = three_steps().read()
    picture = step_lanes(trace)
    lengths = trace.steps["window_end_ns"] - trace.steps["window_start_ns"]
    assert [row["label"] for row in picture.rows] == ["step 0", "step 1", "step 2"]
    assert [sum(row["lengths"]) for row in picture.rows] == lengths.to_list()
    assert step_lanes(TraceBuilder().kernel("gemm", (0, 5)).read()) is None


def test_of_many_steps_the_longest_are_drawn(said):
    builder = TraceBuilder()
    for step in range(30):
        begin = 100 * step
        builder.step(step, (begin, begin + 60 + step))
        builder.launch("gemm", call=(begin, begin + 5), work=(begin + 6, begin + 50))
    picture = step_lanes(builder.read())
    assert len(picture.rows) == 24
    said.within(picture.label)


def test_a_step_of_either_side_begins_at_the_same_place():
    def run(load):
        builder = TraceBuilder()
        for step in range(6):
            begin = 1_000 * step
            builder.step(step, (begin, begin + 950))
            builder.python("data.py(7): load", (begin, begin + load))
            builder.operator("aten::mm", (begin + load, begin + load + 20))
            builder.launch(
                "gemm", call=(begin + load + 5, begin + load + 9), work=(begin + 500, begin + 900)
            )
        return builder.read()

    base, new = run(400), run(50)
    pictures = diff_lanes(longpole.diff(base, new))
    assert [picture.label.split(":")[0] for picture in pictures] == ["Base", "New side"]
    assert [picture.rows[0]["label"] for picture in pictures] == ["critical path"] * 2
    assert [intervals(picture.rows[0])[0][0] for picture in pictures] == [0, 0]
    assert all(picture.longest for picture in pictures)
    assert len({picture.length_ns for picture in pictures}) == 1


def test_a_step_that_is_much_shorter_has_its_own_axis():
    def run(length):
        builder = TraceBuilder()
        for step in range(6):
            begin = length * step
            builder.step(step, (begin, begin + length - 1))
            builder.launch("gemm", call=(begin, begin + 9), work=(begin + 9, begin + length - 5))
            builder.call("cudaDeviceSynchronize", (begin + 20, begin + length - 2))
        return builder.read()

    base, new = run(9_000), run(90)
    old, now = diff_lanes(longpole.diff(base, new))
    assert old.length_ns > 50 * now.length_ns
    assert now.label.endswith("on an axis of its own.")
    assert sum(now.rows[0]["lengths"]) == now.length_ns


def test_sides_without_steps_are_drawn_as_a_whole():
    def run(length):
        builder = TraceBuilder().operator("aten::mm", (0, 20))
        return builder.launch("gemm", call=(5, 9), work=(9, length)).read()

    base, new = run(100), run(300)
    pictures = diff_lanes(longpole.diff(base, new))
    assert [sum(picture.rows[0]["lengths"]) for picture in pictures] == [100_000, 300_000]


def test_of_several_runs_the_one_is_drawn_that_the_details_are_about():
    def run(length):
        builder = TraceBuilder()
        for step in range(6):
            begin = length * step
            builder.step(step, (begin, begin + length - 1))
            builder.launch("gemm", call=(begin, begin + 9), work=(begin + 9, begin + length - 5))
            builder.call("cudaDeviceSynchronize", (begin + 20, begin + length - 2))
        return builder.read()

    base = [run(500), run(600), run(700)]
    new = [run(100), run(200), run(300)]
    kernels = [
        max(row["lengths"])
        for picture in diff_lanes(longpole.diff(base, new))
        for row in picture.rows
        if row["label"].endswith("stream 7")
    ]
    assert kernels == [586_000, 186_000]


def test_the_steps_of_a_comparison_are_drawn_as_recorded(said):
    base, new = (longpole.read_trace(RECORDINGS / f"decode.{it}.json.gz") for it in SIDES)
    found = longpole.diff(base, new)
    assert found.base.mean_ns < found.base.recorded_mean_ns
    pictures = diff_lanes(found)
    said.within(pictures[0].label)
    windows = [choose_window(trace) for trace in (base, new)]
    lengths = [sum(picture.rows[0]["lengths"]) for picture in pictures]
    assert lengths == [window.duration_ns for window in windows]


def flame_of(builder, time="host"):
    trace = builder.read()
    return flame_lanes(trace, choose_window(trace), time)


def test_a_frame_lies_below_its_caller_and_is_as_wide_as_its_time():
    builder = TraceBuilder().operator("outer", (0, 100))
    builder.operator("left", (0, 30)).operator("right", (40, 90)).operator("leaf", (40, 60))
    picture = flame_of(builder)
    assert picture.is_flame
    outer, inner, leaf = ([*zip(intervals(row), row["names"], strict=True)] for row in picture.rows)
    named = [[(picture.names[name], span) for span, name in row] for row in (outer, inner, leaf)]
    assert named[0] == [("outer ← thread 1", (0, 100_000))]
    # The self time of a frame comes first, then its callees by name.
    assert named[1] == [("left", (20_000, 50_000)), ("right", (50_000, 100_000))]
    assert named[2] == [("leaf", (80_000, 100_000))]


def test_a_box_of_the_path_names_the_code_and_its_colour_the_kind():
    trace = three_steps().read()
    picture = flame_lanes(trace, choose_window(trace), "path")
    assert not [name for name in picture.names if "[" in name]
    assert "host gap" in picture.kinds


@pytest.mark.parametrize("time", TITLES)
def test_all_time_is_in_the_graph(time):
    trace = three_steps().read()
    window = choose_window(trace)
    picture = flame_lanes(trace, window, time)
    whole = {
        "path": window.duration_ns,
        "device": 718_000,
        "host": picture.length_ns,
    }[time]
    assert sum(picture.rows[0]["lengths"]) == picture.length_ns == whole
    for above, below in zip(picture.rows, picture.rows[1:], strict=False):
        for start, end in intervals(below):
            assert any(first <= start and end <= last for first, last in intervals(above))


def test_what_is_too_narrow_or_too_deep_for_a_flame_graph_is_counted():
    builder = TraceBuilder().operator("outer", (0, 100_000)).operator("small", (5, 10))
    why = "narrower than 0.1 % of the graph or below 40 others"
    assert flame_of(builder).notes == [f"1 frame is not drawn: {why}."]
    deep = TraceBuilder()
    for depth in range(60):
        deep.operator(f"level {depth}", (0, round(1_000_000 * 0.94**depth)))
    picture = flame_of(deep)
    assert len(picture.rows) == 40
    # What is below a frame that is not drawn is not counted.
    assert picture.notes == [f"1 frame is not drawn: {why}."]


def test_callers_that_a_frame_takes_all_time_of_share_its_box():
    builder = TraceBuilder()
    for depth in range(6):
        builder.operator(f"level {depth}", (depth, 10_000 - depth))
    picture = flame_of(builder)
    assert picture.names == ["level 5 ← level 4 ← … ← thread 1"]


def test_a_trace_without_such_time_has_no_flame_graph():
    assert flame_of(TraceBuilder().operator("aten::mm", (0, 10)), "device") is None


def test_names_of_threads_cannot_turn_the_text_around():
    builder = TraceBuilder().operator("aten::mm", (0, 10))
    builder.event(ph="M", name="thread_name", pid=100, tid=1, args={"name": "a\u202eb"})
    picture = lanes(builder.read())
    assert "a\\u202eb" in picture.rows[0]["label"]


def test_names_in_pictures_cannot_end_their_data():
    name = "</script><script>alert(1)</script>\u2028\u202e"
    picture = flame_of(TraceBuilder().operator(name, (0, 10)))
    page = page_text(Page("t", [], [Section("one", "One", [picture])]))
    [data] = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert "alert(1)" in json.loads(data)["names"][0]
    assert page.count("</script>") == 2
    assert "\u202e" not in page
