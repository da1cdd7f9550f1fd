"""A thread that stands still anywhere: the trace and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of

from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

# Before which launches the thread stops, in each step.
ELSEWHERE = [(10, 60), (31, 85), (44, 72), (22, 97)]
ALIKE = [(10, 60)] * 4


def launching(stops: Sequence[Sequence[int]], *, are_inside: bool = False) -> TraceBuilder:
    """Build steps of 100 launches, with stops of 3 ms before some of them, or inside."""
    builder, now = TraceBuilder(), 0
    for number, places in enumerate(stops):
        begin = now
        for place in range(100):
            stop = 3_000 if place in places else 2
            now += 2 if are_inside else stop
            end = now + (stop if are_inside else 0) + 8
            builder.operator("aten::linear", (now, end))
            builder.operator("aten::mm", (now, end))
            builder.launch("gemm", call=(end - 7, end - 1), work=(end + 1, end + 7))
            now = end
        now += 20
        builder.step(number, (begin, now))
    return builder


def test_stops_at_other_places_in_every_step_are_said(said):
    found = remedy_of("host_threads", launching(ELSEWHERE))
    assert (found.gain.low, found.gain.high, found.named) == (0, 0, True)
    assert found.advice.startswith("Give the launching thread a processor of its own")
    said(found.evidence)


def test_stops_inside_operators_are_said_once(said):
    found = remedy_of("host_threads", launching(ELSEWHERE, are_inside=True))
    said.within(found.evidence)


def test_operators_that_always_take_long_are_left_alone():
    assert remedy_of("host_threads", launching([range(0, 100, 2)] * 4, are_inside=True)) is None


def test_stops_at_the_same_places_are_work_of_the_program():
    assert remedy_of("host_threads", launching(ALIKE)) is None


def test_a_step_without_stops_is_left_alone():
    assert remedy_of("host_threads", launching([*ELSEWHERE[:3], ()])) is None
