"""Programs of `examples/remedies/several`, which are slow for two or three reasons."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from longpole.remedies.catalogue import CATALOGUE, remedies
from longpole.testing import TraceBuilder

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples/remedies/several"
PROGRAMS = sorted(path for path in FOLDER.glob("*.py") if path.stem != "time_all")


@pytest.fixture
def time_all(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import time_all

    return time_all


def test_there_are_eight_programs_or_more():
    assert len(PROGRAMS) >= 8


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_has_several_remedies_and_mends_each(path):
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    names = values["REMEDIES"]
    assert 2 <= len(names) <= 3
    assert list(names) == sorted({*names})
    assert {*names} <= {*CATALOGUE}
    [made] = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "made"]
    told = {node.value for node in ast.walk(made) if isinstance(node, ast.Constant)}
    assert {*names} <= told, "each is mended somewhere"


def test_forms_are_timed_in_turns(time_all):
    calls = []
    forms = {name: lambda name=name: calls.append(name) for name in ("", "a", "a + b")}
    times_ms = time_all.in_turns(forms, lambda: None)
    assert list(times_ms) == [*forms]
    assert all(time_ms > 0 for time_ms in times_ms.values())


def test_a_plan_is_compared_with_what_was_timed(time_all):
    builder = TraceBuilder()
    for number in range(4):
        begin = number * 3_000
        builder.step(number, (begin, begin + 2_900))
        for place in range(40):
            start = begin + place * 40
            builder.operator("aten::relu", (start, start + 35))
            builder.launch(
                f"relu_{place}", call=(start + 2, start + 9), work=(start + 10, start + 14)
            )
        builder.operator("aten::sort", (begin + 1_600, begin + 2_800))
    verdict = builder.read().verdict()
    names = [line.remedy for line in verdict.plan.lines]
    assert {*names} == {"cuda_graph", "recurring_call"}
    times_ms = {"": 3.0, names[0]: 1.8, names[1]: 2.0, " + ".join(sorted(names)): 0.3}
    rows = time_all.judged(verdict, times_ms)
    assert [row["remedy"] for row in rows] == names
    assert [row["together_measured"] for row in rows] == pytest.approx([0.4, 0.9])
    assert [row["then_measured"] for row in rows] == pytest.approx([0.4, 0.5])
    [told, *_] = [it for it in remedies() if it.id == names[0]]
    row = {"name": "program", "times_ms": times_ms, "plan": rows}
    assert f"plan: {told.id} saves" in time_all.in_words(row)


@pytest.mark.needs("torch")
def test_all_combinations_run_without_a_gpu(tmp_path):
    subprocess.run(
        [sys.executable, FOLDER / "time_all.py", tmp_path], check=True, capture_output=True
    )
    rows = [json.loads(line) for line in (tmp_path / "several.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows] == [path.stem for path in PROGRAMS]
    for row in rows:
        assert "error" not in row, row
        some = max(row["times_ms"], key=len).split(" + ")
        combined = [
            " + ".join(names)
            for number in range(len(some) + 1)
            for names in combinations(some, number)
        ]
        assert {*row["times_ms"]} == {*combined}
