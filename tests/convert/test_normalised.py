"""Traces that viewers show as they are."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole import read_trace
from longpole.cli import program
from longpole.convert.normalised import normalise
from longpole.testing import TraceBuilder
from oracles.walker.damage import with_entry
from real_traces import SHARED

TEXT = SHARED / "mindspore/ascend_level1_text"
FOLDERS = [TEXT / "rank0_ascend_pt", TEXT / "rank1_ascend_pt"]
BASE_US = 1_736_408_883_732_241


def written(events, folder, **header):
    source, output = folder / "in.json", folder / "out.json"
    source.write_text(json.dumps({"traceEvents": events, **header}))
    normalise(source, output, force=True)
    return source, output


def tracks_of(path):
    tracks = defaultdict(list)
    for event in json.loads(path.read_text())["traceEvents"]:
        if event["ph"] == "X":
            start_ns = round(event["ts"] * 1000)
            span = (start_ns, start_ns + round(event["dur"] * 1000))
            tracks[event["pid"], event["tid"]].append(span)
    return tracks


def overlap_by_a_part(one, other):
    first, second = sorted([one, other])
    return first[0] < second[0] < first[1] < second[1]


def assert_shown_as_read(source, output):
    before, after = read_trace(source), read_trace(output, strict=True)
    for trace in (before, after):
        assert trace.status in ("ok", "altered", "recovered")
    times = [trace.events["start_ns"] + (trace.base_time_ns or 0) for trace in (before, after)]
    assert times[0].to_list() == times[1].to_list()
    assert before.events["duration_ns"].to_list() == after.events["duration_ns"].to_list()
    assert before.events["name"].cast(str).to_list() == after.events["name"].cast(str).to_list()
    assert before.launches.equals(after.launches)
    assert before.rank == after.rank


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(0, 2)), max_size=14),
    st.sampled_from([str, float, int]),
)
def test_slices_nest_or_stand_apart_and_keep_their_times(tmp_path_factory, spans, spelled):
    events = [
        {"ph": "X", "name": f"n{n}", "cat": "cpu_op", "pid": 4_000_000_000, "tid": str(thread)}
        | {"ts": spelled(start), "dur": spelled(length)}
        for n, (start, length, thread) in enumerate(spans)
    ]
    source, output = written(events, tmp_path_factory.mktemp("normalised"))
    assert_shown_as_read(source, output)
    for of_track in tracks_of(output).values():
        for place, one in enumerate(of_track):
            assert not any(overlap_by_a_part(one, other) for other in of_track[place + 1 :])


def test_stamps_that_no_double_holds_stay_exact(tmp_path):
    place = {"ph": "X", "pid": 1, "tid": 1, "dur": "0.021"}
    events = [place | {"name": f"n{n}", "ts": f"{BASE_US}.{n:03}"} for n in range(1000)]
    source, output = written(events, tmp_path, baseTimeNanoseconds=5)
    assert_shown_as_read(source, output)
    document = json.loads(output.read_text())
    assert document["baseTimeNanoseconds"] == 5 + BASE_US * 1000
    found = [round(event["ts"] * 1000) for event in document["traceEvents"] if event["ph"] == "X"]
    assert found == list(range(1000))


def test_an_arrow_moves_with_its_slice_and_has_a_small_id(tmp_path):
    place = {"pid": 1, "tid": 7}
    arrow = {"cat": "async_npu", "name": "async_npu", "id": 1_700_000_000_000_000_001}
    events = [
        {"ph": "M", "name": "thread_name", **place, "args": {"name": "main"}},
        {"ph": "X", "name": "long", **place, "ts": 0, "dur": 10},
        {"ph": "X", "name": "late", **place, "ts": 5, "dur": 10},
        {"ph": "s", **place, **arrow, "ts": 5},
        {"ph": "f", "bp": "e", "pid": 2, "tid": "stream", **arrow, "ts": 20},
    ]
    _, output = written(events, tmp_path)
    shown = json.loads(output.read_text())["traceEvents"]
    late = next(event for event in shown if event["name"] == "late")
    begin, end = (next(event for event in shown if event["ph"] == phase) for phase in "sf")
    assert late["tid"] == begin["tid"] != 7
    assert begin["id"] == end["id"] == 1
    assert isinstance(end["tid"], int)
    names = {event["tid"]: event["args"]["name"] for event in shown if event["ph"] == "M"}
    assert names == {7: "main", late["tid"]: "main (2)"}


def test_many_slices_that_overlap_cost_no_square(tmp_path):
    place = {"ph": "X", "pid": 1, "tid": 1}
    n_events = 20_000
    events = [place | {"name": "n", "ts": n, "dur": n_events} for n in range(n_events)]
    _, output = written(events, tmp_path)
    assert len(tracks_of(output)) == n_events


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_real_profile_is_numbers_that_nest(folder, tmp_path):
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    output = tmp_path / "out.json"
    normalise(folder, output)
    assert_shown_as_read(folder, output)
    events = json.loads(output.read_text())["traceEvents"]
    wanted = ("ts", "dur", "pid", "tid", "id")
    assert all(isinstance(event.get(key, 0), int | float) for event in events for key in wanted)
    assert max(event.get("id", 0) for event in events) < 2**31
    for of_track in tracks_of(output).values():
        opened = []
        for start, end in sorted(of_track, key=lambda span: (span[0], -span[1])):
            while opened and opened[-1] <= start:
                opened.pop()
            assert not opened or end <= opened[-1]
            opened.append(end)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ph", "{}"),
        ("ph", "[]"),
        ("id", "{}"),
        ("tid", "[1]"),
        ("pid", "9" * 5_000),
        ("args", '{"x":' + "9" * 5_000 + "}"),
        ("args", '{"x":1e9999999}'),
        ("args", '{"x":' + "[" * 90 + "]" * 90 + "}"),
    ],
)
def test_a_value_of_any_form_gives_json_that_every_viewer_reads(tmp_path, field, value):
    def no_constant(name):
        raise ValueError(name)

    odd = {"ph": '"b"', "name": '"b"', "pid": "1", "tid": "1", "ts": "6", field: value}
    event = ",".join(f'"{key}":{text}' for key, text in odd.items())
    sound = '{"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"dur":2}'
    source = tmp_path / "in.json"
    source.write_text(f'{{"traceEvents":[{sound},{{{event}}}],"header":{value}}}')
    assert normalise(source, tmp_path / "out.json") == 2
    written = json.loads((tmp_path / "out.json").read_text(), parse_constant=no_constant)
    assert len(written["traceEvents"]) == 2


def test_the_command_writes_one(tmp_path, capsys):
    source = tmp_path / "in.json"
    source.write_text('[{"ph":"X","name":"a","pid":"1","tid":1,"ts":"5.001","dur":2}]')
    output = tmp_path / "out.json.gz"
    assert program.run(["convert", str(source), "-o", str(output), "--normalise"]) == 0
    assert read_trace(output).events["start_ns"].to_list() == [1]
    for wrong in (["-fo", str(output), "--whole"], ["-o", str(tmp_path / "out.csv")]):
        assert program.run(["convert", str(source), *wrong, "--normalise"]) == 2
    assert "no meaning" in capsys.readouterr().err


def test_a_header_that_is_nested_too_deep_is_refused(tmp_path, capsys):
    """The core leaves such a header out of what it reads, but not of what was saved."""
    path, n_letters = tmp_path / "saved.longpole", 6_000
    written = TraceBuilder().operator("a", (0, 5)).header(otherData="x" * n_letters).to_bytes()
    read_trace(written).save(path)
    old, half = b'\\"' + b"x" * n_letters + b'\\"', n_letters // 2 + 2
    deep = b"[" * half + b"]" * half
    content = path.read_bytes()
    path.write_bytes(with_entry(content, "longpole.json", lambda text: text.replace(old, deep)))
    assert path.read_bytes() != content
    words = ["convert", str(path), "-o", str(tmp_path / "out.json"), "--normalise"]
    assert program.run(words) == 3
    assert "nested too deep" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
