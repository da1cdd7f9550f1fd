"""Tables show the times of the other commands, and events those of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import longpole
from longpole.cli.program import run

RECORDING = Path(__file__).parents[1] / "recordings/decode.before.json.gz"


def told(capsys, *words):
    assert run([*map(str, words), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["data"]


@pytest.mark.parametrize("options", [(), ("--as-recorded",)])
def test_the_segments_of_a_table_are_those_of_the_path(options, capsys):
    rows = told(capsys, "table", RECORDING, "segments", *options)["rows"]
    length_ns = told(capsys, "path", RECORDING, *options)["length_ns"]
    assert sum(row["duration_ns"] for row in rows) == length_ns


def test_events_are_as_recorded(capsys):
    rows = told(capsys, "table", RECORDING, "events", "--window=all", "--top", 200)["rows"]
    recorded = longpole.read_trace(RECORDING).events["start_ns"]
    assert [row["start_ns"] for row in rows] == [recorded[row["event"]] for row in rows]
    shifted = longpole.read_trace(RECORDING).without_profiler().events["start_ns"]
    assert (shifted != recorded).any()


@pytest.mark.parametrize("options", [(), ("--as-recorded",)])
def test_a_list_of_steps_and_the_list_of_tables_have_the_times_of_the_summary(options, capsys):
    window = told(capsys, "summary", RECORDING, *options)["verdict"]["window"]
    steps = told(capsys, "table", RECORDING, "steps", *options)["rows"]
    lengths = [row["window_end_ns"] - row["window_start_ns"] for row in steps if row["step"] > 2]
    assert sorted(lengths)[len(lengths) // 2] == window["length_ns"]
    assert run(["table", str(RECORDING), *options]) == 0
    told_ms = f"{window['length_ns'] / 1e6:.2f} ms"
    assert told_ms in capsys.readouterr().out
