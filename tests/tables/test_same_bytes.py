"""The same traces give the same bytes, whatever the seed of Python's hashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from longpole.cli.answer.table import tables
from real_traces import SHARED

RANKS = [SHARED / f"traces/two_ranks/sampled_rank-{rank}.json.gz" for rank in (0, 1)]
TRACES = [
    RANKS[0],
    SHARED / "traces/alexnet_a100_sync.json.gz",
    SHARED / "traces/amd_mi250.json.gz",
]
ANSWERS = ["check", "path", "summary"]
OF_FIGURES = ["functions", "memory", "modules", "operators", "roofline"]
FILES = ["events.parquet", "small.json.gz", "all.longpole", "host.folded", "host.speedscope.json"]
PROGRAM = """
import json, sys
from longpole.cli import program
for command in json.load(sys.stdin):
    print(command, flush=True)
    print(program.run(command), flush=True)
"""


def of_one(trace, number):
    """Yield the commands that answer questions about one trace, each table among them."""
    yield from (["table", trace, name, "--format", "jsonl"] for name in tables())
    yield from ([name, trace, "--format", "json"] for name in ANSWERS)
    yield from (["table", trace, name, "--format", "json"] for name in OF_FIGURES)
    yield ["whatif", trace, "--scale", "kernel=0.5", "--format", "json"]
    yield from (["convert", trace, "-o", f"{number}.{file}"] for file in FILES)
    yield ["convert", trace, "--counters", "-o", f"{number}.pftrace"]
    yield ["report", trace, "-o", f"{number}.html"]


def of_several(traces):
    yield ["ranks", *traces, "--format", "json"]
    yield ["diff", *traces, "--format", "json"]
    yield ["convert", *traces, "-o", "merged.perfetto-trace"]


def written(folder, seed, commands):
    """Run commands in a folder of their own; give what they print and the files they write."""
    folder.mkdir()
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        cwd=folder,
        env=environment,
        input=json.dumps(commands).encode(),
    )
    return {"printed": done.stdout} | {
        path.name: path.read_bytes() for path in sorted(folder.iterdir())
    }


def assert_same_bytes(folder, commands, seeds=("0", "1")):
    """Run commands with some seeds; give what the first run wrote."""
    first, *others = (written(folder / seed, seed, commands) for seed in seeds)
    for other in others:
        assert other.keys() == first.keys()
        assert [name for name in first if first[name] != other[name]] == []
    return first


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no {SHARED}")
def test_every_table_has_the_same_bytes_with_every_seed(tmp_path):
    trace = str(TRACES[0].resolve())
    found = assert_same_bytes(
        tmp_path, [["table", trace, name, "--format", "jsonl"] for name in tables()]
    )
    assert found["printed"].count(b"longpole.table") == len(tables())


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no {SHARED}")
def test_every_command_has_the_same_bytes_with_every_seed(tmp_path):
    traces = [str(trace.resolve()) for trace in TRACES]
    commands = [each for number, it in enumerate(traces) for each in of_one(it, number)]
    commands += of_several([str(trace.resolve()) for trace in RANKS])
    found = assert_same_bytes(tmp_path, commands, seeds=("0", "1", "2"))
    assert len(found) == 2 + len(TRACES) * (len(FILES) + 2)
