"""The example that records real traces, where torch is and where it is not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import longpole
from longpole import chakra
from longpole.cli.answer import exit_codes

RECORD = Path(__file__).parents[1] / "examples/record_trace.py"
HAS_TORCH = importlib.util.find_spec("torch") is not None


def test_without_torch_it_says_so_and_exits_with_5():
    blocked = f"import runpy, sys; sys.modules['torch'] = None; runpy.run_path({str(RECORD)!r})"
    done = subprocess.run(
        [sys.executable, "-c", blocked], capture_output=True, text=True, check=False
    )
    assert done.returncode == exit_codes.MISSING
    assert done.stderr == "error: this needs torch [missing]\nhint: pip install torch\n"


@pytest.mark.torch
@pytest.mark.skipif(not HAS_TORCH, reason="needs torch")
@pytest.mark.parametrize("name", ["training", "inference"])
def test_what_it_records_has_steps_and_an_answer(name, tmp_path):
    arguments = [name, "--device", "cpu", "--steps", "2", "--execution-trace", "-o", str(tmp_path)]
    subprocess.run([sys.executable, str(RECORD), *arguments], check=True, capture_output=True)
    trace = longpole.read_trace(tmp_path / f"{name}-cpu.json.gz")
    assert trace.steps.height == 2
    assert longpole.summary(trace).verdict.status == "no_device"
    linked = longpole.link_execution_trace(
        tmp_path / f"{name}-cpu.et.json", tmp_path / f"{name}-cpu.json.gz"
    )
    assert linked.method == "record_function_id"
    assert abs(linked.replay().error) < 0.05
    with pytest.raises(longpole.TraceError, match="execution trace"):
        longpole.read_trace(tmp_path / f"{name}-cpu.et.json")


@pytest.mark.torch
@pytest.mark.skipif(not HAS_TORCH, reason="needs torch")
def test_ranks_that_train_together_are_one_run(tmp_path):
    arguments = ["training", "--device", "cpu", "--steps", "2", "--ranks", "2"]
    arguments += ["--execution-trace", "-o", str(tmp_path)]
    subprocess.run([sys.executable, str(RECORD), *arguments], check=True, capture_output=True)
    ranks = chakra.link_ranks(f"{tmp_path}/*.et.json", f"{tmp_path}/*.json.gz")
    assert [(pair.rank, pair.paired_by) for pair in ranks.pairs] == [(0, "process"), (1, "process")]
    matched = ranks.collectives.filter(ranks.collectives["n_missing"] == 0)
    assert matched.height >= 4
    assert "all_reduce" in matched["operation"].cast(str).to_list()
    written = ranks.write_chakra(tmp_path / "graphs")
    assert [path.name for path in written] == ["rank.0.et", "rank.1.et", "rank.groups.json"]
