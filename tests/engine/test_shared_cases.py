"""Tiny traces whose paths were written by hand, each for one rule of the definition."""

import json
from fractions import Fraction

import pytest

import longpole
from oracles.golden import GOLDEN, golden_paths, recordings
from real_traces import SHARED
from tiny_traces import US, segments


def test_the_shared_cases():
    file = SHARED / "path_cases.json"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    cases = json.loads(file.read_text())
    for case in cases:
        trace = longpole.read_trace(json.dumps(case).encode())
        path = trace.critical_path(**case.get("options", {"whole": True}))
        found = [
            {"start": start_ns / US, "end": end_ns / US, "kind": kind, "row": row}
            for start_ns, end_ns, kind, row, _ in segments(trace, path)
        ]
        assert found == case["expect_us"], case["name"]
        for question in case.get("what_if", []):
            makespan_ns = path.what_if(changes_of(question)).makespan_ns
            # The cases were written down in whole microseconds, the rest cut off.
            assert makespan_ns // US == int(question["makespan_us"]), case["name"]
    assert len(cases) == 21


def changes_of(question):
    """Return the changes that a question asks about."""
    changes = []
    if question["drop_sync"]:
        changes.append(longpole.RemoveWait(kind="sync_return"))
    if question["zero_launch"]:
        changes.append(longpole.Drop(kind="launch"))
    if question["scale"]:
        matching, by = question["scale"]
        changes.append(longpole.Scale(matching=matching, by=Fraction(by)))
    return changes


# The paths of recorded programs stay what they were when they were last read.


PATHS = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("file", recordings(), ids=lambda file: file.name)
def test_a_recorded_program_keeps_its_paths(file):
    assert golden_paths(file) == PATHS[file.name]


def test_every_golden_path_is_that_of_a_recording():
    assert PATHS.keys() == {file.name for file in recordings()}
