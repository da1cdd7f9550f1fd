"""Chakra's own converter and reader take what we write, and find the same graph in it.

Chakra drops the root of an execution trace, and leaves the dependencies on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from longpole import chakra
from real_traces import SHARED, link, needs_pairs

PEER = SHARED.parent / "peers/chakra"
pytestmark = [
    pytest.mark.needs("pydot", "networkx", "graphviz"),
    pytest.mark.skipif(not PEER.is_dir(), reason="no Chakra beside the project"),
    needs_pairs,
]
NODES = """
import json, sys
from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node
from chakra.src.converter.pytorch_converter import PyTorchConverter
from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd

source, path = sys.argv[1:]
if source.endswith(".json"):
    PyTorchConverter().convert(source, path, simulate=False)
file, node, nodes = openFileRd(path), Node(), []
decodeMessage(file, GlobalMetadata())
while decodeMessage(file, node):
    nodes.append([node.id, node.name, sorted(node.ctrl_deps), node.duration_micros])
    node = Node()
print("NODES" + json.dumps(nodes))
"""


def nodes(source, path):
    """Return the nodes that Chakra finds, after its own conversion if the source is ET+."""
    done = subprocess.run(
        [sys.executable, "-c", NODES, source, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(PEER)},
    )
    assert done.returncode == 0, done.stderr
    return {node[0]: tuple(node[1:]) for node in json.loads(done.stdout.rpartition("NODES")[2])}


@pytest.fixture(scope="module", params=["alexnet_synth", "torch213_ddp2_rank0"])
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    linked = link(request.param)
    chakra.write_et_plus(linked, folder / "plus.json")
    chakra.write_chakra(linked, folder / "rank.0.et")
    return folder


def ours(folder):
    frame = chakra.read_chakra(folder / "rank.0.et").nodes
    return dict(frame.select("node", "name").cast({"name": str}).iter_rows())


def test_chakras_converter_reads_every_node_of_our_et_plus_but_the_root(written):
    theirs = nodes(str(written / "plus.json"), str(written / "converted.et"))
    expected = ours(written)
    assert {id_: name for id_, (name, *_) in theirs.items()} == {
        id_: name for id_, name in expected.items() if id_ in theirs
    }
    assert [expected[id_] for id_ in expected.keys() - theirs.keys()] == [
        "[pytorch|profiler|execution_trace|process]"
    ]


def test_chakras_reader_finds_our_nodes_and_control_dependencies(written):
    theirs = nodes(str(written / "rank.0.et"), str(written / "rank.0.et"))
    graph = chakra.read_chakra(written / "rank.0.et")
    assert {id_: name for id_, (name, *_) in theirs.items()} == ours(written)
    control = {}
    for node, on, kind in graph.dependencies.cast({"kind": str}).iter_rows():
        if kind == "control":
            control.setdefault(node, []).append(on)
    assert {id_: on for id_, (_, on, _) in theirs.items() if on} == {
        id_: sorted(on) for id_, on in control.items()
    }
