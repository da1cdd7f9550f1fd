"""Execution traces on the command line: `convert --et`, `check --et` and `chakra`."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

import longpole
from longpole.cli.program import run
from longpole.testing import TraceBuilder
from real_traces import SHARED

ET = {
    "schema": "1.0.1",
    "pid": 1,
    "nodes": [
        {"id": 1, "name": "[pytorch|profiler|execution_graph|process]", "parent": 1},
        {"id": 2, "name": "[pytorch|profiler|execution_graph|thread]", "parent": 1, "tid": 1},
        {"id": 3, "name": "aten::mm", "parent": 2, "tid": 1},
        {"id": 4, "name": "aten::item", "parent": 2, "tid": 1},
    ],
}


@pytest.fixture
def pair(tmp_path):
    builder = (
        TraceBuilder()
        .operator("aten::mm", (0, 20))
        .launch("gemm", call=(5, 10), work=(12, 60))
        .operator("aten::item", (30, 80))
    )
    builder.write(tmp_path / "kineto.json")
    (tmp_path / "et.json").write_text(json.dumps(ET))
    return ["--et", str(tmp_path / "et.json"), str(tmp_path / "kineto.json")]


def test_check_says_what_was_linked(pair, capsys, said):
    assert run(["check", *pair, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert found["nodes"] == {"device": 1, "gap": 1, "operator": 4}
    assert found["dependencies"]["launch"] == 1
    assert run(["check", *pair]) == 0
    said.within(capsys.readouterr().out)


def test_an_execution_trace_with_times_is_written(pair, capsys, tmp_path):
    assert run(["convert", *pair, "-o", str(tmp_path / "et_plus.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert (found["table"], found["rows"]) == ("ET+", 6)
    nodes = {
        node["id"]: node for node in json.loads((tmp_path / "et_plus.json").read_text())["nodes"]
    }
    assert (nodes[3]["ts"], nodes[3]["inclusive_dur"], nodes[4]["exclusive_dur"]) == (0, 20, 50)
    assert run(["convert", *pair, "-o", str(tmp_path / "et_plus.json")]) != 0


@pytest.mark.parametrize("table", [None, "nodes", "dependencies", "unlinked", "collectives"])
def test_tables_of_what_was_linked_are_written(pair, tmp_path, table):
    output = tmp_path / "table.parquet"
    words = [] if table is None else ["--table", table]
    assert run(["convert", *pair, *words, "-o", str(output)]) == 0
    linked = longpole.link_execution_trace(pair[1], pair[2])
    expected = getattr(linked, table or "nodes")
    assert pl.read_parquet(output).cast(expected.schema).equals(expected)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x.et"], "needs the execution trace of the same run, with --et"),
        (["x.csv", "--table", "nodes"], "--table nodes needs the execution trace, with --et"),
        (["x.json", "--no-gaps"], "--no-gaps has no meaning for a trace"),
        (["x.json", "--iteration", "0"], "--iteration has no meaning for a trace"),
        (["x.json", "--workers", "2"], "--workers has no meaning for a trace"),
    ],
)
def test_what_belongs_to_an_execution_trace_needs_one(pair, tmp_path, words, told, capsys):
    output, *options = words
    assert run(["convert", pair[2], "-o", str(tmp_path / output), *options]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x.zip"], "with --et, --output is a folder or ends in .json, .et"),
        (["x.csv", "--table", "kernels"], "with --et, --table is one of nodes, dependencies"),
        (["x.et", "--step", "1"], "a window has no meaning for this file of an execution trace"),
        (["x.csv", "--no-gaps"], "--no-gaps has no meaning for this file"),
    ],
)
def test_what_an_execution_trace_does_not_have_is_refused(pair, tmp_path, words, told, capsys):
    output, *options = words
    assert run(["convert", *pair, "-o", str(tmp_path / output), *options]) == 2
    assert told in capsys.readouterr().err


def test_check_takes_one_trace_with_an_execution_trace(pair, capsys):
    for words in ([*pair, pair[2]], [*pair, "--strict"], [pair[2], "--iteration", "0"]):
        assert run(["check", *words]) == 2
    assert "--iteration needs the execution trace, with --et" in capsys.readouterr().err


def test_a_graph_is_written_checked_shown_and_replayed(pair, capsys, tmp_path):
    graph = str(tmp_path / "rank.0.et")
    assert run(["convert", *pair, "-o", graph]) == 0
    assert run(["chakra", "check", graph]) == 0
    assert "no problems found" in capsys.readouterr().out
    assert run(["chakra", "replay", graph, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["measured_ns"] == 80_000
    assert run(["chakra", "show", graph]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines[1:5]] == [node["name"] for node in ET["nodes"]]


@pytest.fixture
def pair_that_waits_outside(tmp_path):
    """Return a pair whose thread waits for a kernel that no node launched."""
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 2), work=(3, 100))
        .operator("aten::mm", (5, 10))
        .call("cudaDeviceSynchronize", (11, 101))
        .operator("aten::item", (102, 110))
    )
    builder.write(tmp_path / "kineto.json")
    (tmp_path / "et.json").write_text(json.dumps(ET))
    return ["--et", str(tmp_path / "et.json"), str(tmp_path / "kineto.json")]


def test_a_replay_that_misses_the_run_is_warned_about_with_the_place(
    pair_that_waits_outside, capsys, tmp_path
):
    graph = str(tmp_path / "rank.0.et")
    commands = (
        ["check", *pair_that_waits_outside],
        ["convert", *pair_that_waits_outside, "-o", str(tmp_path / "et_plus.json")],
        ["convert", *pair_that_waits_outside, "-o", graph],
        ["chakra", "check", graph],
        ["chakra", "replay", graph],
    )
    for command in commands:
        assert run(command) == 4
        text = capsys.readouterr().err
        assert "the replay takes 16.0 µs of the measured 105 µs (-84.8%)" in text
        assert re.search(r"89\.0 µs of them on (thread|tid) 1 at node 4 \(aten::item\)", text)
        assert "between 0 s and 97.0 µs after the first start" in text
        assert "[replay_misses_the_run]" in text
    assert run([*commands[0], "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["warnings"][0]["count"]) == ("partial", 1)


def test_a_replay_that_takes_too_long_is_not_blamed_on_the_recording(tmp_path, capsys, said):
    builder = TraceBuilder()
    for start in range(0, 1000, 100):  # the kernels overlap, as with dependent launches
        builder.operator("aten::mm", (start, start + 80))
        builder.launch("gemm", call=(start + 5, start + 10), work=(start + 12, start + 188))
    builder.write(tmp_path / "kineto.json")
    operators = [{"id": 3 + n, "name": "aten::mm", "parent": 2, "tid": 1} for n in range(10)]
    nodes = [*ET["nodes"][:2], *operators]
    (tmp_path / "et.json").write_text(json.dumps({**ET, "nodes": nodes}))
    assert run(["check", "--et", str(tmp_path / "et.json"), str(tmp_path / "kineto.json")]) == 4
    text = capsys.readouterr().err
    assert "are too long" in text
    said.within(" ".join(text.split()))
    assert "record both files" not in text


def test_a_replay_that_takes_the_time_of_the_run_is_not_warned_about(pair, capsys):
    assert run(["check", *pair]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not (SHARED / "et_pairs").exists(), reason="no real pairs beside the project")
def test_files_that_do_not_belong_together_end_with_3_and_a_hint(capsys, said):
    pairs = SHARED / "et_pairs"
    execution = str(pairs / "wrong_pair_with_resnet_a100.et.json.gz")
    trace = str(pairs / "resnet_a100.kineto.json.gz")
    assert run(["check", "--et", execution, trace]) == 3
    text = capsys.readouterr().err
    assert "581 the name" in text
    said.within(text)


def test_check_names_the_call_and_what_it_waited_for(capsys, said):
    pairs = SHARED / "et_pairs"
    if not pairs.exists():
        pytest.skip("no real pairs beside the project")
    names = ("alexnet_synth.et.json.gz", "alexnet_synth.kineto.json.gz")
    execution, trace = (str(pairs / name) for name in names)
    assert run(["check", "--et", execution, trace, "--json"]) == 0
    waits = json.loads(capsys.readouterr().out)["data"]["waits"]
    [wait] = [wait for wait in waits if wait["node"] == 182]
    assert (wait["kind"], wait["name"]) == ("sync", "aten::conv2d")
    assert (wait["call"], wait["evidence"]) == ("cudaDeviceSynchronize", "recorded")
    assert run(["check", "--et", execution, trace]) == 0
    text = capsys.readouterr().out
    said.within(text)
    assert f"{len(waits) - 5} more waits: `--json` lists all" in text


@pytest.mark.parametrize(
    ("ends", "awaited"),
    [((200, 220), {"first", "second"}), ((220, 200), {"first", "second"}), ((50, 220), {"second"})],
)
def test_a_device_synchronization_waits_for_every_stream(ends, awaited, tmp_path):
    nodes = [*ET["nodes"], {"id": 5, "name": "aten::sub", "parent": 2, "tid": 1}]
    (tmp_path / "et.json").write_text(json.dumps({**ET, "nodes": nodes}))
    builder = (
        TraceBuilder()
        .operator("aten::mm", (0, 50))
        .launch("first", call=(5, 10), work=(12, ends[0]), stream=7)
        .launch("second", call=(35, 40), work=(42, ends[1]), stream=20)
        .operator("aten::item", (60, 225))
        .call("cudaDeviceSynchronize", (65, 221))
        .operator("aten::sub", (230, 250))
    )
    kineto = builder.write(tmp_path / "kineto.json")
    linked = longpole.link_execution_trace(tmp_path / "et.json", kineto)
    names = dict(linked.nodes.select("node", "name").cast({"name": str}).iter_rows())
    found = linked.dependencies.filter(pl.col("kind") == "sync")
    assert {names[node] for node in found["depends_on"]} == awaited
