"""Facts have the clock and the length of the file; predictions those without the profiler.

The facts are computed again from the raw events, by other code.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from longpole import diff, read_trace
from longpole.cli.program import run
from longpole.plot.diff_lanes import diff_lanes
from longpole.words.wording import duration

RECORDINGS = Path(__file__).parents[1] / "recordings"
ASKED = (
    ("decode.before", None),
    ("decode.before", 4),
    ("kernels.before", None),
    ("masks.before", 4),
)
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def raw(path):
    """Read the events with a duration, with their times in ns."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    timed = [event for event in events if event.get("ph") == "X"]
    for event in timed:
        event["start"] = int(Decimal(event["ts"]) * 1000)
        event["end"] = event["start"] + int(Decimal(event["dur"]) * 1000)
    return timed


class Raw:
    """The steps of a recording, and what ran on its device, from the raw events."""

    def __init__(self, path):
        events = raw(path)
        self.works = [event for event in events if event.get("cat") in ON_DEVICE]
        calls = {
            event["args"]["correlation"]: event["start"]
            for event in events
            if event.get("cat") in {"cuda_runtime", "cuda_driver"}
            and "correlation" in event["args"]
        }
        marks = {
            int(event["name"].removeprefix("ProfilerStep#")): event
            for event in events
            if event["name"].startswith("ProfilerStep#") and event.get("cat") == "user_annotation"
        }
        self.completed = {}
        for step, mark in marks.items():
            ends = [
                work["end"]
                for work in self.works
                if mark["start"] <= calls.get(work["args"].get("correlation"), -1) < mark["end"]
            ]
            self.completed[step] = max([mark["end"], *ends])

    def window(self, step):
        return self.completed[step - 1], self.completed[step]

    def inside(self, works, window):
        """Return the parts of activities inside a window."""
        parts = ((max(it["start"], window[0]), min(it["end"], window[1]), it) for it in works)
        return [(start, end, it) for start, end, it in parts if start < end]

    def busy_ns(self, window):
        """Return how long any activity ran."""
        total, reached = 0, window[0]
        for start, end, _ in sorted(self.inside(self.works, window), key=lambda part: part[:2]):
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return total

    def kernels(self, window):
        """Return the number and the time of kernels, by name."""
        found = defaultdict(lambda: [0, 0])
        kernels = [work for work in self.works if work["cat"] == "kernel"]
        for start, end, work in self.inside(kernels, window):
            found[work["name"]][0] += 1
            found[work["name"]][1] += end - start
        return found


def told(capsys, *words):
    run([*map(str, words)])
    return capsys.readouterr().out


def answered(capsys, *words):
    return json.loads(told(capsys, *words, "--json"))


@pytest.fixture(params=ASKED, ids=str)
def asked(request):
    """Return a recording, its raw events, and the words that ask for a step."""
    name, step = request.param
    path = RECORDINGS / f"{name}.json.gz"
    return path, Raw(path), [] if step is None else ["--step", step]


def test_every_fact_is_that_of_the_raw_events(asked, capsys):
    path, recorded, words = asked
    found = answered(capsys, "summary", path, *words, "--top", 1_000)
    window = tuple(found["scope"]["window_ns"])
    data = found["data"]
    assert window == recorded.window(data["window"]["step"])
    length_ns = window[1] - window[0]
    assert data["window"]["duration_ns"] == length_ns
    [device] = data["devices"]
    busy_ns = recorded.busy_ns(window)
    assert device["whole"]["busy_ns"] == busy_ns
    kernels = {row["name"]: [row["count"], row["duration_ns"]] for row in data["kernels"]}
    assert kernels == recorded.kernels(window)
    text = " ".join(told(capsys, "summary", path, *words).split())
    line = re.search(r"As recorded, device 0 .*? works (.*?) of (.*?)[,;.] ", text)
    assert (line[1], line[2]) == (duration(busy_ns), duration(length_ns))
    rows = [*csv.DictReader(io.StringIO(told(capsys, "summary", path, *words, "--format=csv")))]
    for row in rows:
        if row["section"] in {"window", "device", "stream", "idle", "kernel", "operator"}:
            share = int(row["duration_ns"]) / length_ns
            assert float(row["share"] or share) == pytest.approx(share, abs=1e-9)


def test_path_and_tables_have_the_window_of_the_file(asked, capsys):
    path, recorded, words = asked
    found = answered(capsys, "path", path, *words)
    window = tuple(found["scope"]["window_ns"])
    assert window == recorded.window(found["scope"]["step"])
    assert found["data"]["length_ns"] == window[1] - window[0]
    segments = answered(capsys, "table", path, "segments", *words)["data"]["rows"]
    starts = sorted(row["start_ns"] for row in segments)
    assert starts[0] == window[0]
    assert sum(row["duration_ns"] for row in segments) == window[1] - window[0]
    kernels = defaultdict(lambda: [0, 0])
    for row in answered(capsys, "table", path, "kernels", *words)["data"]["rows"]:
        if row["kind"] == "kernel":
            kernels[row["name"]] = [row["count"], row["duration_ns"]]
            assert row["window_share"] == pytest.approx(
                row["duration_ns"] / (window[1] - window[0])
            )
    assert kernels == recorded.kernels(window)
    total = f"Total {duration(window[1] - window[0])} as recorded:"
    assert total in " ".join(told(capsys, "path", path, *words).split())


def test_every_prediction_is_a_share_of_the_length_without_the_profiler(asked, capsys):
    path, recorded, words = asked
    verdict = answered(capsys, "summary", path, *words)["data"]["verdict"]
    span = verdict["window"]
    start_ns, end_ns = recorded.window(span["number"])
    assert span["length_ns"] <= end_ns - start_ns
    for row in [*verdict["gains"].values(), *(it["gain"] for it in verdict["remedies"])]:
        assert row["duration_ns"] == pytest.approx(row["value"] * span["mean_ns"], abs=len(verdict))
    plan = verdict["plan"]
    if plan["lines"]:
        assert plan["length_ns"] in {span["length_ns"], span["mean_ns"]}
    assert answered(capsys, "whatif", path, *words)["data"]["length_ns"] == span["length_ns"]
    changed = answered(capsys, "whatif", path, *words, "--drop", "kernel")["data"]
    assert changed["length_ns"] == span["length_ns"]
    assert changed["share"] == changed["gain_ns"] / span["length_ns"]
    assert changed["makespan_ns"] == span["length_ns"] - changed["gain_ns"]


def test_what_recording_cost_changes_no_fact(asked, capsys):
    path, _, words = asked
    found = answered(capsys, "summary", path, *words)["data"]
    least_ns, usual_ns = (found["recording_cost"][f"{it}step_ns"] for it in ("least_", ""))
    other = answered(capsys, "summary", path, *words, "--step-time", f"{least_ns}ns")["data"]
    facts = ("window", "devices", "kernels", "operators", "blocking_calls", "unlinked")
    assert {name: found[name] for name in facts} == {name: other[name] for name in facts}
    if least_ns < 0.9 * (usual_ns or 0):
        assert other["verdict"]["window"]["length_ns"] < found["verdict"]["window"]["length_ns"]


@pytest.fixture
def compared():
    """Compare two recordings; return the answer and the raw events of both."""
    paths = [RECORDINGS / f"masks.{side}.json.gz" for side in ("before", "after")]
    return diff(*map(read_trace, paths)), [Raw(path) for path in paths]


def test_the_lanes_of_two_runs_are_those_of_the_files(compared):
    found, recorded = compared
    for lanes, side, events in zip(
        diff_lanes(found), (found.base, found.new), recorded, strict=True
    ):
        step = side.verdict.window.number
        window = events.window(step)
        length_ns = window[1] - window[0]
        assert f"{duration(length_ns)} as recorded" in lanes.label
        assert side.answer.window.duration_ns < length_ns
        path, *others = lanes.rows
        assert sum(path["lengths"]) == length_ns
        [stream] = [row for row in others if row["label"].startswith("device 0")]
        on_device = events.inside(events.works, window)
        assert sum(stream["lengths"]) == sum(end - start for start, end, _ in on_device)


def test_diff_divides_times_of_one_base(compared, said):
    found, recorded = compared
    means_ns = []
    for side, events in zip((found.base, found.new), recorded, strict=True):
        lengths_ns = [end - start for start, end in map(events.window, side.steps)]
        means_ns.append(sum(lengths_ns) / len(lengths_ns))
        assert side.recorded_mean_ns == means_ns[-1]
        assert side.mean_ns < side.recorded_mean_ns
    assert found.recorded_change == means_ns[1] / means_ns[0] - 1
    assert found.change == found.new.mean_ns / found.base.mean_ns - 1
    moved_ns = sum(row.change_ns for row in found.path)
    assert moved_ns == pytest.approx(found.new.mean_ns - found.base.mean_ns, abs=1)
    told = " ".join(str(block) for block in found.blocks())
    said.within(told)
