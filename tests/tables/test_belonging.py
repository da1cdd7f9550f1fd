"""GPU activities count for the step that launched them, whole, wherever they run."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from decimal import Decimal

import pytest

import longpole
from longpole.engine.arguments import ARGUMENTS
from longpole.tables.launch_times import launch_times
from longpole.testing import TraceBuilder
from oracles.raw_file import union
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
            first = min((begin for begin, _ in marks.values()), default=0)
            if steps and (called >= first or steps[0] != min(marks)):
                found[steps[0]].append(event)
    return found


def sums(rows):
    counts, times = Counter(), Counter()
    for name, count, duration_ns in rows:
        counts[name] += count
        times[name] += duration_ns
    return dict(counts), dict(times)


def in_phases(trace, window):
    rows = longpole.phases(trace, window).rows
    return rows["count"].sum(), rows["device_ns"].sum()


def of_devices(works):
    """Return the number of activities, and the time in which any runs on each device."""
    spans = defaultdict(list)
    for work in works:
        spans[work["args"]["device"]].append(span_of(work))
    return len(works), sum(map(union, spans.values()))


def span_of(event):
    start = round(1000 * event["ts"])
    return start, start + round(1000 * event["dur"])


def in_roofline(trace, window):
    rows = longpole.roofline(trace, window).rows
    return rows["n_kernels"].sum(), rows["kernel_ns"].sum()


def of_compute(works):
    kernels = [it for it in works if it["cat"] == "kernel" and "nccl" not in it["name"]]
    return len(kernels), sum(round(1000 * it["dur"]) for it in kernels)


def waits_by_step(trace):
    """Return the waits of each step as the table `sync` lists them."""
    windows = {step: longpole.choose_window(trace, step=step) for step in numbers(trace)}
    tables = {step: longpole.sync(trace, window) for step, window in windows.items()}
    return {step: set(table.select("source", "target").rows()) for step, table in tables.items()}


def numbers(trace):
    return trace.steps["step"].to_list()


def waits_in_steps(path, trace):
    """Return the waits of the trace by the step in which the waiting call or launch began."""
    events = json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"]
    ends = step_ends(events)
    found = {number: set() for number in ends}
    begun = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in {"cuda_runtime", "cuda_driver"}
    }
    waits = trace.sync_dependencies(whole=True).join(
        trace.events.select("correlation", target="event"), on="target"
    )
    first = min(event["ts"] for event in events if is_step(event))
    for source, target, correlation in waits.select("source", "target", "correlation").rows():
        steps = [number for number, end in ends.items() if first <= begun[correlation] < end]
        if steps:
            found[steps[0]].add((source, target))
    return found


def is_step(event):
    return event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")


def step_ends(events):
    marks = [event for event in events if is_step(event)]
    ends = {int(it["name"].split("#")[1]): it["ts"] + it["dur"] for it in marks}
    return dict(sorted(ends.items()))


def launched_in_facts(trace):
    """Return when the GPU activities of each step start, as remedies see them."""
    core = trace.core.facts(longpole.Question().core_window(), step_name=None)
    starts = trace.events["start_ns"]
    found = {number: [] for number in core.numbers}
    for event, *_, window in core.activities(["kernel", "copy", "fill"], 0):
        found[core.numbers[window]].append(starts[event])
    return {number: sorted(rows) for number, rows in found.items()}


def starts_by_step(path):
    return {
        step: sorted(round(1000 * work["ts"]) for work in works)
        for step, works in launched_by_step(path).items()
    }


@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(LONG_SEEDS, marks=pytest.mark.slow)], ids=len
)
def test_tables_of_a_step_hold_what_it_launched(seeds, tmp_path):
    path = tmp_path / "trace.json"
    n_across = 0
    for seed in seeds:
        simulate("random", seed=seed).write(path)
        trace = longpole.read_trace(path, args=ARGUMENTS)
        launched = launched_by_step(path)
        if not launched:  # a program without steps
            continue
        for step, works in launched.items():
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
            assert in_phases(trace, window) == of_devices(works), (seed, step)
            assert in_roofline(trace, window) == of_compute(works), (seed, step)
            running = longpole.activities(trace, window)
            n_across += running.height != len(works)
        assert waits_by_step(trace) == waits_in_steps(path, trace), seed
        assert launched_in_facts(trace).items() <= starts_by_step(path).items(), seed
    assert n_across or len(seeds) < len(SEEDS)


def running_ahead(n_steps, rng):
    """Build steps whose GPU work runs some steps later, on the second stream half a step less."""
    inputs = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
    builder = TraceBuilder()
    free = {7: 0, 20: 0}
    for number in range(8):
        begin = 1_000 * number
        builder.step(number, (begin, begin + 990))
        for place in range(rng.randint(3, 6)):
            start = begin + 10 + 150 * place
            stream = rng.choice([7, 7, 20])
            builder.operator("aten::mm", (start, start + 60), **inputs)
            later = 1_000 * n_steps - (500 if n_steps and stream == 20 else 0)
            after = max(free[stream], start + 20 + later)
            free[stream] = after + rng.randint(10, 250)
            call, work = (start + 5, start + 15), (after, free[stream])
            builder.launch(f"gemm{number}", call=call, work=work, stream=stream)
    return builder


@pytest.mark.parametrize("n_steps", range(4))
def test_a_host_that_runs_ahead_changes_no_step(n_steps, tmp_path):
    n_across = 0
    for seed in range(3):
        builder = running_ahead(n_steps, random.Random(seed))  # noqa: S311 - reproducible
        path = builder.write(tmp_path / "trace.json")
        trace = longpole.read_trace(path, args=ARGUMENTS)
        for step, works in launched_by_step(path).items():
            window = longpole.choose_window(trace, step=step)
            assert {work["name"] for work in works} == {f"gemm{step}"}
            assert in_phases(trace, window) == of_devices(works)
            assert in_roofline(trace, window) == of_compute(works)
            found = longpole.kernels(trace, window).select("name", "count").rows()
            assert found == [(f"gemm{step}", len(works))]
            n_across += longpole.activities(trace, window)["name"].n_unique() > 1
        assert launched_in_facts(trace).items() <= starts_by_step(path).items()
        assert waits_by_step(trace) == waits_in_steps(path, trace)
    assert n_steps == 0 or n_across


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
