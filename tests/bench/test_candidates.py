"""A process that times candidates: whatever one of them does costs that one."""

import sys
from pathlib import Path

import pytest

from longpole.bench.time.candidates import Candidates

pytestmark = pytest.mark.real_time

MODULE = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
from fake_gpu import FakeGpu
from longpole.bench.time.gpu_clock import GpuClock

GPU = FakeGpu()

def clock(): return GpuClock(GPU, "hot")
def kernel(us=5): GPU.kernel(us * 1000)
def illegal(): GPU.is_broken = True; GPU.check()
def other_stream(us=50): GPU.kernel(us * 1000, stream="other")

def pid(): open("pids", "a").write(str(os.getpid()) + chr(10))
def quick(): pass
def chatty(): print("{{}}")
def raises(): raise ValueError("no")
def crashes(): os.kill(os.getpid(), signal.SIGSEGV)
def leaves(): os._exit(3)
def hangs(): time.sleep(60)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    tests = str(Path(__file__).parent)
    (tmp_path / "candidates_here.py").write_text(MODULE.format(tests=tests))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    return tmp_path


def timed(candidates, name, **options):
    return candidates.time(f"candidates_here:{name}", budget_s=0.2, **options)


def processes(folder):
    return len(set((folder / "pids").read_text().split()))


def test_one_process_times_all_candidates(folder):
    with Candidates() as candidates:
        first, second = (timed(candidates, "pid", key=key) for key in ("a", "b"))
        assert (first.key, first.outcome, second.outcome) == ("a", "ok", "ok")
        assert len(first.samples_ns) >= 25
        assert timed(candidates, "chatty").outcome == "ok"
    assert processes(folder) == 1


@pytest.mark.parametrize(
    ("name", "outcome", "message", "n_processes"),
    [
        ("raises", "raised", "ValueError: no", 1),
        ("absent", "not_started", "cannot be found", 1),
        ("crashes", "signal", "SIGSEGV", 2),
        ("leaves", "nonzero", "exit status 3", 2),
    ],
)
def test_a_candidate_that_fails_costs_itself_only(name, outcome, message, n_processes, folder):
    with Candidates() as candidates:
        assert timed(candidates, "pid").outcome == "ok"
        failed = timed(candidates, name)
        assert (failed.outcome, failed.samples_ns) == (outcome, ())
        assert message in failed.message
        assert timed(candidates, "pid").outcome == "ok"
    assert processes(folder) == n_processes


def test_one_that_hangs_is_ended_and_the_next_is_timed():
    with Candidates(timeout_s=4) as candidates:
        assert timed(candidates, "quick").outcome == "ok"
        failed = timed(candidates, "hangs")
        assert (failed.outcome, failed.message) == ("timeout", "timed out after 4 s")
        assert timed(candidates, "quick").outcome == "ok"


def test_a_device_that_no_longer_works_gets_a_new_process(said):
    with Candidates(clock="candidates_here:clock") as candidates:
        before = timed(candidates, "kernel", point={"us": 5})
        assert before.outcome == "ok"
        assert sum(before.samples_ns) / len(before.samples_ns) == pytest.approx(5000, rel=0.03)
        broken = timed(candidates, "illegal")
        assert broken.outcome == "raised"
        assert "illegal memory access" in broken.message
        after = timed(candidates, "kernel", point={"us": 10})
        assert after.outcome == "ok"
        assert sum(after.samples_ns) / len(after.samples_ns) == pytest.approx(10_000, rel=0.03)
        wrong = timed(candidates, "other_stream")
        said.within(wrong.message)
        assert timed(candidates, "kernel").outcome == "ok"


def test_a_clock_that_cannot_be_made_fails_every_candidate():
    with Candidates(clock="candidates_here:raises") as candidates:
        for _ in range(2):
            failed = timed(candidates, "quick")
            assert failed.outcome == "nonzero"
            assert "ValueError: no" in failed.message
