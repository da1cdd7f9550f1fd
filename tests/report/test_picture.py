"""`longpole report -o FILE.svg`: a picture of one step."""

import json
import re
from xml.etree import ElementTree as ET

import pytest

from longpole.cli.answer import exit_codes
from longpole.cli.program import run
from longpole.testing import TraceBuilder

SVG = "{http://www.w3.org/2000/svg}"
BAR = re.compile(r"M([\d.]+) (\d+)h([\d.]+)")


def drawn(tmp_path, builder, *options):
    """Write the picture of a trace; return its texts, and its bars as left, top and width."""
    trace = str(builder.write(tmp_path / "trace.json"))
    file = tmp_path / "step.svg"
    assert run(["report", trace, "-o", str(file), *options]) == exit_codes.OK
    root = ET.parse(file).getroot()  # noqa: S314 (written by longpole)
    texts = [element.text for element in root.iter(f"{SVG}text")]
    paths = [element.get("d") for element in root.iter(f"{SVG}path") if element.get("fill")]
    bars = [tuple(map(float, bar)) for path in paths for bar in BAR.findall(path)]
    return texts, bars


def test_lanes_stand_below_the_critical_path_and_bars_are_as_long_as_events(tmp_path):
    builder = TraceBuilder().operator("aten::mm", (0, 20))
    builder.launch("gemm", call=(5, 10), work=(20, 80)).operator("aten::add", (20, 100))
    texts, bars = drawn(tmp_path, builder)
    assert texts[0].endswith(", 100 µs")
    assert texts.index("critical path") < texts.index("device 0, stream 7")
    tops = sorted({top for _, top, _ in bars})
    scale = 690 / 100
    (kernel,) = (bar for bar in bars if bar[1] == tops[1])
    assert kernel[0] == pytest.approx(180 + 20 * scale, abs=0.1)
    assert kernel[2] == pytest.approx(60 * scale, abs=0.1)
    path = [width for _, top, width in bars if top == tops[0]]
    assert sum(path) == pytest.approx(690, abs=0.5)


def test_names_from_a_trace_are_escaped(tmp_path):
    builder = TraceBuilder().operator("aten::mm", (0, 20))
    place = {"pid": 100, "tid": 1}
    builder.event(ph="M", name="thread_name", args={"name": "<script>&\u202e"}, **place)
    texts, _ = drawn(tmp_path, builder)
    assert any("<script>&" in text for text in texts)
    assert not any("\u202e" in text for text in texts)


def test_the_window_is_the_one_asked_for(said, tmp_path):
    builder = TraceBuilder()
    for step in range(1, 4):
        start = 100 * step
        builder.step(step, (start, start + 50 + step)).operator("aten::mm", (start, start + 50))
    texts, _ = drawn(tmp_path, builder, "--step", "3")
    assert re.fullmatch(r"trace\.json: step 3( \(.*\))?, [\d.]+ µs", texts[0])
    said.within((tmp_path / "step.svg").read_text(encoding="utf-8"))


def test_a_picture_is_of_one_trace_and_of_work(said, tmp_path, capsys):
    trace = str(TraceBuilder().operator("aten::mm", (0, 20)).write(tmp_path / "trace.json"))
    file = str(tmp_path / "step.svg")
    assert run(["report", trace, trace, "-o", file]) == exit_codes.USAGE
    said.within(capsys.readouterr().err)
    idle = TraceBuilder().event(ph="X", cat="cpu_op", name="a", pid=1, tid=1, ts=5, dur=0)
    idle = idle.write(tmp_path / "idle.json")
    assert run(["report", str(idle), "-o", file, "--json"]) == exit_codes.INCONCLUSIVE
    answer = json.loads(capsys.readouterr().out)
    assert answer["abstains_because"][0]["code"] == "no_work"
    assert not (tmp_path / "step.svg").exists()


def test_a_file_that_would_be_neither_page_nor_picture_is_refused(said, tmp_path, capsys):
    trace = str(TraceBuilder().operator("aten::mm", (0, 20)).write(tmp_path / "trace.json"))
    file = tmp_path / "report.pdf"
    assert run(["report", trace, "-o", str(file)]) == exit_codes.USAGE
    said.within(capsys.readouterr().err)
    assert not file.exists()
