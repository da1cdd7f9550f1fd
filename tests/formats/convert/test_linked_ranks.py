"""The execution traces of several ranks: pairing, matching and the files of a run."""

from __future__ import annotations

import json

import jsonschema
import pytest
from et_schema import decode
from simulated_pairs import execution_trace_of

from longpole import chakra, link_execution_trace
from longpole.cli import program
from longpole.errors import PairError
from longpole.testing import TraceBuilder
from real_traces import FOLDER, SHARED, needs_pairs

RANKS = (0, 1)
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
ARGUMENTS = {
    "Collective name": "allreduce",
    "Process Group Name": "7",
    "Process Group Ranks": "[0, 1]",
    "Group size": 2,
    "In msg nelems": 256,
    "Out msg nelems": 256,
    "dtype": "Float",
}


def kineto(rank):
    late = 40 * rank
    builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 2})
    builder.step(1, (0, 400))
    for number in range(2):
        begin = 100 * number + late
        identity = {"External id": 3 * number + 1, "Record function id": 3 * number + 1}
        builder.operator("aten::mm", (begin, begin + 10), **identity)
        identity = {"External id": 3 * number + 2, "Record function id": 3 * number + 2}
        builder.operator("c10d::allreduce_", (begin + 10, begin + 30), **identity)
        call = (begin + 12, begin + 14)
        builder.call("cudaLaunchKernel", call, correlation=number + 1)
        work = (begin + 20, 100 * number + 90)
        builder.kernel(KERNEL, work, correlation=number + 1)
    document = json.loads(builder.to_bytes())
    kernels = [event for event in document["traceEvents"] if event.get("cat") == "kernel"]
    for number, event in enumerate(kernels):
        event["args"] |= ARGUMENTS | {"Seq": number + 1}
    return document


@pytest.fixture
def files(tmp_path):
    for rank in RANKS:
        document = kineto(rank)
        for event in document["traceEvents"]:
            event["pid"] = 500 + rank if event["pid"] == 100 else event["pid"]
            event.get("args", {}).setdefault("Record function id", 99)
        execution = execution_trace_of(document)
        (tmp_path / f"kineto.{rank}.json").write_text(json.dumps(document))
        # The names of the files say nothing true; the processes do.
        execution["pid"] = 500 + rank
        (tmp_path / f"et.{1 - rank}.json").write_text(json.dumps(execution))
    return tmp_path


def linked(folder):
    return chakra.link_ranks(str(folder / "et.*.json"), str(folder / "kineto.*.json"))


def test_files_are_paired_by_process_before_their_names(files):
    ranks = linked(files)
    assert [(pair.rank, pair.execution[-9:], pair.paired_by) for pair in ranks.pairs] == [
        (0, "et.1.json", "process"),
        (1, "et.0.json", "process"),
    ]


def test_without_processes_the_names_of_the_files_decide(files):
    for rank in RANKS:
        path = files / f"et.{rank}.json"
        path.write_text(path.read_text().replace(f'"pid": {501 - rank}', '"pid": 1'))
    assert [pair.paired_by for pair in linked(files).pairs] == ["rank", "rank"]


def test_a_file_without_a_counterpart_is_refused(files):
    (files / "et.0.json").unlink()
    with pytest.raises(PairError, match="no execution trace of its process or rank"):
        linked(files)


def test_calls_of_ranks_are_matched_and_name_their_nodes(files):
    ranks = linked(files)
    rows = ranks.collectives.select("rank", "group", "sequence", "matched_by", "n_missing").rows()
    assert rows == [(rank, "7", number, "sequence", 0) for number in (1, 2) for rank in RANKS]
    nodes = ranks.link(1).nodes
    names = dict(nodes.select("node", "name").iter_rows())
    assert {names[node] for node in ranks.collectives["node"]} == {KERNEL}
    waits = ranks.collectives.filter(ranks.collectives["rank"] == 0)["wait_ns"]
    assert waits.to_list() == [40_000, 40_000]


def test_a_run_is_written_as_simulators_look_for_it(files, capsys, said):
    inputs = ["--et", str(files / "et.*.json"), str(files / "kineto.*.json")]
    code = program.run(["convert", *inputs, "-o", str(files / "out")])
    text = capsys.readouterr().out
    assert sorted(path.name for path in (files / "out").iterdir()) == [
        "rank.0.et",
        "rank.1.et",
        "rank.groups.json",
    ]
    assert json.loads((files / "out" / "rank.groups.json").read_text()) == {"7": [0, 1]}
    said.within(text)
    for rank in RANKS:
        graph = chakra.read_chakra(files / "out" / f"rank.{rank}.et")
        collectives = [graph.attributes(row) for row in range(len(graph))]
        assert sum("comm_size" in found for found in collectives) == 2
        n_issued, n_nodes = drained(files / "out" / f"rank.{rank}.et")
        assert n_issued == n_nodes
    assert code in {0, 1}


def drained(path):
    """Issue the nodes of a graph as a feeder does; give how many it issues, and how many it has."""
    _, nodes = decode(path.read_bytes())
    waiting = {node.id: set(node.data_deps) for node in nodes}
    assert len(waiting) == len(nodes)
    assert all(source in waiting for node in nodes for source in [*node.data_deps, *node.ctrl_deps])
    dependents = {}
    for id_, sources in waiting.items():
        for source in sources:
            dependents.setdefault(source, []).append(id_)
    ready = [id_ for id_, sources in waiting.items() if not sources]
    n_issued = 0
    while ready:
        id_ = ready.pop()
        n_issued += 1
        for dependent in dependents.get(id_, ()):
            waiting[dependent].remove(id_)
            if not waiting[dependent]:
                ready.append(dependent)
    return n_issued, len(nodes)


@needs_pairs
def test_four_real_ranks_in_whole_microseconds_become_graphs_that_drain(tmp_path, capsys, said):
    folder = FOLDER / "dlrm"
    pairs = ["--et", str(folder / "*.et.json.gz"), str(folder / "*.kineto.json.gz")]
    assert program.run(["convert", *pairs, "-o", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    said.within(text)
    assert text.count("no problems found") == 4
    counts = [drained(tmp_path / f"rank.{rank}.et") for rank in range(4)]
    assert all(n_issued == n_nodes > 2_400 for n_issued, n_nodes in counts)


@needs_pairs
def test_real_ranks_are_paired_by_process():
    ranks = chakra.link_ranks(
        str(FOLDER / "torch213_ddp2_rank?.et.json.gz"),
        str(FOLDER / "torch213_ddp2_rank?.kineto.json.gz"),
    )
    assert [pair.paired_by for pair in ranks.pairs] == ["process", "process"]
    assert ranks.groups == {"0": [0, 1]}
    matched = ranks.collectives.filter(ranks.collectives["n_missing"] == 0)
    assert matched.height >= 2 * 20


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "md", "html"])
def test_answers_come_in_every_format(files, capsys, form):
    one = ["--et", str(files / "et.1.json"), str(files / "kineto.0.json")]
    graph = str(files / "one.et")
    commands = {
        "convert": ["convert", *one, "-o", graph],
        "check": ["check", *one],
        "chakra.check": ["chakra", "check", graph],
        "chakra.replay": ["chakra", "replay", graph],
    }
    for name, command in commands.items():
        assert program.run([*command, "--format", form]) in {0, 1}
        text = capsys.readouterr().out
        assert text or (form, name) == ("csv", "chakra.check")
        if form == "json":
            assert program.run(["schema", *name.split(".")]) == 0
            schema = json.loads(capsys.readouterr().out)
            jsonschema.validate(json.loads(text)["data"], schema)


ANSWERS = SHARED / "cases" / "answers"


@pytest.mark.skipif(not ANSWERS.exists(), reason=f"no {ANSWERS}")
def test_a_consistent_pair_replays_to_the_measured_time(tmp_path):
    pair = [str(ANSWERS / "et_consistent" / name) for name in ("et.json", "kineto.json")]
    linked = link_execution_trace(*pair)
    assert abs(linked.replay().error) < 0.01
    graph = str(tmp_path / "rank.0.et")
    assert program.run(["convert", "--et", *pair, "-o", graph]) == 0
    assert abs(chakra.read_chakra(graph).replay().error) < 0.01


@pytest.mark.skipif(not ANSWERS.exists(), reason=f"no {ANSWERS}")
def test_a_step_of_the_profiler_has_no_time_in_et_plus(tmp_path):
    pair = [str(ANSWERS / "et_with_step" / name) for name in ("et.json", "kineto.json")]
    chakra.write_et_plus(link_execution_trace(*pair), tmp_path / "plus.json")
    nodes = json.loads((tmp_path / "plus.json").read_text())["nodes"]
    [step] = [node for node in nodes if node["name"] == "ProfilerStep#5"]
    assert "exclusive_dur" not in step
    timed = [node for node in nodes if "exclusive_dur" in node]
    assert all(0 <= node["exclusive_dur"] <= node["inclusive_dur"] for node in timed)
