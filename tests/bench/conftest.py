"""Every test of benchmarks has locks of its own; some stand at a terminal."""

import subprocess
import sys

import pytest


@pytest.fixture(autouse=True)
def _own_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGPOLE_LOCK_DIR", str(tmp_path / "locks"))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Stand in an empty folder, and run `longpole bench` there."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        command = [sys.executable, "-m", "longpole", "bench", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run
