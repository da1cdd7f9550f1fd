"""The fault scenarios that other runners fail: hangs, floods, forks, signals, full disks."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKER = HERE.parents[2] / "shared" / "faults" / "check_runner.py"

pytestmark = pytest.mark.skipif(not CHECKER.exists(), reason=f"{CHECKER} is not here")


@pytest.mark.slow
@pytest.mark.parametrize("run", [1, 2, 3])
def test_every_scenario_passes(run):  # noqa: ARG001
    adapter = shlex.join([sys.executable, str(HERE.parent / "adapters" / "runner_adapter.py")])
    command = [sys.executable, str(CHECKER), "--cmd", adapter + " {spec}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    failures = [line for line in answer.stdout.splitlines() if not line.startswith("PASS")]
    assert failures == ["40/40 passed"]
