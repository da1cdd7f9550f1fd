"""A remedy gains no more than its side would if that took no time.

A host that is ahead when the first window begins has launched work for it already. Kernels that
take half as long then drain what was launched before, so that the windows would seem shorter than
the host lets steps be in the long run. Kernels that take no time drain it at once, which shows the
pace of the host.
"""

from __future__ import annotations

import pytest

from longpole import RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.testing import TraceBuilder

HOST, KERNEL = 10_000, 16_000


def steps(backlog: int):
    """Return six steps of 10 ms on the host and 16 ms on the device, with a backlog before."""
    builder, free = TraceBuilder(), 100 + backlog
    builder.launch("warm_up", call=(0, 10), work=(20, free))
    for number in range(6):
        begin = 100 + HOST * number
        builder.step(number, (begin - 50, begin + HOST - 60))
        builder.operator("aten::mm", (begin, begin + HOST - 100))
        start = max(free + 2, begin + HOST - 180)
        work = (start, start + KERNEL)
        builder.launch("gemm", call=(begin + HOST - 200, begin + HOST - 190), work=work)
        free = work[1]
    return builder.read()


def gains_ns(trace, *parts: float) -> list[int]:
    """Return what the graph alone gains with kernels that take these parts of their time."""
    path = trace.critical_path()
    return [path.what_if(Scale(by=part, kind="kernel")).gain_ns for part in parts]


@pytest.mark.parametrize("backlog", [0, 20_000, 60_000, 200_000])
def test_kernels_without_time_gain_no_less_than_kernels_of_half_the_time(backlog):
    none, half, most = gains_ns(steps(backlog), 0.0, 0.5, 0.9)
    assert none == half == (KERNEL + 2 - HOST) * 1_000
    assert most == KERNEL // 10 * 1_000


def test_some_kernels_gain_no_more_than_all():
    path = steps(60_000).critical_path()
    only = [path.what_if(Scale(by=by, kind="kernel", matching="gemm")).gain_ns for by in (0.5, 0)]
    assert only == [(KERNEL + 2 - HOST) * 1_000] * 2


def test_the_new_path_is_that_of_the_host_where_a_backlog_would_hide_it():
    changed = steps(60_000).critical_path().what_if(Scale(by=0.5, kind="kernel"))
    segments = changed.critical_path.segments
    longest = segments.sort("duration_ns").row(-1, named=True)
    assert longest["kind"] == "operator"
    assert changed.makespan_ns == segments["duration_ns"].sum()


def halved(_facts):
    """Find kernels that can take half of their time."""
    change = Scale(by=0.5, kind="kernel")
    return [Found(careful=[change], hopeful=[change], advice="Halve the kernels", events=[])]


def mixed(_facts):
    """Find kernels that can take half of their time, and a wait that can go."""
    changes = [Scale(by=0.5, kind="kernel"), RemoveWait()]
    return [Found(careful=changes, advice="Halve the kernels", events=[])]


def test_a_remedy_of_two_sides_gains_what_the_pace_of_the_host_leaves(monkeypatch):
    texts = dict.fromkeys(("needs", "seen_by", "change", "not_when"), "")
    remedy = Remedy(id="mixed", side="kernels", effort="code", find=mixed, **texts)
    monkeypatch.setattr("longpole.remedies.catalogue.remedies", lambda: (remedy,))
    [row] = steps(60_000).verdict().remedies
    assert row.gain.low == pytest.approx(1 - HOST / KERNEL, abs=0.01)
    assert row.gain.high == row.gain.low, "no more than without all kernels and waits"


def test_a_remedy_of_kernels_gains_what_the_pace_of_the_host_leaves(monkeypatch):
    texts = dict.fromkeys(("needs", "seen_by", "change", "not_when"), "")
    remedy = Remedy(id="halved", side="kernels", effort="code", find=halved, **texts)
    monkeypatch.setattr("longpole.remedies.catalogue.remedies", lambda: (remedy,))
    verdict = steps(60_000).verdict()
    [row] = verdict.remedies
    assert row.gain.low == row.gain.high == pytest.approx(verdict.gains["kernels"].value)
    assert row.gain.high == pytest.approx(1 - HOST / KERNEL, abs=0.01)
