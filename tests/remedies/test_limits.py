"""What limits a program, where the cost of recording decides it."""

from types import SimpleNamespace

import pytest

from longpole.answer.sentences import limit_words, sentence
from longpole.answer.values import with_trace
from longpole.remedies.gains import gains_of_sides
from longpole.remedies.limits import Both, DependsOnCost, Sides, sides_of, status_of, with_cost
from longpole.testing import TraceBuilder


def gain(low, high, low_by="recording_cost", high_by="recording_cost"):
    return SimpleNamespace(low=low, high=high, low_by=low_by, high_by=high_by)


@pytest.mark.parametrize(
    ("limit", "host", "kernels", "found"),
    [
        (Sides(("host",)), gain(0.2, 0.6), gain(0.1, 0.5), ("host", "kernels")),
        (Sides(("kernels",)), gain(0.1, 0.5), gain(0.2, 0.6), ("kernels", "host")),
        (Sides(("host",)), gain(0.5, 0.6), gain(0.1, 0.4), None),
        (Sides(("kernels",)), gain(0.0, 0.04), gain(0.03, 0.2), None),
        (Sides(("host",)), gain(0.2, 0.6, low_by="unexplained_time"), gain(0.1, 0.5), None),
        (Sides(("kernels",)), gain(0.1, 0.5), gain(0.2, 0.6, low_by="recorded"), None),
        (Sides(("host", "kernels")), gain(0.2, 0.6), gain(0.1, 0.5), None),
        (Both(), gain(0.2, 0.6), gain(0.1, 0.5), None),
    ],
)
def test_the_cost_decides_if_the_leading_side_changes_between_its_bounds(
    limit, host, kernels, found
):
    expected = limit if found is None else DependsOnCost(found)
    assert with_cost(limit, {"host": host, "kernels": kernels}) == expected


def test_an_answer_that_depends_on_the_cost_says_what_settles_it(said):
    builder = TraceBuilder()
    for number in range(3):
        at_us = 100 * number
        builder.step(number, (at_us, at_us + 90))
        builder.launch("gemm", call=(at_us, at_us + 50), work=(at_us + 50, at_us + 100))
    trace = builder.read()
    parts, core = trace.core.verdict(("usual",), data_load=None, step_name=None, every_window=False)
    limit = DependsOnCost(("host", "kernels"))
    parts = with_trace(parts, gains_of_sides(core)) | {"limit": limit}
    told = sentence(parts)
    assert "the host (" in told
    assert "or the kernels (" in told
    said.within(told)
    assert limit_words(parts) == ("host or kernels", "depending on what recording cost")
    assert (sides_of(limit), status_of(limit)) == (("host", "kernels"), "ok")
