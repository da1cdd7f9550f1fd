"""What operators, modules and Python functions took."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import longpole
from longpole.cli import program
from longpole.report.text import text
from longpole.testing import TraceBuilder
from longpole.trace.sweeps import activities
from real_traces import real_traces
from strategies import traces
from styles import STYLES, document

QUESTIONS = [
    longpole.operators,
    lambda trace, window: longpole.operators(trace, window, shapes=True),
    longpole.modules,
    lambda trace, window: longpole.modules(trace, window, by="path"),
    longpole.functions,
]
NUMBER = {"Sequence number": 7, "Fwd thread id": 0}
BACKWARD = {"Sequence number": 7, "Fwd thread id": 1}


def training():
    """Build a linear layer with its backward pass on another thread, and an optimizer."""
    return (
        TraceBuilder()
        .python("nn.Module: Net_0", (0, 60))
        .python("nn.Module: Linear_3", (2, 50))
        .operator("aten::linear", (3, 40), **NUMBER)
        .operator("aten::addmm", (5, 30), **NUMBER)
        .launch("gemm", call=(10, 12), work=(20, 60))
        .operator("AddmmBackward0", (100, 140), thread=2, **BACKWARD)
        .operator("aten::mm", (105, 120), thread=2)
        .launch("gemm_nt", call=(110, 112), work=(120, 170), thread=2)
        .python("optim.py(5): step", (150, 180))
        .launch("fill", call=(160, 162), work=(170, 177))
        .kernel("orphan", (180, 181))
    )


def figures(found, *columns):
    return {row[0]: row[1:] for row in found.rows.select("name", *columns).iter_rows() if row[0]}


@st.composite
def nested_operators(draw):
    """Draw operators that nest and launch kernels, and the spans of Python functions anywhere."""
    builder, depths = TraceBuilder(), draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    for index, depth in enumerate(depths):
        for level in range(depth):
            start, end = 100 * index + 10 * level, 100 * index + 90 - 10 * level
            builder.operator(f"aten::{level % 3}", (start, end))
            builder.launch("k", call=(start + 2, start + 4), work=(1000 + start, 1005 + start))
    times = st.integers(0, 100 * len(depths))
    return builder, draw(st.lists(st.tuples(times, times).map(sorted), max_size=4))


@given(nested_operators())
def test_python_functions_that_cross_operators_take_nothing_from_them(drawn):
    builder, functions = drawn
    columns = "count", "total_ns", "n_activities", "device_self_ns", "device_ns"
    alone = figures(longpole.operators(builder.read()), *columns)
    for start, end in functions:
        builder.python(f"model.py(1): f{start}", (start, end))
    assert figures(longpole.operators(builder.read()), *columns) == alone


def test_a_function_inside_itself_counts_once_at_whatever_addresses_its_objects_are():
    builder = TraceBuilder().python("<function f at 0x7f12>", (0, 100))
    builder.python("main.py(1): g", (5, 90)).python("<function f at 0x7fab>", (10, 50))
    found = longpole.functions(builder.launch("k", call=(20, 22), work=(30, 37)).read())
    assert figures(found, "count", "total_ns", "device_ns") == {
        "<function f>": (2, 100_000, 7_000),
        "main.py(1): g": (1, 85_000, 7_000),
    }


def test_an_operator_has_its_own_time_that_of_what_is_inside_and_its_backward_pass():
    found = longpole.operators(training().read())
    assert figures(found, "device_self_ns", "device_ns", "backward_ns") == {
        "aten::mm": (50_000, 50_000, 0),
        "aten::addmm": (40_000, 40_000, 50_000),
        "AddmmBackward0": (0, 50_000, 0),
        "aten::linear": (0, 40_000, 50_000),
    }


def test_what_no_operator_launched_has_its_own_row():
    rest = longpole.operators(training().read()).rows.filter(pl.col("row") != "frame")
    assert rest.select("row", "n_activities", "device_self_ns").rows() == [
        ("outside", 1, 7_000),
        ("unlinked", 1, 1_000),
    ]


def test_a_module_takes_the_backward_pass_of_its_operators():
    found = longpole.modules(training().read(), by="path")
    columns = ("device_self_ns", "device_ns", "backward_self_ns", "backward_ns")
    assert figures(found, *columns) == {
        "Net_0": (0, 40_000, 0, 50_000),
        "Net_0/Linear_3": (40_000, 40_000, 50_000, 50_000),
    }


def test_modules_that_differ_in_numbers_only_are_one_layer():
    builder = TraceBuilder().python("nn.Module: Net_0", (0, 60))
    for number, start in enumerate((5, 30)):
        builder = builder.python(f"nn.Module: Linear_{number}", (start, start + 20))
        builder = builder.launch("gemm", call=(start, start + 1), work=(start + 1, start + 11))
    found = longpole.modules(builder.read())
    assert figures(found, "count", "device_ns") == {
        "Net": (1, 20_000),
        "Net/Linear": (2, 20_000),
    }


def test_annotations_and_recorded_hierarchies_name_modules_too():
    path = {"Module Hierarchy": "TOP(Net).layers.0(Linear)"}
    builder = TraceBuilder().annotation("layer 1", (0, 20)).launch("a", call=(1, 2), work=(2, 7))
    builder = builder.operator("aten::addmm", (30, 40), **path)
    found = longpole.modules(
        builder.launch("b", call=(31, 32), work=(32, 35)).read(), by="path", annotations="^layer"
    )
    assert figures(found, "device_self_ns", "device_ns") == {
        "layer 1": (5_000, 5_000),
        "TOP(Net)/layers/0(Linear)": (3_000, 3_000),
        "TOP(Net)/layers": (0, 3_000),
        "TOP(Net)": (0, 3_000),
    }


def test_a_function_takes_the_backward_pass_of_what_it_called():
    found = longpole.functions(training().read())
    assert figures(found, "device_self_ns", "backward_self_ns") == {
        "nn.Module: Linear_3": (40_000, 50_000),
        "optim.py(5): step": (7_000, 0),
        "nn.Module: Net_0": (0, 0),
    }


def test_an_operator_inside_another_one_of_its_name_counts_once():
    builder = TraceBuilder().operator("aten::to", (0, 40)).operator("aten::to", (5, 30))
    found = longpole.operators(builder.launch("copy", call=(6, 7), work=(8, 18)).read())
    columns = ("count", "total_ns", "device_ns", "n_activities")
    assert figures(found, *columns) == {"aten::to": (2, 40_000, 10_000, 1)}


def test_shapes_tell_operators_apart():
    builder = TraceBuilder()
    for start, size in ((0, 2), (20, 4), (40, 4)):
        builder = builder.operator(
            "aten::mm",
            (start, start + 10),
            **{"Input Dims": [[size, 3], [3, size]], "Input type": ["float", "c10::Half"]},
        ).launch("gemm", call=(start, start + 1), work=(start + 2, start + 2 + size))
    rows = longpole.operators(builder.read(), shapes=True).rows.filter(row="frame")
    assert rows.select("shapes", "dtypes", "count", "device_ns").rows() == [
        ([[4, 3], [3, 4]], ["float", "c10::Half"], 2, 8_000),
        ([[2, 3], [3, 2]], ["float", "c10::Half"], 1, 2_000),
    ]


def test_a_condition_chooses_the_activities_that_count():
    found = longpole.operators(training().read(), where="name LIKE 'gemm%' AND duration_ns < 50000")
    assert (found.device_ns, figures(found, "device_ns")["aten::mm"]) == (40_000, (0,))
    with pytest.raises(ValueError, match=r"the columns are .*; strings need quotes, as in kind = "):
        longpole.functions(training().read(), where="nme = 'gemm'")


def test_a_window_clips_what_counts():
    trace = training().step(1, (0, 100)).step(2, (100, 200)).read()
    first = longpole.operators(trace, longpole.choose_window(trace, 1))
    second = longpole.operators(trace, longpole.choose_window(trace, 2))
    assert figures(first, "device_ns", "backward_ns")["aten::addmm"] == (40_000, 0)
    assert figures(second, "device_ns", "backward_ns")["aten::addmm"] == (0, 50_000)


def test_a_trace_without_modules_says_what_to_record():
    trace = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 2)).read()
    for question, word in ((longpole.modules, "with_stack"), (longpole.functions, "with_stack")):
        assert word in question(trace).blocks()[-1].text


def closes(trace):
    window = longpole.choose_window(trace, whole=True)
    if window is None:
        return
    works = window.clip(activities(trace))
    for question in QUESTIONS:
        rows = question(trace, window).rows
        is_twice = "backward_self_ns" not in rows.columns
        own = rows["device_self_ns"].sum() + (0 if is_twice else rows["backward_self_ns"].sum())
        assert own == works["inside_ns"].sum() == question(trace, window).device_ns


@given(events=traces())
def test_the_rows_of_every_question_sum_to_the_time_of_all_activities(events):
    closes(longpole.read_trace(document(events, STYLES["compact"])))


@given(events=traces(brackets=False))
def test_the_order_of_the_file_changes_nothing(events):
    forward, backward = (
        longpole.read_trace(document(order, STYLES["compact"])) for order in (events, events[::-1])
    )
    for question in QUESTIONS:
        one, two = (
            question(trace, longpole.choose_window(trace, whole=True)).rows
            for trace in (forward, backward)
        )
        assert_frame_equal(one, two)


@pytest.mark.parametrize("path", real_traces(100_000))
def test_the_rows_of_real_traces_sum_to_the_time_of_all_activities(path):
    if not path.is_file():
        pytest.skip(f"no traces in {path}")
    closes(longpole.read_trace(path))


def model():
    """A model of two layers: the first takes long on its thread, the second on the device."""
    builder = TraceBuilder()
    for name, span in (
        ("Net_0", (0, 100)),
        ("Slow_0", (1, 60)),
        ("Linear_0", (2, 50)),
        ("Fast_0", (61, 90)),
    ):
        builder.python(f"nn.Module: {name}", span)
    builder.launch("add", call=(70, 72), work=(75, 95))
    return builder.launch("gemm", call=(10, 12), work=(20, 21)).read()


def shown_names(found):
    (table, *_) = found.blocks()
    return [row[0] for row in table.rows]


def test_modules_are_sorted_before_they_are_cut_and_keep_their_parents():
    by_device = longpole.modules(model(), by="path", top=1)
    assert shown_names(by_device) == ["Net_0", "· Fast_0"]
    by_host = longpole.modules(model(), by="path", sort="self_ns", top=2)
    assert by_host.rows["name"].to_list()[:2] == ["Net_0/Slow_0/Linear_0", "Net_0/Fast_0"]
    assert shown_names(by_host) == ["Net_0", "· Fast_0", "· Slow_0", "· · Linear_0"]


def test_rows_of_no_frame_stay_the_last():
    trace = TraceBuilder().launch("gemm", call=(10, 12), work=(20, 90))
    found = longpole.operators(trace.operator("aten::mm", (0, 5)).read(), sort="device_ns")
    assert found.rows["row"].to_list() == ["frame", "outside", "unlinked"]


def test_a_column_that_frames_lack_is_named(capsys, tmp_path):
    with pytest.raises(ValueError, match=r"no column 'host': the columns are row, name, count"):
        longpole.functions(TraceBuilder().python("train.py(3): step", (0, 9)).read(), sort="host")
    path = str(TraceBuilder().operator("aten::mm", (0, 5)).write(tmp_path / "trace.json"))
    assert program.run(["table", path, "operators", "--sort", "host"]) == 2
    assert "no column 'host'" in capsys.readouterr().err


def test_the_title_of_shares_says_that_they_are_of_self_time():
    trace = model()
    titles = [
        found.blocks()[0].columns[-1].title
        for found in (longpole.operators(trace), longpole.modules(trace))
    ]
    assert titles == ["self share of device time", "self share of device time, with backward"]


def test_shapes_that_were_not_recorded_are_asked_for():
    without = TraceBuilder().operator("aten::mm", (0, 5)).read()
    *_, hint = longpole.operators(without, shapes=True).blocks()
    assert "record_shapes=True" in hint.text
    assert len(longpole.operators(without).blocks()) == 1
    inputs = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    shaped = TraceBuilder().operator("aten::mm", (0, 5), **inputs).read()
    assert len(longpole.operators(shaped, shapes=True).blocks()) == 1


def test_a_step_has_its_operators_although_they_ran_before_its_window(said):
    builder = TraceBuilder()
    for step in range(3):
        start = 16 * step
        builder.step(step, (start, start + 16)).operator("aten::mm", (start + 1, start + 9))
        builder.launch("gemm", call=(start + 2, start + 3), work=(5 + 50 * step, 54 + 50 * step))
    trace = builder.read()
    window = longpole.choose_window(trace, 2)
    said.within(window.reason)
    found = longpole.operators(trace, window)
    assert found.rows.select("count", "self_ns", "n_activities").row(0) == (1, 7_000, 1)
    assert len(found.blocks()) == 1


def test_the_most_host_time_comes_first_where_the_host_limits(said):
    builder = TraceBuilder()
    builder.operator("aten::slow_on_host", (0, 900)).launch("add", call=(890, 895), work=(896, 899))
    builder.operator("aten::mm", (900, 950)).launch("gemm", call=(940, 945), work=(946, 960))
    trace = builder.operator("aten::slow_on_host", (960, 1900)).read()
    assert trace.verdict().sides == ("host",)
    found = longpole.operators(trace)
    assert found.rows["name"].to_list()[:2] == ["aten::slow_on_host", "aten::mm"]
    said.within(" ".join(text(found.blocks()).split()))
    by_device = longpole.operators(trace, sort="device_self_ns")
    assert by_device.rows["name"].to_list()[:2] == ["aten::mm", "aten::slow_on_host"]


def test_the_most_device_time_comes_first_where_kernels_limit():
    builder = TraceBuilder().operator("aten::slow_on_host", (0, 100))
    builder.launch("add", call=(10, 15), work=(20, 30))
    builder.operator("aten::mm", (110, 130)).launch("gemm", call=(115, 120), work=(125, 900))
    found = longpole.operators(builder.read())
    assert found.rows["name"].to_list()[:2] == ["aten::mm", "aten::slow_on_host"]
