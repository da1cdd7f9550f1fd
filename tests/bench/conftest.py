"""Every test of benchmarks has locks of its own; some stand at a terminal."""

from typing import NamedTuple

import pytest

from longpole.cli import program


class Answer(NamedTuple):
    """What a command answered."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(autouse=True)
def _own_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGPOLE_LOCK_DIR", str(tmp_path / "locks"))


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bench(tmp_path, monkeypatch, capfd):
    """Stand in an empty folder, and run `longpole bench` there."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capfd.readouterr()
        return Answer(program.run(["bench", *arguments]), *capfd.readouterr())

    return run
