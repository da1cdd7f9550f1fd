"""`longpole path --in-order`: the operators on the critical path, in time order."""

import json

import pytest

import longpole
from longpole.cli.program import run
from longpole.tables.path_order import in_order, sections_table
from longpole.testing import TraceBuilder

LAYERS = 6


@pytest.fixture
def trace():
    """Return a step of layers on the host that end with a long kernel."""
    builder = TraceBuilder().step(1, (0, 1_000)).annotation("forward", (50, 700))
    for start in range(100, 100 + 100 * LAYERS, 100):
        builder.operator("aten::linear", (start, start + 80)).operator(
            "aten::t", (start, start + 9)
        )
    builder.operator("aten::mm", (690, 730))
    builder.launch("gemm", call=(700, 710), work=(715, 940))
    return builder.call("cudaDeviceSynchronize", (740, 950))


def told(trace):
    read = trace.read()
    path = read.critical_path()
    return path, in_order(path, read)


def test_segments_of_an_operator_and_of_what_is_nested_in_it_are_one_stretch(trace):
    path, sections = told(trace)
    host = [row for row in sections if row["name"] == "aten::linear"]
    assert len(host) == LAYERS
    assert [row["duration_ns"] for row in host] == [80_000] * LAYERS
    assert {(row["side"], row["count"], row["kind"]) for row in host} == {("host", 2, "operator")}
    assert {row["annotation"] for row in host} == {"forward"}
    assert len(path.segments) > len(sections)


def test_an_activity_has_the_operator_that_launched_it(trace):
    _, sections = told(trace)
    (kernel,) = (row for row in sections if row["kind"] == "kernel")
    assert (kernel["name"], kernel["side"]) == ("aten::mm", "device")


def test_stretches_follow_one_another_and_cover_the_window(trace):
    path, sections = told(trace)
    ends = [row["start_ns"] + row["duration_ns"] for row in sections]
    assert [row["start_ns"] for row in sections] == [0, *ends[:-1]]
    assert ends[-1] == path.length_ns
    assert sum(row["share"] for row in sections) == pytest.approx(1)


def test_time_outside_operators_is_called_so_and_not_by_the_step(said, trace):
    _, sections = told(trace)
    said.within({row["name"] for row in sections})
    assert not any(row["name"].startswith("ProfilerStep") for row in sections)


def test_short_stretches_between_the_longest_are_one_row(trace):
    path, sections = told(trace)
    rows = sections_table(sections, 1).rows
    before, longest, after = rows
    assert longest[4] == "aten::mm"
    assert before[4].startswith("15 parts: aten::linear 480 µs, forward 160 µs, ")
    assert before[1] + longest[1] + after[1] == path.length_ns
    assert (before[3], longest[3]) == ("host", "device")


def test_a_data_loader_is_one_stretch_whatever_runs_in_it():
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    builder = TraceBuilder().step(1, (0, 100)).annotation(loader, (10, 70))
    builder.operator("aten::stack", (20, 40)).operator("aten::mm", (75, 95))
    _, sections = told(builder)
    assert [row["name"] for row in sections if row["kind"] == "data_loading"] == [loader]


def test_the_command_shows_the_order_in_every_format(trace, tmp_path, capsys):
    path = str(trace.write(tmp_path / "trace.json"))
    assert run(["path", path, "--in-order", "--top", "2"]) == 0
    assert ", in time order:" in capsys.readouterr().out
    assert run(["path", path, "--in-order", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["in_order"]
    read = longpole.read_trace(path)
    assert rows == in_order(read.critical_path(), read)
    assert run(["path", path, "--in-order", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1
    assert run(["path", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["in_order"] is None


def test_an_operator_is_shown_with_the_sizes_of_its_inputs():
    sizes = {"Input Dims": [[8, 16], [16, 4]]}
    builder = TraceBuilder().step(1, (0, 100)).operator("aten::mm", (10, 90), **sizes)
    _, sections = told(builder)
    [row] = (row for row in sections if row["name"] == "aten::mm")
    assert row["inputs"] == "[[8, 16], [16, 4]]"
    shown = [row[4] for row in sections_table(sections, 10).rows]
    assert "aten::mm [8, 16] [16, 4]" in shown
