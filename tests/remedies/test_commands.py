"""Commands read what remedies need, so that they name the remedies that the trace names."""

import json

import pytest

from longpole import read_trace
from longpole.cli.program import run
from oracles.golden import RECORDINGS


@pytest.mark.parametrize("name", ["attention", "download", "kernels", "transposes"])
@pytest.mark.parametrize("command", [["summary"], ["whatif"]], ids=" ".join)
def test_a_command_names_the_remedies_of_the_trace(command, name, capsys):
    file = RECORDINGS / f"{name}.before.json.gz"
    verdict = read_trace(file).without_profiler().verdict()
    run([*command, str(file), "--json"])
    answer = json.loads(capsys.readouterr().out)["data"]["verdict"]
    assert [row["remedy"] for row in answer["remedies"]] == [row.remedy for row in verdict.remedies]
    assert answer["actions"] == list(verdict.actions)
