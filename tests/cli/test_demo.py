"""`longpole demo` writes traces that the simulator recorded, and explains them."""

from __future__ import annotations

import json
import shlex

import pytest

import longpole
from longpole.cli import program
from longpole.cli.answer import exit_codes
from oracles import examples


@pytest.fixture
def demo(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = program.run(["demo", *words])
        return code, capsys.readouterr().out

    return run


def test_the_packaged_traces_are_what_the_simulator_writes():
    assert examples.main() == 0


def test_the_demo_ends_with_a_verdict_and_commands_that_work(demo, tmp_path, capsys):
    code, output = demo("--json")
    data = json.loads(output)["data"]
    verdict = (
        longpole.read_trace(tmp_path / "longpole-demo/trace.json.gz").without_profiler().verdict()
    )
    assert (code, data["verdict"]) == (exit_codes.OK, verdict.sentence)
    assert verdict.sides == ("host",)
    for row in data["next"]:
        assert program.run(shlex.split(row["command"])[1:]) == exit_codes.OK, row
    assert capsys.readouterr().err == ""


def test_the_change_gains_what_was_said_before_it(demo, tmp_path):
    demo()
    folder = tmp_path / "longpole-demo"
    before, after = (longpole.read_trace(folder / f"{name}.json.gz") for name in ("trace", "after"))
    [loading] = [one for one in before.verdict().remedies if one.remedy == "loader_workers"]
    gained_ns = before.verdict().window.length_ns - after.verdict().window.length_ns
    length_ns = before.verdict().window.length_ns
    assert loading.gain.duration_ns <= gained_ns
    assert loading.gain.high * length_ns == pytest.approx(gained_ns, rel=0.05)


def test_the_ranks_of_the_demo_have_the_straggler_that_was_planted(demo, capsys):
    code, output = demo("--ranks", "--json")
    data = json.loads(output)["data"]
    assert code == exit_codes.OK
    who, _, why = data["verdict"].partition(" makes the others wait ")
    assert who.startswith("Rank 0")
    assert why.startswith("(slow kernel")
    for row in data["next"]:
        assert program.run(shlex.split(row["command"])[1:]) == exit_codes.OK, row
    capsys.readouterr()


def test_files_that_are_there_stay(demo, tmp_path, capsys):
    demo("my traces")
    assert demo("my traces")[0] == exit_codes.OK
    mine = tmp_path / "my traces/trace.json.gz"
    mine.write_text("mine")
    assert program.run(["demo", "my traces"]) == exit_codes.USAGE
    assert "[file_exists]" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert demo("my traces", "--force")[0] == exit_codes.OK
