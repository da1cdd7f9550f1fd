"""How many ranks `longpole ranks` shows."""

from __future__ import annotations

import json
import re

from longpole.cli.program import run
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks


def test_the_first_ranks_are_shown_or_as_many_as_asked_for(tmp_path, capsys):
    found = random_ranks(3, n_ranks=10)
    write_ranks(found.job, found.job.times_ns(), found.clocks, tmp_path)

    def n_shown(*options):
        assert run(["ranks", str(tmp_path), *options]) in (0, 4)
        table = capsys.readouterr().out.partition("\n  rank ")[2].partition("\n\n")[0]
        return len(re.findall(r"^ +\d+ ", table, re.MULTILINE))

    assert [n_shown(*options) for options in ((), ("--top", "3"), ("--top", "99"))] == [8, 3, 10]


def test_a_window_of_ranks_is_a_step_that_they_have_in_common(tmp_path, capsys):
    found = random_ranks(3, n_ranks=2)
    write_ranks(found.job, found.job.times_ns(), found.clocks, tmp_path)

    def answer(*options):
        assert run(["ranks", str(tmp_path), *options, "--json"]) in {0, 4}
        return json.loads(capsys.readouterr().out)

    of_step = answer("--window", "step:2")
    assert of_step == answer("--step", "2")
    assert of_step["scope"]["step"] == 2
    assert answer("--window", "all") == answer()
    assert run(["ranks", str(tmp_path), "--window", "1ms..2ms"]) == 2
    assert "steps in common" in capsys.readouterr().err
