"""Tables, path and windows have the times of the file; what is predicted has others."""

from __future__ import annotations

import json
from pathlib import Path

import longpole
from longpole.cli.program import run

RECORDING = Path(__file__).parents[1] / "recordings/decode.before.json.gz"


def told(capsys, *words):
    assert run([*map(str, words), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["data"]


def test_the_segments_of_a_table_are_those_of_the_path(capsys):
    rows = told(capsys, "table", RECORDING, "segments")["rows"]
    length_ns = told(capsys, "path", RECORDING)["length_ns"]
    assert sum(row["duration_ns"] for row in rows) == length_ns


def test_events_are_as_recorded(capsys):
    rows = told(capsys, "table", RECORDING, "events", "--window=all", "--top", 200)["rows"]
    recorded = longpole.read_trace(RECORDING).events["start_ns"]
    assert [row["start_ns"] for row in rows] == [recorded[row["event"]] for row in rows]
    shifted = longpole.read_trace(RECORDING).without_profiler().events["start_ns"]
    assert (shifted != recorded).any()


def test_a_list_of_steps_has_the_window_of_the_summary_and_the_list_of_tables_its_sentence(capsys):
    found = told(capsys, "summary", RECORDING)
    length_ns = found["window"]["duration_ns"]
    steps = told(capsys, "table", RECORDING, "steps")["rows"]
    lengths = [row["window_end_ns"] - row["window_start_ns"] for row in steps if row["step"] > 2]
    assert sorted(lengths)[len(lengths) // 2] == length_ns
    assert found["recording_cost"]["recorded_step_ns"] == length_ns
    predicted_ns = found["verdict"]["window"]["length_ns"]
    assert predicted_ns < length_ns
    assert run(["table", str(RECORDING)]) == 0
    assert f"{predicted_ns / 1e6:.2f} ms" in capsys.readouterr().out
