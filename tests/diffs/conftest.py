"""Simulated runs to compare."""

from __future__ import annotations

import pytest

import longpole
from longpole.cli import program
from oracles.rewriting import (
    run_of,
)
from oracles.simulator.programs import training


@pytest.fixture(scope="module")
def a_program():
    return training(3, steps=8, layers=5, world_size=1)


@pytest.fixture
def read(tmp_path):
    def read(run, name="trace.json"):
        run.write(tmp_path / name)
        return longpole.read_trace(tmp_path / name, args=["Input Dims"])

    return read


@pytest.fixture
def base(read, a_program):
    return read(run_of(a_program, 1), "base.json")


@pytest.fixture
def asked(capsys):
    """Run `longpole diff`, and return its exit code and its output."""

    def asked(*arguments):
        code = program.run(["diff", *map(str, arguments)])
        return code, capsys.readouterr().out

    return asked
