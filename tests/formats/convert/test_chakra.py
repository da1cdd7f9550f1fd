"""The files that are written for simulators, read back by others and by ourselves."""

from __future__ import annotations

import gzip
import json

import polars as pl
import pytest
from et_schema import decode, of_json, values

from longpole import TraceError, WindowError, chakra, read_execution_trace
from real_traces import SHARED, link, needs_pairs

pytestmark = needs_pairs
NAMES = (
    *("alexnet_synth", "resnet_a100", "torch213_ddp2_rank0"),
    pytest.param("torch213_ddp2_rank1", marks=pytest.mark.slow),
)
RESULTS = SHARED / "chakra_results"


@pytest.fixture(scope="module", params=NAMES)
def pair(request, tmp_path_factory):
    linked = link(request.param)
    path = tmp_path_factory.mktemp(request.param) / "rank.0.et"
    chakra.write_chakra(linked, path)
    return request.param, linked, path


def theirs(name):
    text = gzip.decompress((RESULTS / name / "chakra.et.jsonl.gz").read_bytes()).decode()
    decoder, objects, place = json.JSONDecoder(), [], 0
    while place < len(text.rstrip()):
        found, place = decoder.raw_decode(text, place)
        objects.append(found)
        while place < len(text) and text[place].isspace():
            place += 1
    return of_json(objects)


def test_the_protobuf_package_reads_back_what_was_linked(pair):
    _, linked, path = pair
    metadata, nodes = decode(path.read_bytes())
    assert {one.name for one in metadata.attr} >= {"schema", "pid", "time", "start_ts"}
    written = {node.id: node for node in nodes}
    frame = linked.nodes
    assert set(written) >= set(frame["node"])
    for row in frame.iter_rows(named=True):
        node, attributes = written[row["node"]], values(written[row["node"]])
        assert node.name == row["name"]
        assert attributes.get("duration_ns") == row["work_ns"]
        assert attributes.get("start_ns") == row["start_ns"]
    data = linked.dependencies.filter(pl.col("kind").cast(pl.String) != "control")
    expected = dict(data.group_by("node").agg(pl.col("depends_on").unique().sort()).iter_rows())
    assert {
        id_: list(node.data_deps) for id_, node in written.items() if node.data_deps
    } == expected


def test_our_reader_reads_the_same(pair):
    _, _, path = pair
    _, nodes = decode(path.read_bytes())
    read = chakra.read_chakra(path)
    assert read.nodes.select("node", "name", "start_us", "duration_us").rows() == [
        (node.id, node.name, node.start_time_micros, node.duration_micros) for node in nodes
    ]
    found = read.dependencies.cast({"kind": pl.String})
    for kind, field in (("data", "data_deps"), ("control", "ctrl_deps")):
        expected = [(node.id, other) for node in nodes for other in getattr(node, field)]
        assert found.filter(pl.col("kind") == kind).select("node", "depends_on").rows() == expected
    for row in (0, len(nodes) // 2, len(nodes) - 1):
        mine = read.attributes(row)
        assert mine == {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in values(nodes[row]).items()
        }


def test_durations_in_us_sum_to_what_was_measured(pair):
    _, linked, path = pair
    written = chakra.read_chakra(path).nodes.select("node", "duration_us")
    lanes = ["process", "thread", "stream"]
    sums = (
        linked.nodes.join(written, on="node")
        .group_by(lanes)
        .agg(pl.col("duration_us", "work_ns").sum())
    )
    error_ns = (sums["duration_us"] * 1_000 - sums["work_ns"].fill_null(0)).abs()
    assert error_ns.max() < 1_000


def test_check_is_clean_on_ours_and_finds_the_dangling_ids_of_chakra(pair):
    name, _, path = pair
    # ASTRA-sim has no barrier; the file says the truth nevertheless.
    assert set(chakra.read_chakra(path).check()["code"]) <= {"unsimulated_collective"}
    found = chakra.read_chakra(theirs(name)).check()
    counts = dict(found.select("code", "count").iter_rows())
    assert counts["dangling_control_dependency"] > 0
    assert found.filter(pl.col("code") == "dangling_control_dependency")["refused"].all()


def test_the_replay_of_the_file_is_that_of_what_was_linked(pair):
    _, linked, path = pair
    ours, written = linked.replay(), chakra.read_chakra(path).replay()
    assert written.stuck == 0
    assert written.measured_ns == ours.measured_ns
    assert written.makespan_ns == pytest.approx(ours.makespan_ns, rel=1e-3)
    assert written.error == pytest.approx(0, abs=0.05)


def test_nothing_is_written_over_and_the_same_is_written_twice(pair, tmp_path):
    _, linked, path = pair
    with pytest.raises(FileExistsError):
        chakra.write_chakra(linked, path)
    again = tmp_path / "again.et"
    chakra.write_chakra(linked, again)
    assert again.read_bytes() == path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["again.et"]


def test_without_gaps_dependencies_go_past_them(pair, tmp_path):
    _, linked, _ = pair
    path = tmp_path / "no_gaps.et"
    chakra.write_chakra(linked, path, gaps=False)
    read = chakra.read_chakra(path)
    assert set(read.check()["code"]) <= {"unsimulated_collective"}
    gaps = linked.nodes.filter(pl.col("kind").cast(pl.String) == "gap")["node"]
    assert not set(read.nodes["node"]) & set(gaps)
    assert read.replay().makespan_ns == pytest.approx(
        linked.replay(gaps=False).makespan_ns, rel=0.01
    )


def test_et_plus_holds_the_nodes_unchanged_with_times_beside_them(pair, tmp_path):
    name, linked, _ = pair
    path = tmp_path / "et_plus.json"
    chakra.write_et_plus(linked, path)
    written = json.loads(path.read_bytes())
    before = read_execution_trace(SHARED / "et_pairs" / f"{name}.et.json.gz").nodes
    after = read_execution_trace(path).nodes.filter(pl.col("node").is_in(before["node"].implode()))
    assert after.equals(before)
    nodes = {node["id"]: node for node in written["nodes"]}
    for row in linked.nodes.filter(pl.col("start_ns").is_not_null()).iter_rows(named=True):
        node = nodes[row["node"]]
        if "ProfilerStep" in row["name"]:
            # Chakra's converter would take the time of a step for work before its operators.
            assert not {"inclusive_dur", "exclusive_dur", "ts"} & set(node)
            continue
        assert round(node["inclusive_dur"] * 1_000) == row["duration_ns"]
        assert round(node["exclusive_dur"] * 1_000) == row["work_ns"] + row["blocked_ns"]
        assert node["exclusive_dur"] <= node["inclusive_dur"]


def test_et_plus_has_the_members_that_chakra_writes_and_more(tmp_path):
    name = "alexnet_synth"
    path = tmp_path / "et_plus.json"
    chakra.write_et_plus(link(name), path, gaps=False)
    ours = json.loads(path.read_bytes())["nodes"]
    chakras = json.loads(gzip.decompress((RESULTS / name / "hdt.json.gz").read_bytes()))["nodes"]

    def members(nodes, *, device):
        return {key for node in nodes if ("cat" in node) == device for key in node}

    for device in (False, True):
        assert members(ours, device=device) >= members(chakras, device=device)
    by_kernel = sorted((node["name"], node["inclusive_dur"]) for node in chakras if "cat" in node)
    found = sorted((node["name"], node["inclusive_dur"]) for node in ours if "cat" in node)
    assert [row for row in found if not row[0].startswith("Memset")] == by_kernel
    assert not [node for node in ours if "gap" in node]


def test_sync_dependencies_reach_both_files_and_are_possible(tmp_path):
    linked = link("alexnet_synth")
    syncs = linked.dependencies.filter(pl.col("kind").cast(pl.String) == "sync")
    assert syncs.height > 0
    assert syncs["evidence"].cast(pl.String).unique().to_list() == ["recorded"]
    chakra.write_et_plus(linked, tmp_path / "et_plus.json")
    chakra.write_chakra(linked, tmp_path / "rank.0.et")
    in_json = {
        (node["id"], source)
        for node in json.loads((tmp_path / "et_plus.json").read_bytes())["nodes"]
        for source in node.get("sync_dep", [])
    }
    wanted = set(syncs.select("node", "depends_on").iter_rows())
    assert in_json == wanted
    found = chakra.read_chakra(tmp_path / "rank.0.et").dependencies
    assert wanted <= set(found.filter(pl.col("kind") == "data").select("node", "depends_on").rows())


def test_three_of_chakras_five_sync_dependencies_are_impossible():
    nodes = json.loads(gzip.decompress((RESULTS / "alexnet_synth" / "hdt.json.gz").read_bytes()))[
        "nodes"
    ]
    by_id = {node["id"]: node for node in nodes}
    edges = [(node, by_id[source]) for node in nodes for source in node.get("sync_dep", [])]
    late = [
        (node["name"], source["name"])
        for node, source in edges
        if source["ts"] + source["inclusive_dur"] > node["ts"]
    ]
    assert (len(edges), len(late)) == (5, 3)
    in_file = chakra.read_chakra(theirs("alexnet_synth")).dependencies
    written = set(in_file.filter(pl.col("kind") == "data").select("node", "depends_on").rows())
    assert not {(node["id"], source["id"]) for node, source in edges} & written


def test_sync_dependencies_by_external_id_are_those_of_the_path():
    trace = SHARED / "et_pairs" / "alexnet_synth.kineto.json.gz"
    found = chakra.load_sync_dependencies(0, trace)
    assert found
    assert all(target not in sources for target, sources in found.items())
    with pytest.raises(WindowError, match="1 ranges"):
        chakra.load_sync_dependencies(0, trace, instance_id=1)


@pytest.mark.parametrize(("end_us", "expected"), [(300, {2: [1]}), (90, {})])
def test_a_kernel_that_had_ended_before_the_call_was_not_waited_for(tmp_path, end_us, expected):
    return_us = max(end_us, 110) + 5
    rows = [
        ("cpu_op", "aten::mm", 7, 0, 40, 1, 0),
        ("cuda_runtime", "cudaLaunchKernel", 7, 5, 10, 1, 9),
        ("kernel", "gemm", 20, 12, end_us, 1, 9),
        ("cpu_op", "aten::item", 7, 100, 400, 2, 0),
        ("cuda_runtime", "cudaDeviceSynchronize", 7, 110, return_us, 2, 10),
    ]
    events = [
        {
            "ph": "X",
            "cat": kind,
            "name": name,
            "pid": 7 if tid == 7 else 0,
            "tid": tid,
            "ts": start,
            "dur": end - start,
            "args": {"External id": external, "correlation": correlation}
            | ({"device": 0, "stream": 20} if kind == "kernel" else {}),
        }
        for kind, name, tid, start, end, external, correlation in rows
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    assert chakra.load_sync_dependencies(0, path, annotation="") == expected


def test_a_truncated_graph_keeps_its_nodes_and_says_so(pair):
    _, _, path = pair
    data = path.read_bytes()
    cut = chakra.read_chakra(data[: len(data) // 2])
    assert 0 < len(cut) < len(chakra.read_chakra(data))
    assert "truncated" in cut.check()["code"].to_list()
    with pytest.raises(TraceError, match="not a Chakra graph"):
        chakra.read_chakra(b"{}")


def test_tables_are_written_as_parquet(tmp_path):
    linked = link("alexnet_synth")
    chakra.write_parquet(linked, tmp_path / "tables")
    assert pl.read_parquet(tmp_path / "tables" / "nodes.parquet").height == linked.nodes.height
