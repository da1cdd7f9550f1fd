"""Kernels of replayed CUDA graphs get the operators of a trace of their capture."""

from __future__ import annotations

import json

import polars as pl
import pytest

import longpole
from longpole.cli.program import run as run_command
from longpole.testing import TraceBuilder
from oracles.simulator import Machine, Run
from oracles.simulator.branching import branched_graph
from oracles.simulator.programs import captured_operators, replayed, write_capture

SEEDS = range(70_000, 70_004)


def recorded(tmp_path, program, seed):
    """Write the trace of a program that replays graphs, and that of their capture."""
    run = Run(program, Machine(seed=seed))
    order = run.write(tmp_path / "replay.json")
    graphs = list(replayed(run.program.main))
    capture = write_capture(tmp_path / "capture.json", graphs, seed)
    return run, order, graphs, capture


def truth(run, order, graphs, seed):
    """Return the true operators of each node by its place in the file."""
    operators = captured_operators(graphs[0], seed)
    row = {record: row for row, record in enumerate(order)}
    works = [work for work in run.timeline.activities if work.is_work]
    of_graphs = [work for work in works if work.launched_by.name == "cudaGraphLaunch"]
    return {
        row[run.truth.position(work)]: operators[work.place.part - 1]
        for work in of_graphs
        if work.is_recorded
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_on_several_streams_are_joined_by_their_numbers(tmp_path, seed):
    program = branched_graph(seed, streams=4, replays=3, tell_ids=True)
    run, order, graphs, capture = recorded(tmp_path, program, seed)
    trace = longpole.read_trace(tmp_path / "replay.json", capture_traces=[capture])
    nodes = trace.graph_nodes.join(trace.events.select("event", "position"), on="event")
    found = dict(nodes.select("position", "operators").iter_rows())
    true = truth(run, order, graphs, seed)
    assert {place: tuple(found[place]) for place in true} == true
    assert set(nodes["joined_by"]) == {"order"}
    assert set(nodes["capture"]) == {1}


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_on_one_stream_are_joined_by_their_order(tmp_path, seed):
    program = branched_graph(seed, streams=1, replays=3)
    run, order, graphs, capture = recorded(tmp_path, program, seed)
    trace = longpole.read_trace(tmp_path / "replay.json", capture_traces=[capture])
    nodes = trace.graph_nodes.join(trace.events.select("event", "position"), on="event")
    found = dict(nodes.select("position", "operators").iter_rows())
    true = truth(run, order, graphs, seed)
    assert len(true) > 0
    assert {place: tuple(found[place]) for place in true} == true


def test_nodes_on_several_streams_without_numbers_are_joined_with_nothing(tmp_path):
    program = branched_graph(70_000, streams=4, replays=3)
    _, _, _, capture = recorded(tmp_path, program, 70_000)
    trace = longpole.read_trace(tmp_path / "replay.json", capture_traces=[capture])
    assert trace.graph_nodes["joined_by"].is_null().all()


def captured(*operators, nodes=None, thread=1):
    """Capture one kernel for each operator, with the numbers of their nodes."""
    builder = TraceBuilder().call("cudaStreamBeginCapture", (0, 1))
    for place, name in enumerate(operators):
        start = 10 * place + 5
        builder.operator(name, (start, start + 8), thread=thread)
        arguments = {"correlation": 50 + place}
        if nodes is not None:
            arguments["graph node id"] = nodes[place]
        where = {"ph": "X", "cat": "cuda_runtime", "pid": 100, "tid": thread}
        builder.event(**where, name="cudaLaunchKernel", ts=start + 2, dur=3, args=arguments)
    return builder.call("cudaStreamEndCapture", (10 * len(operators) + 10, 500))


def launched(*names, streams=None, nodes=None, annotation=None):
    """Launch a graph of kernels."""
    builder = TraceBuilder().call("cudaGraphLaunch", (600, 610), correlation=7)
    for place, name in enumerate(names):
        stream = 7 if streams is None else streams[place]
        arguments = {"device": 0, "stream": stream, "correlation": 7}
        if nodes is not None:
            arguments |= {"graph id": 3, "graph node id": nodes[place]}
        if annotation is not None:
            arguments["name"] = annotation
        span = {"ts": 620 + 20 * place, "dur": 15}
        builder.event(ph="X", cat="kernel", name=name, pid=0, tid=stream, args=arguments, **span)
    return builder


def operators_of(trace):
    return trace.graph_nodes["operator_name"].to_list()


def test_numbers_of_nodes_that_the_capture_has_decide():
    capture = captured("aten::mm", "aten::add", nodes=[9, 8]).read()
    trace = launched("gemm", "add", nodes=[9, 8]).read(capture_traces=[capture])
    assert operators_of(trace) == ["aten::mm", "aten::add"]
    assert set(trace.graph_nodes["joined_by"]) == {"node_id"}


def test_calls_of_other_threads_take_part_in_a_capture():
    capture = captured("aten::mm", "AddmmBackward0", thread=2).read()
    trace = launched("gemm", "gemm").read(capture_traces=[capture])
    assert operators_of(trace) == ["aten::mm", "AddmmBackward0"]


def test_a_capture_with_other_nodes_is_not_the_one():
    capture = captured("aten::mm").read()
    trace = launched("gemm", "add").read(capture_traces=[capture])
    assert operators_of(trace) == [None, None]


def test_of_two_captures_that_fit_one_graph_and_differ_none_is_chosen():
    captures = [captured("aten::mm").read(), captured("aten::add").read()]
    assert operators_of(launched("gemm").read(capture_traces=captures)) == [None]
    alike = [captured("aten::mm").read(), captured("aten::mm").read()]
    assert operators_of(launched("gemm").read(capture_traces=alike)) == ["aten::mm"]


def test_a_trace_that_holds_its_capture_needs_no_other():
    document = json.loads(captured("aten::mm").to_bytes())
    document["traceEvents"] += json.loads(launched("gemm").to_bytes())["traceEvents"]
    trace = longpole.read_trace(json.dumps(document).encode())
    assert operators_of(trace) == ["aten::mm"]
    assert trace.graph_nodes["capture"].to_list() == [0]


def test_annotations_that_torch_wrote_into_the_trace_are_read():
    trace = launched("gemm", annotation="attention").read()
    assert trace.graph_nodes["annotation"].to_list() == ["attention"]
    found = longpole.graph_kernels(trace, where="annotation = 'attention'")
    assert found.select("annotation", "name", "count").rows() == [("attention", "gemm", 1)]


def test_the_table_sums_up_by_operator(tmp_path):
    capture = captured("aten::mm", "aten::mm", "aten::add").write(tmp_path / "capture.json")
    trace = launched("gemm", "gemm", "add").read(capture_traces=[capture])
    rows = longpole.graph_kernels(trace).select("operator_name", "count", "duration_ns").rows()
    assert rows == [("aten::mm", 2, 30_000), ("aten::add", 1, 15_000)]


def test_the_command_takes_the_trace_of_the_capture(tmp_path, capsys):
    capture = captured("aten::mm").write(tmp_path / "capture.json")
    replay = launched("gemm").write(tmp_path / "replay.json")
    asked = ["table", str(replay), "graph_kernels", "--capture-trace", str(capture)]
    assert run_command([*asked, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["rows"]
    assert [(row["operator_name"], row["joined_by"]) for row in rows] == [("aten::mm", "order")]


def test_a_table_that_reads_no_capture_refuses_one(tmp_path, capsys):
    capture = captured("aten::mm").write(tmp_path / "capture.json")
    replay = launched("gemm").write(tmp_path / "replay.json")
    assert run_command(["table", str(replay), "sync", "--capture-trace", str(capture)]) == 2
    told = capsys.readouterr().err
    assert "--capture-trace is an option of" in told
    assert "operators" in told


def test_kernels_of_a_graph_have_their_captured_operator():
    capture = captured("aten::mm", "aten::add").read()
    trace = launched("gemm", "add").read(capture_traces=[capture])
    rows = longpole.kernels(trace).select("name", "operator").rows()
    assert dict(rows) == {"gemm": "aten::mm", "add": "aten::add"}
    assert set(longpole.kernels(launched("gemm").read())["operator"]) == {None}


def test_a_trace_without_graphs_has_no_graph_nodes():
    trace = TraceBuilder().launch("gemm", call=(0, 5), work=(8, 20)).read()
    assert trace.graph_nodes.height == 0
    assert trace.graph_nodes.schema["operators"] == pl.List(pl.String)
    assert longpole.graph_kernels(trace).height == 0
