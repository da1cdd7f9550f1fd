"""`longpole link` and `longpole chakra`, as a user runs them."""

from __future__ import annotations

import json
import re

import pytest

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
    return ["--et", str(tmp_path / "et.json"), "--kineto", str(tmp_path / "kineto.json")]


def test_link_says_what_was_joined(pair, capsys, tmp_path):
    assert run(["link", *pair, "-o", str(tmp_path / "et_plus.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert found["nodes"] == {"device": 1, "gap": 1, "operator": 4}
    assert found["dependencies"]["launch"] == 1
    nodes = {
        node["id"]: node for node in json.loads((tmp_path / "et_plus.json").read_text())["nodes"]
    }
    assert (nodes[3]["ts"], nodes[3]["inclusive_dur"], nodes[4]["exclusive_dur"]) == (0, 20, 50)
    assert run(["link", *pair, "-o", str(tmp_path / "et_plus.json")]) != 0


def test_the_options_of_chakras_linker_are_taken(pair, capsys):
    theirs = ["--chakra-host-trace", pair[1], "--chakra-device-trace", pair[3], "--rank", "0"]
    assert run(["link", *theirs]) == 0
    assert "Linked by thread order: 2 nodes." in capsys.readouterr().out


def test_a_graph_is_written_checked_shown_and_replayed(pair, capsys, tmp_path):
    graph = str(tmp_path / "rank.0.et")
    assert run(["chakra", "convert", *pair, "-o", graph]) == 0
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
    return ["--et", str(tmp_path / "et.json"), "--kineto", str(tmp_path / "kineto.json")]


def test_a_replay_that_misses_the_run_is_warned_about_with_the_place(
    pair_that_waits_outside, capsys, tmp_path
):
    graph = str(tmp_path / "rank.0.et")
    commands = (
        ["link", *pair_that_waits_outside],
        ["chakra", "convert", *pair_that_waits_outside, "-o", graph],
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


def test_a_replay_that_takes_the_time_of_the_run_is_not_warned_about(pair, capsys):
    assert run(["link", *pair]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not (SHARED / "et_pairs").exists(), reason="no real pairs beside the project")
def test_files_that_do_not_belong_together_end_with_3_and_a_hint(capsys):
    pairs = SHARED / "et_pairs"
    execution = str(pairs / "wrong_pair_with_resnet_a100.et.json.gz")
    trace = str(pairs / "resnet_a100.kineto.json.gz")
    assert run(["link", "--et", execution, "--kineto", trace]) == 3
    text = capsys.readouterr().err
    assert "581 the name" in text
    assert "hint: give the two files of one rank of one run" in text


def test_explain_names_the_call_and_what_it_waited_for(capsys):
    pairs = SHARED / "et_pairs"
    if not pairs.exists():
        pytest.skip("no real pairs beside the project")
    names = ("alexnet_synth.et.json.gz", "alexnet_synth.kineto.json.gz")
    execution, trace = (str(pairs / name) for name in names)
    assert run(["link", "--et", execution, "--kineto", trace, "--explain"]) == 0
    text = capsys.readouterr().out
    assert "sync: node 182 (aten::conv2d) waits, in cudaDeviceSynchronize, for node" in text
