"""A saved trace gives the same answers, byte for byte, or is refused."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from polars.testing import assert_frame_equal

import longpole
from longpole.cli import program
from longpole.cli.answer.table import tables
from longpole.testing import TraceBuilder
from oracles.simulator import write_large
from real_traces import SHARED, real_traces
from strategies import traces
from styles import STYLES, document

FRAMES = ("events", "flows", "counters", "asynchronous", "metadata_events", "diagnostics", "lanes")
COMMANDS = [
    ["summary"],
    ["check"],
    ["path"],
    ["whatif"],
    ["table", "operators", "--shapes"],
    ["table", "roofline", "--peak", "fp32=20", "--peak", "fp16=200", "--peak", "bandwidth=900"],
    ["table", "roofline", "--by", "type", "--peak", "fp32=20"],
    *(["table", name] for name in tables()),
]


def same(trace, again):
    for name in FRAMES:
        assert getattr(trace, name).equals(getattr(again, name)), name
    assert trace.categories == again.categories
    for category in trace.categories:
        assert trace.args(category).equals(again.args(category))
    facts = ("metadata", "rank", "world_size", "base_time_ns", "phases", "format", "n_bytes")
    assert all(getattr(trace, fact) == getattr(again, fact) for fact in facts)


def saved(trace, folder):
    path = folder / "trace.longpole"
    trace.save(path, force=True)
    return path


def answers(path, capsys):
    """Ask everything in JSON, and forget the name of the file."""
    found = []
    for name, *rest in COMMANDS:
        position = [name, str(path), *rest]
        code = program.run([*position, "--json"])
        captured = capsys.readouterr()
        found.append((code, captured.out.replace(json.dumps(str(path)), '"PATH"')))
    return found


def differing(one, two):
    pairs = zip(COMMANDS, one, two, strict=True)
    return [command for command, first, second in pairs if first != second]


@given(events=traces())
def test_every_table_is_read_again_as_it_was(events, tmp_path_factory):
    trace = longpole.read_trace(document(events, STYLES["compact"], distributedInfo={"rank": 2}))
    path = saved(trace, tmp_path_factory.mktemp("saved"))
    same(trace, longpole.read_trace(path))
    again = io.BytesIO(path.read_bytes())
    same(trace, longpole.read_trace(again))


@pytest.mark.parametrize("args", ["ids", ["bytes", "Input Dims"]])
def test_fewer_arguments_are_as_if_the_trace_had_been_read_so(args, tmp_path):
    path = SHARED / "traces/two_ranks/sampled_rank-0.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    again = longpole.read_trace(saved(longpole.read_trace(path), tmp_path), args=args)
    same(longpole.read_trace(path, args=args), again)


@pytest.mark.parametrize("path", real_traces(slow_bytes=30_000))
def test_every_answer_about_a_real_trace_is_the_same(path, tmp_path, capsys):
    if not path.is_file():
        pytest.skip(f"no {path}")
    again = saved(longpole.read_trace(path), tmp_path)
    assert differing(answers(path, capsys), answers(again, capsys)) == []


def test_every_answer_about_a_simulated_trace_is_the_same(tmp_path, capsys):
    path = tmp_path / "simulated.json"
    write_large(path, 1)
    again = saved(longpole.read_trace(path), tmp_path)
    assert differing(answers(path, capsys), answers(again, capsys)) == []


def losses(source):
    """Return what `check` says was lost, with its count."""
    found = longpole.check(source)
    return [(it.code, it.count) for it in found if it.severity in ("data_loss", "altered")]


def test_a_damaged_trace_stays_one(tmp_path):
    data = document([{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 1}] * 3)
    trace = longpole.read_trace(data[:-40])
    assert trace.status == "recovered"
    path = saved(trace, tmp_path)
    assert losses(path) == losses(data[:-40]) != []
    same(trace, longpole.read_trace(path))
    with pytest.raises(longpole.TraceError) as error:
        longpole.read_trace(path, strict=True)
    assert error.value.code == trace.diagnostics["code"][0]


def test_numpy_opens_it_without_pickles(tmp_path):
    trace = TraceBuilder().operator("aten::mm", (5, 20)).read()
    with np.load(saved(trace, tmp_path), allow_pickle=False) as columns:
        assert columns["events/start_ns"].tolist() == [5000]
        assert columns["strings/text"].dtype == np.uint8
    with zipfile.ZipFile(saved(trace, tmp_path)) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("longpole.json"))["version"] == 1


def test_damage_is_an_error_or_changes_nothing(tmp_path):
    trace = TraceBuilder().step(1, (0, 9)).launch("gemm", call=(1, 2), work=(3, 8)).read()
    sound = saved(trace, tmp_path).read_bytes()
    choice = random.Random(7)  # noqa: S311 (no secret)
    for _ in range(500):
        damaged = bytearray(sound)
        for _ in range(choice.randint(1, 4)):
            damaged[choice.randrange(len(sound))] ^= choice.randrange(1, 256)
        if bytes(damaged) != sound:
            with pytest.raises(longpole.TraceError):
                longpole.read_trace(bytes(damaged))


def test_another_zip_archive_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("trace.json", "[]")
    with pytest.raises(longpole.TraceError, match="a zip archive, not a trace"):
        longpole.read_trace(tmp_path / "other.zip")


def test_what_was_not_saved_is_an_error_that_names_it(tmp_path, capsys, said):
    trace = TraceBuilder().operator("aten::mm", (0, 20)).read(args="ids")
    path = saved(trace, tmp_path)
    assert longpole.read_trace(path, args="ids").n_events == 1
    with pytest.raises(longpole.TraceError, match="without some arguments of events: bytes"):
        longpole.read_trace(path)
    assert program.run(["table", str(path), "operators", "--shapes"]) != 0
    said.within(capsys.readouterr().err)


def test_a_vocabulary_stays_with_the_trace(tmp_path):
    vocabulary = {"kernels": {"communication": "my_ring"}}
    path = TraceBuilder().launch("my_ring", call=(0, 1), work=(1, 9)).write(tmp_path / "t.json")
    again = longpole.read_trace(saved(longpole.read_trace(path, vocabulary=vocabulary), tmp_path))
    assert again.launches["work_class"].to_list() == ["communication"]
    with pytest.raises(longpole.TraceError, match="another vocabulary"):
        longpole.read_trace(tmp_path / "trace.longpole", vocabulary={"api": {"launch": "go"}})


def test_the_command_saves_what_every_table_needs(tmp_path, capsys, said):
    path = TraceBuilder().operator("aten::mm", (0, 20)).write(tmp_path / "trace.json")
    output = tmp_path / "trace.longpole"
    assert program.run(["convert", str(path), "-o", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["rows"] == 1
    same(longpole.read_trace(path), longpole.read_trace(output))
    assert program.run(["convert", str(path), "-o", str(output)]) != 0
    assert "exists" in capsys.readouterr().err
    assert program.run(["convert", str(path), "-fo", str(output), "--step", "1"]) == 2
    said.within(capsys.readouterr().err)
    text = tmp_path / "text.json"
    assert program.run(["convert", str(output), "-o", str(text)]) == 0
    assert longpole.read_trace(text).events.equals(longpole.read_trace(path).events)


def test_nothing_is_written_over(tmp_path):
    path = TraceBuilder().operator("aten::mm", (0, 20)).write(tmp_path / "trace.json")
    trace = longpole.read_trace(path)
    with pytest.raises(FileExistsError, match="never replaced"):
        trace.save(path, force=True)
    again = longpole.read_trace(saved(trace, tmp_path))
    with pytest.raises(FileExistsError):
        again.save(Path(tmp_path, "trace.longpole"))


# A saved profile of an Ascend device opens again with the same answers.


FOLDER = SHARED / "mindspore" / "ascend_alexnet_msprof"


@pytest.mark.skipif(not FOLDER.exists(), reason="needs the recorded profile")
def test_a_saved_ascend_folder_opens_with_the_same_answers(tmp_path):
    trace = longpole.read_trace(FOLDER)
    trace.save(tmp_path / "saved.longpole")
    opened = longpole.read_trace(tmp_path / "saved.longpole")
    assert_frame_equal(opened.events, trace.events)
    assert_frame_equal(opened.launches, trace.launches)
    assert_frame_equal(longpole.kernels(opened), longpole.kernels(trace))
    one, two = (each.critical_path(whole=True).segments for each in (opened, trace))
    assert_frame_equal(one, two)
