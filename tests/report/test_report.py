"""The page that `longpole report` writes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from longpole.cli import program
from longpole.cli.answer.pages import facts_of, names_of
from longpole.plot.figures import figure_of
from longpole.report.blocks import Bar, Chart, Column, Sentence, Table
from longpole.tables.catalogue import PATH_TABLES, views_of
from longpole.tables.questions import questions
from longpole.tables.table_blocks import answer_blocks
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u202e"
ELEMENTS = set(
    """
    html head meta title style body header h1 h2 h3 h4 p noscript input ol nav a main section
    div table thead tbody tr th td ul li span i button canvas script details summary strong br code
    """.split()  # noqa: SIM905
)


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


@pytest.fixture
def compared(capsys):
    """Compare two traces; give the page."""

    def compare(*arguments, code=None):
        got = program.run(["diff", *map(str, arguments), "--format", "html"])
        assert code is None or got == code
        return capsys.readouterr().out

    return compare


class Elements(HTMLParser):
    """Every element of a page, what could load or run anything, and what is seen or folded."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.hrefs, self.outside = set(), [], [], []
        self.seen, self.folded, self.in_folds = [], [], 0
        self.feed(page)

    def handle_endtag(self, tag):
        self.in_folds -= tag == "details"

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "section" and not self.in_folds:
            self.seen.append(dict(attrs)["id"])
        if tag == "details" and not self.in_folds:
            self.folded.append(self.seen.pop())
        self.in_folds += tag == "details"
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.hrefs.append(value)
            if name.startswith("on") or name in ("src", "srcset", "action"):
                self.outside.append((tag, name, value))


def test_a_report_is_one_page_that_loads_nothing(tmp_path, written):
    page, printed = written(builder().write(tmp_path / "trace.json"))
    found = Elements(page)
    assert found.tags <= ELEMENTS
    assert found.outside == []
    assert len(found.ids) == len(set(found.ids))
    assert {href.removeprefix("#") for href in found.hrefs} <= set(found.ids)
    assert "report.html:" in printed.out
    sections = re.findall(r'<section id="([^"]+)"', page)
    unanswered = page.split('id="unanswered"')[1].split("</section>")[0]
    for name in questions().keys() - PATH_TABLES:
        default, *others = views_of(name)
        for title in (name, *(f"{name} by {by}" for by in others)):
            key = f"question-{re.sub('[^a-z]', '-', title)}"
            is_unanswered = re.search(rf"(<li>|, ){title}[,:]", unanswered) is not None
            assert (key in sections) != is_unanswered, (title, default)


def test_what_is_seen_first_is_the_answer_and_the_tables_are_folded(tmp_path, written):
    page, _ = written(builder().write(tmp_path / "trace.json"))
    found = Elements(page)
    top = ["verdict", "timeline", "path", "time", "tables", "flame", "diagnostics"]
    places = [href.removeprefix("#") for href in found.hrefs]
    assert [key for key in places if "event-" not in key] == [*top, "events", "limits"]
    assert found.seen == [
        "verdict",
        "as-recorded",
        *top[1:4],
        "tables",
        "flame",
        "flame-path",
        "diagnostics",
    ]
    assert "question-kernels" in found.folded


def test_many_ranks_have_few_sections_each_rank_in_one(tmp_path, written):
    run = random_ranks(3, n_ranks=8)
    folder = tmp_path / "a run with a very long name" / "traces"
    folder.mkdir(parents=True)
    write_ranks(run.job, run.job.times_ns(), run.clocks, folder)
    page, _ = written(folder)
    found = Elements(page)
    assert len(found.ids) > 150
    assert found.seen == ["verdict", "calls", "traces"]
    assert set(found.folded) == {"limits", *(f"trace-{number}" for number in range(8))}
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert header.count("a run with a very long name") == 1
    assert header.count("<p>") == 2  # with the one for browsers without scripts
    for rank in range(8):
        assert page.count(f"<summary>Rank {rank} ") == 1


def test_traces_of_one_name_are_told_apart_by_their_folders():
    assert names_of([("/a/rank0/trace.json", None), ("/a/rank1/trace.json", None)]) == [
        *("rank0/trace.json", "rank1/trace.json"),
    ]
    assert names_of([("/a/one.json", None), ("b/two.json", None)]) == ["one.json", "two.json"]


def test_of_very_many_traces_some_are_shown_in_full_and_the_others_counted(tmp_path, written):
    paths = [
        TraceBuilder().kernel("gemm", (0, 5)).write(tmp_path / f"{number}.json")
        for number in range(18)
    ]
    page, _ = written(*paths)
    assert len([key for key in Elements(page).folded if key.startswith("trace-")]) == 16
    assert "2 more traces" in page
    assert page.count("16.json") == page.count("17.json") == 1


def test_each_of_several_traces_says_what_holds_it_up_before_it_is_opened(said, tmp_path, written):
    trace = builder().write(tmp_path / "one.json")
    page, _ = written(trace, TraceBuilder().write(tmp_path / "two.json"))
    one, two = re.findall(r'id="trace-\d"><details><summary>(.*?)</summary>', page)
    said(re.sub("<.*?>", "", one))
    said(re.sub("<.*?>", "", two))


def test_the_policy_names_the_scripts_and_nothing_else(tmp_path, written):
    page, _ = written(builder().write(tmp_path / "trace.json"))
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert f"script-src {' '.join(allowed)};" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("kind", ["one", "several", "ranks", "comparison"])
def test_names_stay_text(tmp_path, written, compared, kind):
    first, second = tmp_path / "<b>first.json", tmp_path / "<b>second.json"
    builder(HOSTILE).write(first)
    ranked = builder(HOSTILE)
    if kind == "ranks":
        ranked.header(distributedInfo={"rank": 3, "world_size": 4})
    ranked.write(second)
    if kind == "comparison":
        page = compared(first, second)
    else:
        page, _ = written(*([first] if kind == "one" else [first, second]))
    assert 'id="verdict"' in page or kind == "several"
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "\u202e" not in page
    assert Elements(page).tags <= ELEMENTS
    drawn = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert drawn
    for data in drawn:
        assert "<" not in data
        assert "names" in json.loads(data)


def test_several_traces_share_a_page(tmp_path, written):
    traces = [builder().write(tmp_path / f"rank{n}.json") for n in range(2)]
    page, _ = written(*traces)
    assert page.count("What this trace does not answer") == 2
    assert len(Elements(page).ids) == len(set(Elements(page).ids))


def test_traces_that_nothing_joins_are_said_to_be_apart(tmp_path, written):
    traces = [builder().write(tmp_path / f"{name}.json") for name in ("before", "after")]
    page, told = written(*traces)
    for text in (page, " ".join(told.out.split())):
        assert "each is shown alone" in text
        assert "longpole diff BASE NEW --format html" in text
    page, told = written(traces[0], "--force")
    assert "shown alone" not in page + told.out


def test_a_comparison_is_a_page(said, tmp_path, compared):
    base = tmp_path / "base.json"
    simulate("training", seed=1, steps=6).write(base)
    simulate("training", seed=1, steps=6, layers=5).write(tmp_path / "new.json")
    page = compared(base, tmp_path / "new.json")
    assert Elements(page).seen == ["verdict", "changes", "steps"]
    assert Elements(page).folded == ["table", "limits"]
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert "base.json -&gt; " in header
    assert "2 traces in " in header
    lanes = page.partition('<section id="steps"')[2].partition("</section>")[0]
    assert 'class="lanes"' in lanes
    said.within(page)


def test_a_trace_of_which_nothing_can_be_said_has_a_page(said, tmp_path, written):
    page, _ = written(TraceBuilder().write(tmp_path / "empty.json"))
    said.within(page)
    assert '<section id="diagnostics"' in page


def test_a_report_never_replaces_what_it_should_not(tmp_path, written):
    trace = builder().write(tmp_path / "trace.json")
    written(trace)
    _, printed = written(trace, code=2)
    assert "exists" in printed.err
    assert program.run(["report", str(trace), "-o", str(trace), "-f"]) == 2


def test_the_same_trace_gives_the_same_bytes(tmp_path, written):
    trace = builder().write(tmp_path / "trace.json")
    first, _ = written(trace)
    second, _ = written(trace, "-f")
    assert first == second


def test_questions_are_found_by_what_they_take_and_give():
    found = questions()
    assert "breakdown" in found
    assert not {"check", "summary", "lanes", "gemm_coverage", "by_name"} & set(found)
    trace = builder().read()
    for name in found:
        for by in views_of(name):
            assert answer_blocks(name, trace, by=by)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no answer <b>"), "no answer &lt;b&gt;."),
        (KeyError("new"), "internal error (please report): KeyError: &#x27;new&#x27;."),
    ],
)
def test_a_question_that_fails_does_not_end_the_report(tmp_path, written, monkeypatch, error, told):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("longpole.cli.report.page.answer_blocks", fail)
    page, _ = written(builder().write(tmp_path / "trace.json"))
    assert f"This question could not be answered: {told}" in page
    assert '<section id="diagnostics"' in page


def test_a_figure_draws_the_first_quantity_of_an_answer():
    table = Table(
        (Column("device", "number"), Column("activity"), Column("time", "duration")),
        [(0, "copy <b>", 2_500_000), (0, "idle", None)],
    )
    figure = figure_of([Sentence("x"), table], "what ran")
    assert figure.data[0]["x"] == [2.5]
    assert figure.layout["yaxis"]["ticktext"] == ["device 0, copy &lt;b>"]
    margins = figure.layout["margin"]
    assert figure.layout["height"] - margins["t"] - margins["b"] >= 20
    bars = [Bar(0.25, "1 ms", "kernels", "kernel"), Bar(0.75, "3 ms", "waits", "wait")]
    chart = figure_of([Chart(bars)], "path")
    assert chart.data[0]["x"] == [25.0, 75.0]
    assert chart.data[0]["meta"] == {"color": ["kernel", "wait"]}
    assert figure_of([Sentence("nothing")], "x") is None


def test_a_figure_of_the_breakdown_draws_the_busy_time_of_devices_and_streams():
    figure = figure_of(answer_blocks("breakdown", builder().read()), "busy")
    assert figure.layout["xaxis"]["title"]["text"] == "busy (ms)"
    assert figure.layout["yaxis"]["ticktext"] == ["device 0", "device 0, stream 7"]


def test_what_a_trace_does_not_answer_is_named_in_one_place(tmp_path):
    builder = TraceBuilder()
    for step in range(3):
        builder.step(step, (1_000 * step, 1_000 * step + 900))
        builder.operator("aten::mm", (1_000 * step, 1_000 * step + 800))
    trace = builder.write(tmp_path / "cpu.json")
    assert program.run(["report", str(trace), "-o", str(tmp_path / "cpu.html")]) == 0
    page = (tmp_path / "cpu.html").read_text(encoding="utf-8")
    assert page.count("The trace has no GPU activities: record with") == 1
    assert re.search(r"activities, breakdown, .*: The trace has no GPU activities", page)
    assert 'id="unanswered"' in page
    steps = page.partition('<ol class="columns">')[2].partition("</ol>")[0]
    assert re.search(r'title="2, [\d.]+ [mµ]s: step 100 %"', steps)
    assert "idle" not in steps


@pytest.mark.parametrize(("name", "last"), [("", "rank 2 of 4"), ("MI355X", "rank 2 of 4, MI355X")])
def test_a_device_without_a_name_is_no_fact(name, last):
    device = {"id": 0, "name": name, "totalGlobalMem": 1}
    trace = builder().header(deviceProperties=[device]).read()
    [facts] = facts_of([("trace.json", trace)])
    assert facts.endswith(f"kineto-json, {last}")


def test_a_page_says_that_a_window_has_earlier_work(tmp_path, written, capsys):
    """The first kernel of the step was launched before the recording."""
    found = TraceBuilder().step(1, (0, 1_000)).kernel("old", (0, 100))
    for begin in range(100, 1_000, 100):
        call, work = (begin - 90, begin - 80), (begin + 1, begin + 99)
        found.operator("aten::mm", (begin - 95, begin - 75)).launch("gemm", call=call, work=work)
    path = found.write(tmp_path / "trace.json")
    page, _ = written(path)
    told = "1 GPU activity (100 µs of step 1) was most likely launched before recording began"
    assert told in page
    assert program.run(["summary", str(path)]) == 0
    assert told in " ".join(capsys.readouterr().out.split())
