"""Dependencies of simulated runs, of which every wait is known."""

from __future__ import annotations

import json
import random
from collections import Counter

import polars as pl
import pytest
from simulated_pairs import execution_trace_of, simulated_pair

from longpole import link_execution_trace, read_execution_trace, read_trace
from oracles.simulator import simulate

RUNS = [(name, seed) for name in ("training", "inference", "graphed") for seed in range(2)]
RUNS += [("random", seed) for seed in range(12)]


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: f"{run[0]}-{run[1]}")
def run(request, tmp_path_factory):
    name, seed = request.param
    found = simulate(name, seed=seed)
    document, rows = simulated_pair(found, tmp_path_factory.mktemp("run"))
    execution = read_execution_trace(json.dumps(execution_trace_of(document)).encode())
    trace = read_trace(json.dumps(document).encode())
    return found, rows, link_execution_trace(execution, trace)


def ends(frame):
    return frame.with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))


def kinds(linked, *wanted):
    return linked.dependencies.filter(pl.col("kind").cast(pl.String).is_in(wanted))


def known_waits(found, rows, linked):
    """Return (waiting node, awaited node) for each kind of wait, from the simulator.

    A call's wait is that of the next operator of its thread to begin when the call has returned.
    """
    event_at = dict(linked.trace.events.select("position", "event").iter_rows())
    operators = linked.nodes.filter(
        pl.col("kind").cast(pl.String) == "operator", pl.col("event").is_not_null()
    )
    operators = operators.sort("start_ns", "node")
    threads = linked.trace.events.select("event", "thread")
    node_of = dict(
        linked.nodes.filter(pl.col("event").is_not_null()).select("event", "node").iter_rows()
    )
    call_end = dict(ends(linked.trace.events).select("event", "end_ns").iter_rows())
    waits = {"sync": set(), "event_wait": set()}
    for wait in found.truth.waits:
        if wait.waiter is None or wait.awaited is None or not wait.awaited.is_work:
            continue
        events = [event_at[rows[found.truth.position(a)]] for a in (wait.waiter, wait.awaited)]
        waiter, awaited = events
        source = node_of.get(awaited)
        if wait.kind == "event_wait" and waiter in node_of:
            waits["event_wait"].add((node_of[waiter], source))
        elif wait.kind == "sync_return" and source is not None:
            thread = threads["thread"][waiter]
            after = operators.filter(
                pl.col("thread") == thread,
                pl.col("start_ns") >= max(call_end[waiter], call_end[awaited]),
            )
            if after.height:
                waits["sync"].add((after["node"][0], source))
    return waits


def test_waits_are_those_of_the_machine(run):
    found, rows, linked = run
    is_added = pl.col("kind").cast(pl.String).is_in(["gap", "after_wait"])
    gaps = linked.nodes.filter(is_added)["node"]
    for kind, known in known_waits(found, rows, linked).items():
        ours = kinds(linked, kind).filter(~pl.col("node").is_in(gaps.implode()))
        ours = set(ours.select("node", "depends_on").iter_rows())
        counts = {"missed": known - ours, "invented": ours - known - of_every_stream(linked)}
        assert counts == {"missed": set(), "invented": set()}, kind


def of_every_stream(linked):
    """Return the waits of calls that wait for a whole device.

    The machine notes what was over last; the last work of every other stream was waited for too.
    """
    names = linked.trace.events.select("event", call=pl.col("name").cast(pl.String))
    found = kinds(linked, "sync").join(names, on="event")
    found = found.filter(pl.col("call") == "cudaDeviceSynchronize")
    return set(found.select("node", "depends_on").iter_rows())


def test_device_work_depends_on_its_operator_and_on_the_work_before_it(run):
    _, _, linked = run
    nodes = ends(linked.nodes)
    devices = nodes.filter(pl.col("kind").cast(pl.String) == "device")
    launches = dict(kinds(linked, "launch").select("node", "depends_on").iter_rows())
    of_node = dict(nodes.select("node", "operator").iter_rows())
    launched_by = {node: of_node[source] for node, source in launches.items()}
    assert launched_by == dict(devices.select("node", "operator").iter_rows())
    times = dict(nodes.select("node", pl.struct("start_ns", "end_ns")).iter_rows())
    for node, source in kinds(linked, "stream_order").select("node", "depends_on").iter_rows():
        assert times[source]["end_ns"] <= times[node]["start_ns"]
    n_streams = devices.select("device", "stream").n_unique()
    followed = kinds(linked, "stream_order")["node"].n_unique()
    assert followed >= devices.height - n_streams - overlapping(devices)


def overlapping(devices):
    """Count work that begins while all work before it on its stream still runs."""
    count = 0
    for _, stream in devices.sort("start_ns", "node").group_by("device", "stream"):
        rows = stream.select("start_ns", "end_ns").rows()
        first_end = rows[0][1]
        count += sum(start < first_end for start, _ in rows[1:])
    return count


def test_nothing_contradicts_the_measured_times_and_nothing_waits_for_itself(run):
    _, _, linked = run
    times = ends(linked.nodes).select("node", "start_ns", "end_ns")
    found = linked.dependencies.join(times, on="node").join(
        times, left_on="depends_on", right_on="node", suffix="_source"
    )
    over = pl.col("after").cast(pl.String) == "end"
    assert found.filter(over, pl.col("end_ns_source") > pl.col("start_ns")).is_empty()
    assert found.filter(pl.col("start_ns_source") > pl.col("start_ns")).is_empty()
    assert linked.replay().stuck == 0


def test_self_times_and_gaps_fill_each_thread(run):
    _, _, linked = run
    on_threads = linked.nodes.filter(pl.col("stream").is_null(), pl.col("start_ns").is_not_null())
    for _, thread in on_threads.group_by("process", "thread"):
        kind = pl.col("kind").cast(pl.String)
        operators = ends(thread.filter(kind == "operator"))
        later = thread.filter(kind == "after_wait").group_by("operator")
        operators = operators.join(later.agg(later_ns=pl.col("work_ns").sum()), "operator", "left")
        known = pl.sum_horizontal("work_ns", "blocked_ns", "later_ns")
        assert operators.filter(known > pl.col("self_ns")).is_empty()
        labels = operators.filter(known < pl.col("self_ns"))
        filled = thread.select((pl.col("work_ns") + pl.col("blocked_ns")).sum()).item()
        span = operators["end_ns"].max() - operators["start_ns"].min()
        # A gap of nothing but waiting is no node, and the first gap may begin before the span.
        assert (labels["work_ns"] == 0).all()
        assert filled <= span + operators["start_ns"].min() - on_threads["start_ns"].min()


def program_with_waits(seed):
    """Make a program whose operators launch, wait for the stream, and go on working.

    Kernels start 5 us after their call, or when the kernel before them has ended; a wait returns
    3 us after the last kernel has ended. Times are in us.
    """
    pick = random.Random(seed)  # noqa: S311 - the same in every run
    events, state = [], {"free": 0, "number": 0}

    def add(cat, name, tid, start, end, **args):
        place = {"pid": 1 if tid == 7 else 0, "tid": tid, "ts": start, "dur": end - start}
        events.append({"ph": "X", "cat": cat, "name": name, **place, "args": args})

    def launch(now):
        state["number"] += 1
        number = {"correlation": state["number"]}
        start = max(state["free"], now + 9)
        state["free"] = start + pick.randint(20, 300)
        add("cuda_runtime", "cudaLaunchKernel", 7, now, now + 4, **number)
        add("kernel", "gemm", 20, start, state["free"], device=0, stream=20, **number)
        return now + 4

    def wait(now):
        state["number"] += 1
        over = max(now + 2, state["free"] + 3)
        add("cuda_runtime", "cudaStreamSynchronize", 7, now, over, correlation=state["number"])
        return over

    now, row = 10, 0
    for _ in range(40):
        begin, row = now, row + 1
        own = row
        now = launch(now + pick.randint(5, 40)) + 2
        for _ in range(pick.randint(0, 2)):
            now = wait(now) + pick.randint(5, 150)
            if pick.random() < 0.5:
                row += 1
                inner = launch(now + 3) + pick.randint(1, 30)
                child = {"Record function id": row}
                add("cpu_op", "aten::inner", 7, now, inner, **child)
                now = inner + pick.randint(5, 60)
        add("cpu_op", "aten::outer", 7, begin, now, **{"Record function id": own})
        now += pick.randint(1, 30)
    return {"traceEvents": events}


@pytest.mark.parametrize("seed", range(12))
def test_work_of_an_operator_after_its_waits_is_replayed_after_them(seed):
    document = program_with_waits(seed)
    execution = json.dumps(execution_trace_of(document)).encode()
    linked = link_execution_trace(execution, json.dumps(document).encode())
    assert linked.dropped["against_time"] == 0
    assert linked.replay().stuck == 0
    assert linked.replay().error == pytest.approx(0, abs=0.02)
    after = linked.nodes.filter(pl.col("kind").cast(pl.String) == "after_wait")
    assert after.height
    assert after["node"].is_unique().all()
    waits = kinds(linked, "sync")["node"]
    assert after["node"].is_in(waits.implode()).any()


def test_the_order_of_nodes_and_events_changes_nothing(tmp_path):
    document, _ = simulated_pair(simulate("random", seed=3), tmp_path)
    execution = execution_trace_of(document)
    before = link_execution_trace(json.dumps(execution).encode(), json.dumps(document).encode())
    shuffled = random.Random(7)  # noqa: S311 - the same in every run
    shuffled.shuffle(execution["nodes"])
    shuffled.shuffle(document["traceEvents"])
    after = link_execution_trace(json.dumps(execution).encode(), json.dumps(document).encode())
    columns = ["node", "kind", "name", "operator", "start_ns", "work_ns", "blocked_ns"]
    assert after.nodes.select(columns).equals(before.nodes.select(columns))
    columns = ["node", "depends_on", "kind", "after", "evidence"]
    assert after.dependencies.select(columns).equals(before.dependencies.select(columns))


def test_without_numbers_the_order_of_names_finds_the_same(tmp_path):
    document, _ = simulated_pair(simulate("random", seed=5), tmp_path)
    execution = execution_trace_of(document)
    by_number = link_execution_trace(json.dumps(execution).encode(), json.dumps(document).encode())
    for event in document["traceEvents"]:
        event.get("args", {}).pop("Record function id", None)
        event.get("args", {}).pop("External id", None)
    by_order = link_execution_trace(json.dumps(execution).encode(), json.dumps(document).encode())
    assert (by_number.method, by_order.method) == ("record_function_id", "thread_order")
    columns = ["node", "start_ns", "work_ns"]
    assert by_order.nodes.select(columns).equals(by_number.nodes.select(columns))


def test_every_dependency_kind_occurs_in_some_run(tmp_path):
    seen = Counter()
    for name, seed in RUNS:
        document, _ = simulated_pair(simulate(name, seed=seed), tmp_path)
        linked = link_execution_trace(
            json.dumps(execution_trace_of(document)).encode(), json.dumps(document).encode()
        )
        seen.update(linked.dependencies["kind"].cast(pl.String))
    assert {"control", "program_order", "launch", "stream_order", "event_wait", "sync"} <= set(seen)


@pytest.mark.parametrize("number", [2**63 - 1, 2**62, 2**40, -1, -(2**63)])
def test_an_id_among_those_of_device_work_is_no_id(tmp_path, number):
    document, _ = simulated_pair(simulate("inference", seed=1, steps=1), tmp_path)
    execution = execution_trace_of(document)
    execution["nodes"][-1]["id"] = number
    found = read_execution_trace(json.dumps(execution).encode())
    assert found.nodes.height == len(execution["nodes"]) - 1
    assert "node_without_id" in found.diagnostics["code"].to_list()
    linked = link_execution_trace(found, read_trace(json.dumps(document).encode()))
    assert linked.nodes["node"].is_unique().all()
