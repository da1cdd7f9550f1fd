"""`longpole whatif --remedy ID`: what is known of a remedy, and what was measured."""

from __future__ import annotations

import json

import pytest

from longpole.cli.program import longpole, run
from longpole.cli.schema import schema_for
from longpole.remedies.catalogue import CATALOGUE, remedies
from longpole.remedies.evidence import measured
from longpole.testing import TraceBuilder


def test_a_remedy_is_explained_with_what_was_measured(said, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", "--remedy", "cuda_graph"]) == 0
    sentence = " ".join(capsys.readouterr().out.split())
    [remedy] = [one for one in remedies() if one.id == "cuda_graph"]
    for text in (remedy.seen_by, remedy.change, remedy.not_when, remedy.needs):
        assert text in sentence
    said.within(sentence)
    assert "NVIDIA H100 80GB HBM3, torch 2.11.0+cu130, 2026-11-27" in sentence


@pytest.mark.parametrize(
    ("remedy", "ending"),
    [
        ("channels_last", "; predicted when it was recorded: 17 to 50 %; now: 33 to 50 % ("),
        ("host_threads", "(44 to 55) ("),  # not named
        ("small_messages", "; predicted: 95 to 98 % ("),  # not named at first
    ],
)
def test_predictions_are_shown_if_the_verdict_named_the_remedy(remedy, ending, capsys):
    run(["whatif", "--remedy", remedy])
    assert ending in " ".join(capsys.readouterr().out.split())


def test_a_remedy_that_was_not_measured_says_so(said, capsys: pytest.CaptureFixture[str]):
    run(["whatif", "--remedy", "late_rank"])
    said.within(capsys.readouterr().out)


def test_with_a_trace_the_explanation_comes_first(tmp_path, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", "--remedy", "cuda_graph"]) == 0
    explanation = capsys.readouterr().out
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(0, 5), work=(6, 90))
    path = str(builder.write(tmp_path / "trace.json"))
    assert run(["whatif", path, "--remedy", "cuda_graph"]) == 0
    assert capsys.readouterr().out.startswith(explanation)
    assert run(["whatif", "--remedy", "cuda_graph", "--json"]) == 0
    [alone] = json.loads(capsys.readouterr().out)["data"]["explained"]
    assert run(["whatif", path, "--remedy", "cuda_graph", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["explained"] == [alone]


@pytest.mark.parametrize("option", [["--step", "3"], ["--drop", "launch"], ["--step-time", "3ms"]])
def test_a_computation_needs_a_trace(said, option, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", "--remedy", "cuda_graph", *option]) == 2
    said.within(capsys.readouterr().err)


def test_without_an_argument_all_are_listed(capsys: pytest.CaptureFixture[str]):
    run(["whatif", "--json"])
    rows = json.loads(capsys.readouterr().out)["data"]["explained"]
    assert [row["remedy"] for row in rows] == list(CATALOGUE)


def test_another_word_is_refused_with_what_there_is(said, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", "--remedy", "graph"]) == 2
    said.within(capsys.readouterr().err)
    assert run(["whatif", "--remedy", "xyz"]) == 2
    said.within(capsys.readouterr().err)


def test_a_note_of_check_is_no_remedy_and_is_explained_all_the_same(
    said,
    capsys: pytest.CaptureFixture[str],
):
    assert run(["whatif", "--remedy", "launch_blocking"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    said.within(told)
    assert "unset `CUDA_LAUNCH_BLOCKING`" in told


def test_the_schema_of_a_verdict_lists_the_remedies_of_the_catalogue():
    verdict = schema_for("summary", longpole)["properties"]["verdict"]
    text = json.dumps(verdict)
    assert json.dumps(list(CATALOGUE)) in text


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_was_measured_is_of_a_remedy_of_the_catalogue(name: str):
    for row in measured(name):
        assert row["gain"][1] <= row["gain"][0] <= row["gain"][2] <= 1
        assert row["predicted"] is None or row["predicted"][0] <= row["predicted"][1]
