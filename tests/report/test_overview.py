"""The first screen of a report: its figures are those of the answers, its bars sum to the whole."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import longpole
from longpole.answer.blocks import rest_of
from longpole.cli import program
from longpole.cli.answer import overview
from longpole.jobs.ranks import ranks
from longpole.tables.mfu import mfu
from longpole.tables.summary import summary_of
from longpole.testing import TraceBuilder
from longpole.words.wording import duration, share

RECORDINGS = Path(__file__).parents[1] / "recordings"


class Page(HTMLParser):
    """The tiles, bars and gains of a page, its links and the places that they may lead to."""

    def __init__(self, text):
        super().__init__()
        self.tiles, self.stacks, self.ranges = {}, [], []
        self.ids, self.links = [], []
        self._label = None
        self._in = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"].removeprefix("#")] if "href" in found else []
        style = found.get("style", "")
        match tag, found.get("class"):
            case "div", "whole":
                self.stacks.append([])
            case "span", "range":
                self.ranges.append(tuple(map(float, re.findall(r"--\w+: ([\d.]+)", style))))
            case "span", "label":
                self._in = ["label"]
            case "strong", None:
                self._in = ["value"]
        if "title" in found and "--share" in style:
            self.stacks[-1].append((found["title"], float(style.rpartition("--share: ")[2])))

    def handle_data(self, data):
        match self._in:
            case ["label"]:
                self._label = data
            case ["value"] if self._label:
                self.tiles[self._label], self._label = data, None
        self._in = []


@pytest.fixture
def reported(tmp_path, capsys):
    """Write a report and read its page."""

    def write(*arguments):
        output = tmp_path / "report.html"
        assert program.run(["report", *map(str, arguments), "-o", str(output), "-f"]) == 0
        capsys.readouterr()
        return Page(output.read_text(encoding="utf-8"))

    return write


@pytest.mark.parametrize("name", ["kernels.before", "decode.before", "masks.before", "plain"])
def test_the_figures_are_those_of_the_answers(name, reported):
    path = RECORDINGS / f"{name}.json.gz"
    page = reported(path)
    trace = longpole.read_trace(path)
    found = summary_of(trace, trace.answer(), 10)
    busiest = max(device.whole.busy_ns for device in found.devices)
    noun = found.window.kind.capitalize()
    assert page.tiles[f"{noun} time"] == duration(found.window.duration_ns)
    assert page.tiles["Device busy"] == share(busiest / found.window.duration_ns)
    value, note = found.verdict.limited_by
    assert page.tiles["Limited by"] == value
    assert value.split(" and ")[0].removesuffix("s") in found.verdict.sentence
    amount = re.search(r"\d+ %", note)
    assert amount is None or amount[0] in found.verdict.sentence
    utilisation = mfu(trace, found.window).mfu
    assert page.tiles.get("MFU") == (None if utilisation is None else share(utilisation))
    assert "Memory peak" not in page.tiles
    assert "-" not in page.tiles.values()
    listed = [*found.verdict.plan.lines, *rest_of(found.verdict)]
    for drawn, remedy in zip(page.ranges, listed, strict=True):
        assert drawn == pytest.approx(remedy.saves[:2], abs=1e-4)


@pytest.mark.parametrize("name", ["kernels.before", "decode.before", "threads", "graph4"])
def test_the_parts_of_each_bar_sum_to_all_of_it(name, reported):
    path = RECORDINGS / f"{name}.json.gz"
    page = reported(path)
    device, of_path = page.stacks
    for stack in page.stacks:
        assert sum(part for _, part in stack) == pytest.approx(1, abs=1e-4)
    trace = longpole.read_trace(path)
    kinds = {row["kind"]: row["duration_ns"] for row in trace.critical_path().kind_totals}
    kernels = next((title for title, _ in of_path if title.startswith("kernel execution")), "")
    assert not kernels or f": {duration(kinds['kernel'])}," in kernels
    busy = trace.busy(*trace.critical_path().window)
    [compute_ns] = busy.filter(busy["stream"].is_null())["compute_ns"]
    assert device[0][0].startswith(f"kernels: {duration(compute_ns)}")


@pytest.mark.parametrize("name", ["kernels.before", "decode.before", "threads"])
def test_each_step_has_a_column_of_what_the_device_did(name, tmp_path, reported):
    path = RECORDINGS / f"{name}.json.gz"
    reported(path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    trace = longpole.read_trace(path)
    columns = text.partition('<ol class="columns">')[2].partition("</ol>")[0].split("<li ")[1:]
    lengths = trace.steps["window_end_ns"] - trace.steps["window_start_ns"]
    longest = max(it for it in lengths if it <= 3 * lengths.median())
    heights = [float(re.search(r"--length: ([\d.]+)", column)[1]) for column in columns]
    assert heights == pytest.approx([min(it / longest, 1) for it in lengths], abs=1e-4)
    for column, step in zip(columns, trace.steps.iter_rows(named=True), strict=True):
        shares = [float(part) for part in re.findall(r"--share: ([\d.]+)", column)]
        assert sum(shares) == pytest.approx(1, abs=1e-4)
        busy = trace.busy(step["window_start_ns"], step["window_end_ns"])
        [compute_ns] = busy.filter(busy["stream"].is_null())["compute_ns"]
        length_ns = step["window_end_ns"] - step["window_start_ns"]
        assert f", {duration(length_ns)}: kernels {share(compute_ns / length_ns)}" in column
    [chosen] = [column for column in columns if "<strong>" in column]
    assert f"<strong>{longpole.choose_window(trace).step}</strong>" in chosen


def test_every_event_that_the_page_names_is_a_link_with_a_place(reported):
    page = reported(RECORDINGS / "decode.before.json.gz")
    events = [link for link in page.links if link.startswith("event-")]
    assert len(events) > 20
    assert set(page.links) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    trace = longpole.read_trace(RECORDINGS / "decode.before.json.gz").without_profiler()
    for line in trace.verdict().plan.lines:
        assert {f"event-{event}" for event in line.events} & set(events)


def test_a_remedy_is_told_of_once(tmp_path, reported):
    path = RECORDINGS / "download.before.json.gz"
    reported(path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    verdict = longpole.read_trace(path).without_profiler().verdict()
    others = [it for it in verdict.remedies if it.is_listed and not it.named]
    assert others
    assert "Also possible" not in text
    assert text.count('<section id="more-remedies">') == 1


def test_the_bar_of_a_remedy_leads_to_an_event_of_the_window_or_to_what_it_changes(
    tmp_path, reported
):
    path = RECORDINGS / "decode.before.json.gz"
    reported(path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    trace = longpole.read_trace(path)
    answer, window = trace.answer(), longpole.choose_window(trace)
    [trip] = [it for it in answer.remedies if it.remedy == "round_trip"]
    [start_ns] = trace.events["start_ns"].gather(trip.events[:1])
    assert window.start_ns <= start_ns < window.end_ns
    assert f'href="#event-{trip.events[0]}"' in text
    elsewhere = overview._interval(trip, [], answer, window)
    parts = [
        answer.trace.core.recorded_times(lane, (start, end))
        for change in trip.changes
        for lane, start, end in getattr(change, "time_ranges", None) or ()
    ]
    assert elsewhere.time_range in [(start - window.start_ns, end - start) for start, end in parts]


@pytest.mark.parametrize("known", [True, False])
def test_a_utilisation_that_most_kernels_do_not_tell_has_no_tile(known, tmp_path, reported):
    builder = TraceBuilder()
    inputs = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"]}
    builder.header(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    builder.operator("aten::mm", (0, 20), **inputs)
    builder.launch("gemm", call=(5, 10), work=(12, 40))
    builder.launch("custom", call=(30, 35), work=(40, 45 if known else 95))
    page = reported(builder.write(tmp_path / "trace.json"))
    assert ("MFU" in page.tiles) == known


def test_the_row_of_an_event_has_its_operator_with_shapes(tmp_path, reported):
    builder = TraceBuilder()
    inputs = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}
    builder.operator("aten::mm", (0, 20), **inputs)
    builder.launch("gemm <b>", call=(5, 10), work=(12, 700))
    reported(builder.write(tmp_path / "trace.json"))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    events = text.partition('<section id="events"')[2].partition("</section>")[0]
    row = next(row for row in events.split("<tr>") if "gemm" in row)
    assert "gemm &lt;b&gt;" in row
    assert "aten::mm [64, 32] [32, 16]" in row
    assert "device 0, stream 7" in row
    drawn = text.partition('<section id="timeline"')[2].partition("</section>")[0]
    assert '"launchers":[' in drawn
    assert "aten::mm [64, 32] [32, 16]" in drawn


def test_what_is_not_known_has_no_tile(tmp_path, reported):
    builder = TraceBuilder()
    for step in range(3):
        begin = 1_000 * step
        builder.step(step, (begin, begin + 900)).operator("aten::mm", (begin, begin + 800))
    page = reported(builder.write(tmp_path / "cpu.json"))
    assert set(page.tiles) == {"Step time"}
    assert len(page.stacks) == 1
    assert page.ranges == []


def test_a_tile_has_the_peak_of_recorded_memory(tmp_path, reported):
    builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100))
    event = {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event"}
    total = {"Total Allocated": 3 << 29, "Total Reserved": 4 << 29}
    place = {"Addr": 7, "Device Id": 0, "Device Type": 1}
    builder.event(**event, ts=20, pid=1, tid=1, args={**place, "Bytes": 3 << 29, **total})
    page = reported(builder.write(tmp_path / "trace.json"))
    assert page.tiles["Memory peak"] == "1.5 GiB"


def test_the_tables_about_what_limits_the_program_come_first_and_are_open(tmp_path, reported):
    builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100))
    reported(builder.write(tmp_path / "trace.json"))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    tables = re.findall(r'id="question-([\w-]+)"><details( open)?>', text)
    assert tables[0] == ("kernels", " open")
    assert [name for name, is_open in tables if is_open] == [
        name for name, _ in tables if name in {"kernels", "roofline"}
    ]


def test_a_comparison_begins_with_the_figures_of_both_sides(capsys):
    base, new = (RECORDINGS / f"kernels.{side}.json.gz" for side in ("before", "after"))
    assert program.run(["diff", str(base), str(new), "--format", "html"]) == 0
    page = Page(capsys.readouterr().out)
    found = longpole.diff(longpole.read_trace(base), longpole.read_trace(new))
    lengths = [duration(round(side.mean_ns)) for side in (found.base, found.new)]
    assert page.tiles["Mean step"] == " → ".join(lengths)
    assert page.tiles["Change"] == f"{100 * found.change:.1f} %"
    assert page.tiles["Limited by"] == "kernels"
    assert len(page.stacks) == 2
    for stack in page.stacks:
        assert sum(part for _, part in stack) == pytest.approx(1, abs=1e-4)
    names = [[title.partition(":")[0] for title, _ in stack] for stack in page.stacks]
    base_kinds, new_kinds = ([it for it in each if it != "all other kinds"] for each in names)
    assert base_kinds == new_kinds != []


def test_each_of_several_devices_has_a_bar_the_busiest_first(tmp_path, reported):
    builder = TraceBuilder()
    for device, end in ((0, 40), (1, 90)):
        builder.kernel("gemm", (10, end), device=device)
    builder.operator("aten::mm", (0, 100))
    page = reported(builder.write(tmp_path / "trace.json"))
    assert page.tiles["Device busy"] == "80.0 %"
    assert [stack[0][0] for stack in page.stacks[:2]] == [
        *("kernels: 80.0 µs, 80.0 %", "kernels: 30.0 µs, 30.0 %"),
    ]
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "device 1 of 2, kernels 80.0 %" in text
    assert "least: device 0 30.0 %" in text


def test_ranks_begin_with_the_figures_of_the_run(tmp_path, reported, capsys):
    assert program.run(["demo", str(tmp_path / "demo"), "--ranks"]) == 0
    page = reported(tmp_path / "demo" / "ranks")
    found = ranks(longpole.read_traces(tmp_path / "demo" / "ranks"))
    [late] = found.set.late_ranks()
    assert page.tiles["Run"] == duration(found.path["duration_ns"].sum())
    assert page.tiles["Late rank"] == f"rank {late.rank}"
    assert page.tiles["Waiting in collectives"] == share(found.wait_share)
    assert page.ranges[0] == (0, pytest.approx(late.gain_share, abs=1e-4))
    assert sum(part for _, part in page.stacks[0]) == pytest.approx(1, abs=1e-4)
    program.run(["ranks", str(tmp_path / "demo" / "ranks"), "--format", "html"])
    alone = Page(capsys.readouterr().out)
    assert alone.tiles.items() <= page.tiles.items()
    assert len(alone.tiles) == 5


@pytest.mark.parametrize("is_grave", [True, False])
def test_a_damaged_trace_has_no_gains(is_grave, tmp_path, reported):
    sound = RECORDINGS / "masks.before.json.gz"
    text = gzip.decompress(sound.read_bytes())
    half = len(text) // 2
    damaged = text[:half] if is_grave else text[:half] + b"\x00\xff}{][" + text[half + 6 :]
    path = tmp_path / "damaged.json"
    path.write_bytes(damaged)
    page = reported(path)
    verdict = longpole.read_trace(path).without_profiler().verdict()
    assert verdict.sentence.startswith("The trace is damaged")
    assert (verdict.limited_by is None) == is_grave
    assert ("Limited by" in page.tiles) != is_grave
    assert page.ranges == []
    assert reported(sound).ranges


@pytest.mark.parametrize("name", ["download.before", "masks.before", "kernels.before"])
def test_the_page_and_the_text_name_the_same_event_of_the_shown_step(name, tmp_path, capsys):
    path = RECORDINGS / f"{name}.json.gz"
    trace = longpole.read_trace(path).without_profiler()
    window = longpole.choose_window(trace)
    named = [remedy for remedy in trace.verdict().remedies if remedy.named and remedy.events]
    assert named
    for remedy in named:
        assert not window.clip(trace.events[[remedy.events[0]]]).is_empty()
    assert program.run(["summary", str(path)]) == 0
    text = capsys.readouterr().out
    assert program.run(["report", str(path), "-o", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    for remedy in named:
        assert re.search(rf"event\s+{remedy.events[0]}\b", text)
        assert re.search(rf">event {remedy.events[0]}<", page)
