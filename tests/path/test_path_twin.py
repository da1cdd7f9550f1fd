"""The naive twin and longpole on shared cases, and the twin on real traces."""

import json
import random
from fractions import Fraction
from itertools import pairwise

import pytest

import longpole
from oracles.twin import path_twin as twin
from oracles.twin.path_twin import (
    build_graph,
    critical_path,
    find_window,
    read_events,
    slack,
    what_if,
)
from real_traces import SHARED, real_traces
from tiny_traces import US, segments

# The same on shared and on real traces.


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


def windows_of(graph):
    """Give the whole trace, and every step with every end it has."""
    windows = [find_window(graph)]
    steps = {e.name for e in graph.trace.events if e.name.startswith("ProfilerStep#")}
    for step in sorted(steps):
        windows += [find_window(graph, step=step, end=end) for end in ("period", "last", "cpu")]
    return windows


@pytest.mark.parametrize("file", real_traces(100_000))
def test_real_traces(file):
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    events = read_events(file)
    graph = build_graph(events)
    windows = windows_of(graph)
    for window in windows:
        assert_tiled(critical_path(graph, window))
        unchanged = what_if(graph, window)
        assert unchanged.makespan_ns == window.end_ns - window.start_ns
        assert unchanged.critical_path.segments == critical_path(graph, window).segments
    assert all(late is None or late >= 0 for late in slack(graph, windows[0]).values())
    assert_same_in_any_order(events, windows)


def assert_tiled(path):
    if path.segments:
        assert path.segments[0].start_ns == path.window.start_ns
        assert path.segments[-1].end_ns == path.window.end_ns
    assert all(left.end_ns == right.start_ns for left, right in pairwise(path.segments))
    assert path.length_ns == path.window.end_ns - path.window.start_ns


def assert_same_in_any_order(events, windows):
    rows = random.Random(1).sample(range(len(events)), len(events))  # noqa: S311
    shuffled = build_graph([events[row] for row in rows])
    original = build_graph(events)
    for window, again in zip(windows, windows_of(shuffled), strict=True):
        moved = [
            s if s.row is None else s._replace(row=rows[s.row])
            for s in critical_path(shuffled, again).segments
        ]
        assert contents(events, moved) == contents(events, critical_path(original, window).segments)


def contents(events, segments):
    """Replace rows by what stands there: identical events may change places."""
    return [
        (
            *s[:3],
            s.evidence,
            None if s.row is None else (events[s.row]["name"], events[s.row]["ts"]),
        )
        for s in segments
    ]
