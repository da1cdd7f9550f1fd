"""Test an installed longpole as a new user would.

    python tests/oracles/smoke.py

Makes a trace of a few events, asks the command and Python about it, runs the demo, and ends with 1
where an answer is missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import longpole
from longpole.testing import TraceBuilder


def main() -> int:
    """Ask each of a few questions once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json.gz"
        TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).write(path)
        for command in (["summary"], ["path"], ["check"]):
            words = [sys.executable, "-m", "longpole", *command, str(path), "--json"]
            answer = subprocess.run(words, check=True, capture_output=True, text=True)
            assert json.loads(answer.stdout)["data"], command
        words = [sys.executable, "-m", "longpole", "demo", f"{folder}/demo", "--ranks", "--json"]
        answer = subprocess.run(words, check=True, capture_output=True, text=True)
        assert "makes the others wait" in json.loads(answer.stdout)["data"]["verdict"]
        verdict = longpole.read_trace(path).verdict()
    print(f"longpole {sys.version.split()[0]}: {verdict.sentence}")
    return int(verdict.sides != ("kernels",))


if __name__ == "__main__":
    sys.exit(main())
