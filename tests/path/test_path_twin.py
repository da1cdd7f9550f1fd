"""The naive twin and longpole on the shared cases."""

import json
from fractions import Fraction

import pytest

import longpole
from oracles.twin import path_twin as twin
from oracles.twin.path_twin import build_graph, critical_path, find_window, what_if
from real_traces import SHARED
from tiny_traces import US, segments


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def test_the_shared_cases():
    cases = json.loads(shared("path_cases.json").read_text())
    for case in cases:
        graph = build_graph(case["traceEvents"])
        window = find_window(graph, **case.get("options", {}))
        theirs = critical_path(graph, window)
        trace = longpole.read_trace(json.dumps(case).encode())
        ours = trace.critical_path(**case.get("options", {"whole": True}))
        assert segments(trace, ours) == theirs.segments, case["name"]
        found = [
            {"start": s.start_ns / US, "end": s.end_ns / US, "kind": s.kind, "row": s.row}
            for s in theirs.segments
        ]
        assert found == case["expect_us"], case["name"]
        for question in case.get("what_if", []):
            makespan_ns = what_if(graph, window, changes_of(question, twin)).makespan_ns
            # The cases were written down in whole microseconds, the rest cut off.
            assert makespan_ns // US == int(question["makespan_us"]), case["name"]
            changes = changes_of(question, longpole)
            assert ours.what_if(changes).makespan_ns == makespan_ns, case["name"]
    assert len(cases) == 21


def changes_of(question, words):
    """Give the changes of a question in the words of longpole or of the twin."""
    changes = []
    if question["drop_sync"]:
        changes.append(words.RemoveWait(kind="sync_return"))
    if question["zero_launch"]:
        changes.append(words.Drop(kind="launch"))
    if question["scale"]:
        matching, by = question["scale"]
        changes.append(words.Scale(matching=matching, by=Fraction(by)))
    return changes
