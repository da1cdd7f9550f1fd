"""The same trace gives the same bytes, whatever the seed of Python's hashes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from longpole.cli.answer.list_of_tables import tables
from real_traces import SHARED

TRACE = SHARED / "traces/two_ranks/sampled_rank-0.json.gz"
PROGRAM = """
import sys
from longpole.cli import program
from longpole.cli.answer.list_of_tables import tables
for name in tables():
    program.run(["table", sys.argv[1], name, "--format", "jsonl"])
"""


@pytest.mark.skipif(not TRACE.exists(), reason=f"no {TRACE}")
def test_every_table_has_the_same_bytes_with_every_seed():
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM, str(TRACE)]
        done = subprocess.run(command, check=True, capture_output=True, env=environment)
        outputs.add(done.stdout)
    [output] = outputs
    assert output.count(b"\n") == len(tables())
