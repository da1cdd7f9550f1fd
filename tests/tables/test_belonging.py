"""GPU activities count for the step that launched them, whole, wherever they run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal

import pytest

import longpole
from longpole.engine.arguments import ARGUMENTS
from longpole.tables.launch_times import launch_times
from longpole.testing import TraceBuilder
from oracles.simulator import simulate

SEEDS = range(4)
LONG_SEEDS = range(4, 60)
WORK = {"kernel", "gpu_memcpy", "gpu_memset"}


def launched_by_step(path):
    """Return the GPU activities of each step, by a plain reading of the file."""
    events = json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"]
    marks = {
        int(event["name"].split("#")[1]): (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
    }
    calls = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in {"cuda_runtime", "cuda_driver"}
    }
    found = defaultdict(list)
    for event in events:
        if event.get("cat") in WORK and event["args"]["correlation"] in calls:
            called = calls[event["args"]["correlation"]]
            steps = [number for number, (_, end) in sorted(marks.items()) if called < end]
            first = min(begin for begin, _ in marks.values())
            if steps and (called >= first or steps[0] != min(marks)):
                found[steps[0]].append(event)
    return found


def sums(rows):
    counts, times = Counter(), Counter()
    for name, count, duration_ns in rows:
        counts[name] += count
        times[name] += duration_ns
    return dict(counts), dict(times)


@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(LONG_SEEDS, marks=pytest.mark.slow)], ids=len
)
def test_tables_of_a_step_hold_what_it_launched(seeds, tmp_path):
    path = tmp_path / "trace.json"
    n_across = 0
    for seed in seeds:
        simulate("random", seed=seed).write(path)
        trace = longpole.read_trace(path, args=ARGUMENTS)
        for step, works in launched_by_step(path).items():
            window = longpole.choose_window(trace, step=step)
            own = [(work["name"], 1, round(1000 * work["dur"])) for work in works]
            found = longpole.kernels(trace, window).filter(kind="kernel")
            rows = found.select("name", "count", "duration_ns").rows()
            kernels = [row for row, work in zip(own, works, strict=True) if work["cat"] == "kernel"]
            assert sums(rows) == sums(kernels), (seed, step)
            copies = len(works) - len(kernels)
            assert longpole.copies(trace, window)["count"].sum() == copies, (seed, step)
            assert launch_times(trace, window).height == len(works), (seed, step)
            summed = longpole.summary(trace, step=step, top=1_000).kernels.rows
            times = [(row.name, row.count, row.duration_ns) for row in summed]
            assert sums(times) == sums(kernels), (seed, step)
            running = longpole.activities(trace, window)
            n_across += running.height != len(works)
    assert n_across or len(seeds) < len(SEEDS)


def test_an_unlinked_activity_belongs_to_the_next_linked_one_of_its_stream():
    builder = TraceBuilder()
    for number in range(3):
        begin = 1_000 * number
        builder.step(number, (begin, begin + 350))
        builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 300, begin + 400))
    builder.kernel("before", (2, 8)).kernel("lost", (1_050, 1_100))
    trace = builder.read()
    names = [
        longpole.kernels(trace, longpole.choose_window(trace, step=step))["name"].to_list()
        for step in range(3)
    ]
    assert ["lost" in each for each in names] == [False, True, False]
    assert not any("before" in each for each in names)
