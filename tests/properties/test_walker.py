"""Damaged inputs of every reader, asked about with every command and table: nothing escapes."""

from __future__ import annotations

import pytest

from oracles.walker import walk


def test_no_damaged_input_escapes_a_command_or_table(tmp_path):
    n_asked, escapes = walk(tmp_path, seed=1, n_inputs=60)
    assert escapes == []
    assert n_asked > 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_damaged_inputs_escape_no_command_or_table(tmp_path, seed):
    _, escapes = walk(tmp_path, seed=seed, n_inputs=200)
    assert escapes == []
