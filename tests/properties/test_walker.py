"""Damaged inputs of every reader, asked about with all commands, tables and tools."""

from __future__ import annotations

import shutil

import pytest

from longpole.cli import program
from longpole.cli.mcp import tools
from longpole.tables.questions import questions
from oracles.walker import Walk, write_sources
from oracles.walker.asking import ABOUT, asked


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return write_sources(tmp_path_factory.mktemp("walker") / "sources")


def walk(sources, folder, seed):
    trace = next(each.path for each in sources if each.path.name == "by_hand.json")
    return Walk(sources, folder, seed, trace)


def test_no_damaged_input_escapes_a_command_table_or_tool(sources, tmp_path):
    walked = walk(sources, tmp_path, seed=8)  # with which 120 steps damage an input of each reader
    for number in range(120):
        walked.step(number)
    assert walked.escapes == []
    assert set(walked.n_inputs) == {each.reader for each in sources}


def test_no_sound_input_is_refused(sources, tmp_path, monkeypatch):
    """A source that its reader refuses would test the refusal only."""
    refused = {"check", "summary", "diff", "mcp check"}  # of what is not a trace
    codes = []
    run = program.run
    monkeypatch.setattr(program, "run", lambda words: codes.append(run(words)) or codes[-1])
    trace = next(each.path for each in sources if each.path.name == "by_hand.json")
    for source in sources:
        about = [
            each for each in ABOUT[source.kind] if each[0] not in {"mcp", "report", "function"}
        ]
        asks = ["summary"] if source.kind == "trace" else {each[0] for each in about} - refused
        for question in about:
            if question[0] in asks:
                assert asked(question, source.path, tmp_path, trace) is None
                shutil.rmtree(tmp_path / "analysis", ignore_errors=True)
    assert codes
    assert set(codes) <= {0, 1, 4}


def test_every_table_and_tool_is_asked():
    asked = {question for about in ABOUT.values() for question in about}
    assert {
        question[2] for question in asked if question[:2] == ("table", "{}") and len(question) > 2
    } == set(questions())
    assert {question[1] for question in asked if question[0] == "mcp"} == set(tools.TOOLS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_damaged_inputs_escape_no_command_table_or_tool(sources, tmp_path, seed):
    walked = walk(sources, tmp_path, seed)
    for number in range(1_000):
        walked.step(number)
    assert walked.escapes == []
