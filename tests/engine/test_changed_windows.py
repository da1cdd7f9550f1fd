"""How long a window takes after a change: measured between the same moments, by every answer.

A step ends when its GPU activities have, and begins where the step before ended. Both ends move in
the steps of a changed program, unless the device catches up with a backlog in them.
"""

from __future__ import annotations

import re

import pytest

import longpole
from longpole import Drop, RemoveWait, Scale
from longpole.cli.program import run
from longpole.testing import TraceBuilder
from oracles import simulator
from oracles.simulator import simulate
from oracles.simulator.catalogue import launch
from oracles.simulator.program import Busy, Program, Synchronize, annotation, operator, python
from oracles.simulator.programs import COMPUTE

HOST, REDUCE, KERNEL, DELAY = 20_000, 7_000, 5_000, 2
N_STEPS = 5
SIDES = {"kernels": "kernel", "communication": "communication", "copies": "copy"}


def behind(stall: int) -> TraceBuilder:
    """Return steps of 20 ms on the host and 12 ms on the device, which begins with a stall."""
    builder, free = TraceBuilder(), stall
    builder.launch("ncclDevKernel_Broadcast", call=(0, 10), work=(20, stall))
    for number in range(N_STEPS):
        begin = 100 + HOST * number
        builder.step(number, (begin - 50, begin + HOST - 60))
        builder.operator("aten::mm", (begin, begin + HOST - 100))
        launches = (("gemm", KERNEL), ("ncclDevKernel_AllReduce", REDUCE))
        for place, (name, duration) in enumerate(launches):
            call = begin + HOST - 200 + 20 * place
            start = max(free + DELAY, call + 20)
            free = start + duration
            builder.launch(name, call=(call, call + 10), work=(start, free))
    return builder


def test_a_step_in_which_the_device_catches_up_begins_where_it_was_recorded():
    trace = behind(500_000).read()
    path = trace.critical_path(step=3)
    assert path.length_ns == (REDUCE + KERNEL + 2 * DELAY) * 1_000
    saved = {kind: path.what_if(Drop(kind=kind)).gain_ns for kind in ("communication", "kernel")}
    assert saved == {"communication": REDUCE * 1_000, "kernel": KERNEL * 1_000}
    assert path.what_if(Scale(by=0.5, kind="communication")).gain_ns == REDUCE * 500
    assert path.what_if(Drop(kind="operator")).gain_ns == 0
    assert path.what_if([]).gain_ns == 0


@pytest.mark.parametrize("choice", [{"step": 3}, {}], ids=["one step", "all steps"])
def test_the_verdict_of_such_steps_says_what_the_graph_says_and_what_limits_in_the_long_run(choice):
    trace = behind(500_000).read()
    verdict = trace.verdict(**choice)
    length = REDUCE + KERNEL + 2 * DELAY
    assert verdict.sides == ("communication",)
    assert verdict.gains["communication"].value == pytest.approx(REDUCE / length)
    assert verdict.gains["kernels"].value == pytest.approx(KERNEL / length)
    assert (
        trace.gain([Drop(kind="communication")], **choice).value
        == verdict.gains["communication"].value
    )
    assert verdict.window.caught_up_ns == pytest.approx(HOST * 1_000, rel=0.01)
    assert verdict.caveat is not None
    assert verdict.caveat.startswith(
        "The device catches up with earlier work here. In the long run, the host limits the "
        "program: it takes 20.0 ms for a step."
    )


def test_a_change_of_such_a_step_says_so(said, tmp_path, capsys):
    path = behind(500_000).write(tmp_path / "trace.json")
    assert run(["whatif", str(path), "--step", "3", "--drop", "communication"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    said.within(out)
    said.within(out)


def test_steps_that_the_host_limits_need_no_such_note():
    verdict = behind(100).read().verdict()
    assert verdict.sides == ("host",)
    assert verdict.window.caught_up_ns is None
    assert "catches up" not in (verdict.caveat or "")


# Programs that run again with a change.


def catching_up(first_late: int, *, sync: bool) -> Program:
    """Return a program whose device stalls first; from one step on, its work has other names."""
    body = [python("stall.py(1): stall", launch("stall", 60_000_000, COMPUTE))]
    for step in range(N_STEPS):
        late = "late" if step >= first_late else "early"
        work = (
            operator("aten::mm", Busy(20_000), launch(f"{late}_gemm", 500_000, COMPUTE)),
            operator("aten::gelu", Busy(20_000), launch(f"{late}_gelu", 700_000, COMPUTE)),
        )
        end = (Synchronize(),) if sync and step == N_STEPS - 1 else ()
        body.append(annotation(f"ProfilerStep#{step}", Busy(2_000_000), *work, *end, step=step))
    return Program("catching_up", (python("train.py(1): main", *body),))


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("by", [0.0, 0.5])
@pytest.mark.parametrize("name", ["gemm", "gelu", "ge"])
def test_a_step_that_catches_up_takes_as_long_as_if_only_its_own_work_were_changed(
    name, by, sync, tmp_path
):
    program = simulate(catching_up(3, sync=sync), seed=1)
    program.write(tmp_path / "trace.json")
    path = longpole.read_trace(tmp_path / "trace.json").critical_path(step=3)
    truth_ns = program.what_if([simulator.Scale("kernel", f"late_{name}", by=by)])["step 3 period"]
    changed = path.what_if(Scale(by=by, kind="kernel", matching=name))
    assert changed.makespan_ns == pytest.approx(truth_ns, rel=0.005)
    assert changed.gain_ns > 0.9 * (1 - by) * 500_000


# What holds of every window.


def changes_of(kind: str) -> list:
    return [Scale(by=by, kind=kind) for by in (0, 0.3, 0.9)]


LESS = [
    change
    for kind in ("kernel", "communication", "copy", "operator", "host_gap", "launch")
    for change in changes_of(kind)
] + [RemoveWait(kind=kind) for kind in ("sync_return", "event_wait")]


@pytest.fixture(scope="module", params=range(12))
def simulated(request, tmp_path_factory):
    name = ("training", "random", "inference")[request.param % 3]
    run = simulate(name, seed=request.param, steps=4)
    file = tmp_path_factory.mktemp("simulated") / "trace.json"
    run.write(file, sync_records=bool(request.param % 2))
    return longpole.read_trace(file)


def windows_of(trace):
    """List the paths of each step, of each step from its own start on, and of the whole trace."""
    steps = trace.steps["step"].to_list()
    paths = [
        trace.critical_path(step=step, end=end) for step in steps for end in ("period", "last")
    ]
    paths += [trace.critical_path(whole=True)]
    return [path for path in paths if path.length_ns]


def test_less_work_never_makes_a_window_longer(simulated):
    for path in windows_of(simulated):
        for change in LESS:
            changed = path.what_if(change)
            assert changed.gain_ns >= 0, change
            segments = changed.critical_path.segments["duration_ns"]
            assert segments.sum() == changed.makespan_ns >= 0


def test_no_change_leaves_every_window_as_recorded(simulated):
    for path in windows_of(simulated):
        for nothing in ([], [Scale(by=1)], [Drop(matching="no such name")]):
            changed = path.what_if(nothing)
            assert changed.makespan_ns == path.length_ns
            assert changed.critical_path.segments.equals(path.segments)


def test_a_window_with_a_start_of_its_own_loses_no_more_than_what_is_in_it(simulated):
    steps = simulated.steps["step"].to_list()
    for step in steps:
        path = simulated.critical_path(step=step, end="last")
        for kind in SIDES.values():
            gain_ns = path.what_if(Drop(kind=kind)).gain_ns
            assert gain_ns <= union_ns(simulated, kind, path.window)


def union_ns(trace, kind, window):
    """Return how long any activity of a kind runs in a window, by the recorded times."""
    is_reduce = re.compile("nccl")
    kinds = {"copy": ("copy", "fill")}.get(kind, ("kernel", "communication"))
    rows = trace.events.select("kind", "name", "start_ns", "duration_ns").iter_rows()
    spans = sorted(
        (max(start_ns, window[0]), min(start_ns + duration_ns, window[1]))
        for of, name, start_ns, duration_ns in rows
        if of in kinds
        and (kind == "copy" or bool(is_reduce.search(name)) == (kind == "communication"))
    )
    total_ns, until_ns = 0, window[0]
    for start_ns, end_ns in spans:
        total_ns += max(0, end_ns - max(start_ns, until_ns))
        until_ns = max(until_ns, end_ns)
    return total_ns


def test_the_verdict_of_a_step_gains_what_its_what_if_gains(simulated):
    for step in simulated.steps["step"].to_list():
        verdict = simulated.verdict(step=step)
        path = simulated.critical_path(step=step)
        if verdict.status not in {"ok", "balanced"} or not path.length_ns:
            continue
        for side, kind in SIDES.items():
            gain = path.what_if(Drop(kind=kind)).gain_ns / path.length_ns
            assert verdict.gains[side].value == pytest.approx(gain)
