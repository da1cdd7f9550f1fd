"""The page that `longpole report` writes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from html.parser import HTMLParser
from importlib.util import find_spec

import pytest

from longpole.analyses.lanes import lanes
from longpole.analyses.questions import answer_blocks, questions
from longpole.cli import program
from longpole.plot.figures import figure_of, step_figure
from longpole.report.blocks import Bar, Chart, Column, Sentence, Table
from longpole.report.page import Page, Section, page_text
from longpole.testing import TraceBuilder
from oracles.simulator import simulate

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u202e"
ELEMENTS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "h1",
    "h2",
    "p",
    "nav",
    "a",
    "main",
    "section",
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "span",
    "i",
    "button",
    "canvas",
    "script",
    "details",
    "summary",
    "strong",
    "br",
}


def builder(name="gemm"):
    found = TraceBuilder().header(distributedInfo={"rank": 2, "world_size": 4})
    for step in range(3):
        begin = 1_000 * step
        found.step(step, (begin, begin + 900))
        found.operator(f"aten::mm {name}", (begin, begin + 20))
        found.launch(name, call=(begin + 5, begin + 10), work=(begin + 12, begin + 700))
        found.launch("ncclAllReduce", call=(begin + 30, begin + 40), work=(begin + 60, begin + 90))
    return found


@pytest.fixture
def written(tmp_path, capsys):
    """Write a report on traces; give its text and what the command prints."""

    def write(*arguments, code=0):
        output = tmp_path / "report.html"
        assert program.run(["report", *map(str, arguments), "-o", str(output)]) == code
        return output.read_text(encoding="utf-8") if code == 0 else "", capsys.readouterr()

    return write


class Elements(HTMLParser):
    """Every element of a page, and what could load or run anything."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.hrefs, self.outside = set(), [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.hrefs.append(value)
            if name.startswith("on") or name in ("src", "srcset", "action"):
                self.outside.append((tag, name, value))


def test_a_report_is_one_page_that_loads_nothing(tmp_path, written):
    page, told = written(builder().write(tmp_path / "trace.json"))
    found = Elements(page)
    assert found.tags <= ELEMENTS
    assert found.outside == []
    assert len(found.ids) == len(set(found.ids))
    assert {href.removeprefix("#") for href in found.hrefs} <= set(found.ids)
    assert "report.html:" in told.out
    sections = re.findall(r'<section id="([^"]+)"', page)
    figures = ["steps"] if find_spec("plotly") else []
    wanted = ["verdict", "timeline", "path", *figures, "summary", "diagnostics", "limits"]
    assert [key for key in sections if key in wanted] == wanted
    unanswered = page.split('id="unanswered"')[1].split("</section>")[0]
    for name, asks in questions().items():
        key = f"question-{name.replace('_', '-')}"
        assert (key in sections) != (escape(asks) in unanswered)


def test_the_policy_names_the_scripts_and_nothing_else(tmp_path, written):
    page, _ = written(builder().write(tmp_path / "trace.json"))
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert f"script-src {' '.join(allowed)};" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_names_stay_text(tmp_path, written):
    trace = builder(HOSTILE).write(tmp_path / "<b>trace.json")
    page, _ = written(trace)
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "\u202e" not in page
    assert Elements(page).tags <= ELEMENTS
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page):
        assert "<" not in data
        json.loads(data)


def test_the_lanes_hold_what_ran_and_the_path_tiles_the_window():
    trace = builder().read()
    path = trace.critical_path(1)
    picture, n_left_out = lanes(trace, None, path)
    assert n_left_out == 0
    first = picture.rows[0]
    assert first["label"] == "critical path"
    assert sum(first["lengths"]) == picture.length_ns == path.length_ns
    labels = [row["label"] for row in picture.rows[1:]]
    assert labels[:2] == ["device 0, stream 7"] * 2
    assert set(labels[2:]) == {"thread 1"}
    for row in picture.rows:
        starts = [sum(row["starts"][: n + 1]) for n in range(len(row["starts"]))]
        ends = [start + length for start, length in zip(starts, row["lengths"], strict=True)]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
        assert 0 <= min(starts) <= max(ends) <= picture.length_ns


def test_the_longest_events_are_drawn_and_the_others_counted():
    trace = builder().read()
    picture, n_left_out = lanes(trace, None, None, most=2)
    drawn = [length for row in picture.rows for length in row["lengths"]]
    assert len(drawn) == 2
    assert n_left_out > 0
    assert 688_000 in drawn


def test_what_is_nested_too_deep_or_on_too_many_threads_is_counted():
    nested = TraceBuilder()
    for depth in range(9):
        nested.operator(f"level {depth}", (depth, 100 - depth))
    picture, n_left_out = lanes(nested.read())
    assert (picture.rows[0]["lengths"], len(picture.rows)) == ([100_000], 6)
    assert n_left_out == 3
    threads = TraceBuilder()
    for thread in range(1, 251):
        threads.operator("op", (0, thread), thread=thread)
    picture, n_left_out = lanes(threads.read())
    assert (len(picture.rows), n_left_out) == (200, 50)
    assert min(row["lengths"][0] for row in picture.rows) == 51_000


def test_several_traces_share_a_page(tmp_path, written):
    traces = [builder().write(tmp_path / f"rank{n}.json") for n in range(2)]
    page, _ = written(*traces)
    assert "Overview" in page
    assert page.count('class="lanes"') == 2
    assert len(Elements(page).ids) == len(set(Elements(page).ids))


def test_a_comparison_is_a_page(tmp_path, written):
    base = tmp_path / "base.json"
    simulate("training", seed=1, steps=6).write(base)
    simulate("training", seed=1, steps=6, layers=5).write(tmp_path / "new.json")
    page, _ = written(tmp_path / "new.json", "--diff", base)
    assert '<section id="changes"' in page
    assert "One run a side cannot tell" in page


def test_a_trace_of_which_nothing_can_be_said_has_a_page(tmp_path, written):
    page, _ = written(TraceBuilder().write(tmp_path / "empty.json"))
    assert "no event of a known kind with a duration" in page
    assert '<section id="diagnostics"' in page


def test_a_report_never_replaces_what_it_should_not(tmp_path, written):
    trace = builder().write(tmp_path / "trace.json")
    written(trace)
    _, told = written(trace, code=2)
    assert "exists" in told.err
    assert program.run(["report", str(trace), "-o", str(trace), "-f"]) == 2


def test_the_same_trace_gives_the_same_bytes(tmp_path, written):
    trace = builder().write(tmp_path / "trace.json")
    first, _ = written(trace)
    second, _ = written(trace, "-f")
    assert first == second


def test_questions_are_found_by_what_they_take_and_give():
    found = questions()
    assert "overlap" in found
    assert not {"check", "summary", "lanes", "gemm_coverage", "by_name"} & set(found)
    trace = builder().read()
    for name in found:
        assert answer_blocks(name, trace)


def test_a_question_that_fails_does_not_end_the_report(tmp_path, written, monkeypatch):
    def fail(*_):
        message = "no answer <b>"
        raise ValueError(message)

    monkeypatch.setattr("longpole.cli.answer.report.answer_blocks", fail)
    page, _ = written(builder().write(tmp_path / "trace.json"))
    assert "this could not be answered: no answer &lt;b&gt;." in page
    assert '<section id="diagnostics"' in page


def test_a_figure_draws_the_first_quantity_of_an_answer():
    table = Table(
        (Column("device", "number"), Column("activity"), Column("time", "duration")),
        [(0, "copy <b>", 2_500_000), (0, "idle", None)],
    )
    figure = figure_of([Sentence("x"), table], "what ran")
    assert figure.data[0]["x"] == [2.5]
    assert figure.layout["yaxis"]["ticktext"] == ["device 0, copy &lt;b>"]
    chart = figure_of([Chart([Bar(0.25, "1 ms", "kernels")])], "path")
    assert chart.data[0]["x"] == [25.0]
    assert figure_of([Sentence("nothing")], "x") is None


def test_steps_are_drawn_by_what_the_device_did():
    trace = builder().read()
    parts = [part["y"] for part in step_figure(trace).data]
    lengths = trace.steps["window_end_ns"] - trace.steps["window_start_ns"]
    sums = [sum(column) for column in zip(*parts, strict=True)]
    assert sums == pytest.approx([length / 1e6 for length in lengths])
    assert step_figure(TraceBuilder().kernel("gemm", (0, 5)).read()) is None


def test_without_plotly_figures_are_left_out():
    table = Table((Column("x", "name"), Column("time", "duration")), [("a", 5)])
    parts = [figure_of([table], "x"), table]
    page = page_text(Page("t", [], [Section("one", "One", parts)]))
    assert 'class="figure"' not in page
    assert "<td" in page


def test_a_section_of_figures_alone_is_left_out_without_plotly():
    sections = [
        Section("steps", "Steps", [step_figure(builder().read())]),
        Section("one", "One", [Sentence("told")]),
    ]
    assert re.findall(r'(?:section id="|href="#)(\w+)', page_text(Page("t", [], sections))) == [
        *("one", "one"),
    ]


def test_what_a_trace_does_not_answer_is_named_in_one_place(tmp_path):
    builder = TraceBuilder()
    for step in range(3):
        builder.step(step, (1_000 * step, 1_000 * step + 900))
        builder.operator("aten::mm", (1_000 * step, 1_000 * step + 800))
    trace = builder.write(tmp_path / "cpu.json")
    assert program.run(["report", str(trace), "-o", str(tmp_path / "cpu.html")]) == 0
    page = (tmp_path / "cpu.html").read_text(encoding="utf-8")
    assert page.count("there is nothing to show") > 3
    assert "There is nothing to show" not in page
    assert 'id="unanswered"' in page
    assert '"idle"' not in page.partition('id="steps"')[2].partition("</section>")[0]
