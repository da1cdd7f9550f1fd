"""What notebooks show: the blocks of the report, with every name escaped."""

from __future__ import annotations

import pytest

import longpole
import longpole.plot
from longpole.testing import TraceBuilder

NAME = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def trace():
    builder = TraceBuilder()
    for step in range(3):
        begin = 1_000 * step
        builder.step(step, (begin, begin + 900))
        builder.launch(NAME, call=(begin, begin + 10), work=(begin + 12, begin + 890))
        builder.call("cudaDeviceSynchronize", (begin + 20, begin + 895))
    return builder.read()


def test_answers_show_themselves_with_names_as_text(trace):
    shown = [
        trace._repr_html_(),
        trace.verdict()._repr_html_(),
        trace.critical_path(1)._repr_html_(),
        longpole.diff(trace, trace)._repr_html_(),
    ]
    for html in shown:
        assert "<p>" in html
        assert "<script" not in html
    assert "alert(1)" in shown[2]
    sentence = trace.verdict().sentence.split(";")[0]
    assert all(sentence in html for html in shown[:2])


def test_ranks_show_themselves_with_names_as_text(tmp_path):
    for number in range(2):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        begin = 100 * number
        builder.step(1, (0, 900)).operator(NAME, (0, begin + 50))
        builder.launch("ncclDevKernel_AllReduce", call=(begin, begin + 10), work=(begin + 12, 890))
        builder.write(tmp_path / f"rank{number}.json")
    found = longpole.read_traces(tmp_path)
    overview, answer = found._repr_html_(), longpole.ranks(found)._repr_html_()
    for html in (overview, answer):
        assert "<table" in html
        assert "<script" not in html
    assert "2 ranks, 1 call" in overview
    assert "Clocks: " in answer


def test_a_trace_without_any_work_shows_itself(said):
    html = TraceBuilder().read()._repr_html_()
    said.within(html)


@pytest.mark.needs("plotly")
def test_figures_are_drawn_by_question(said, trace):
    assert longpole.plot.step_times(trace).data[0].type == "bar"
    path = longpole.plot.path(trace, 1)
    said(path.layout.title.text)
    bars = path.to_dict()["data"][0]
    assert bars["x"][0] == pytest.approx(87.8, abs=0.1)
    assert sum(bars["x"]) == pytest.approx(100)
    assert bars["marker"]["color"][0] == "#4e79a7"
    assert len(bars["marker"]["color"]) == len(bars["x"])
    assert longpole.plot.operators is not None
    with pytest.raises(ValueError, match="nothing that can be drawn"):
        longpole.plot.events(trace)
    with pytest.raises(AttributeError):
        _ = longpole.plot.no_such_question
