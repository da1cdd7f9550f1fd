"""Kills of any process at any time: nothing is lost, repeated or left running."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from longpole.bench import final_records, read_results
from processes import started

pytestmark = pytest.mark.real_time

LONGPOLE = [sys.executable, "-m", "longpole", "bench"]
SCRIPT = 'echo "$1" >> "$RUNS"; sleep 0.02; echo OP:op_$1,TIME:1.$1,WS:0'
COUNT = 60
RUNS = contextlib.ExitStack()
"""The runs of a test; they end with it."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in a folder with jobs that write down that they began."""
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps(
            {
                "argv": ["sh", "-c", SCRIPT, "sh", f"{number:03d}"],
                "key": f"j{number:03d}",
                "env": {"RUNS": str(tmp_path / "runs"), "LONGPOLE_TEST": str(tmp_path)},
            }
        )
        for number in range(COUNT)
    ]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    with RUNS:
        yield tmp_path


def parents():
    """Return the parent of every process."""
    found = {}
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (path / "stat").read_text().rpartition(") ")[2].split()
            if fields[0] != "Z":
                found[int(path.name)] = int(fields[1])
    return found


def below(ancestor):
    """Return the guards of a runner, and the processes of its jobs."""
    parent_of = parents()
    guards = [pid for pid, parent in parent_of.items() if parent == ancestor]
    jobs = [pid for pid, parent in parent_of.items() if parent in guards]
    return {"guard": guards, "job": jobs}


def marked(folder):
    """Return the processes of jobs that are alive, by a variable that they were given."""
    found = []
    for pid in parents():
        with contextlib.suppress(OSError):
            if f"LONGPOLE_TEST={folder}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


def kill_one(victim, process):
    """Kill the runner, a guard or a job; return False if none is running."""
    if victim == "runner":
        process.kill()
        process.wait()
        return True
    for pid in below(process.pid)[victim][:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def whole_rows(path):
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def decided_in(results):
    """Return the jobs that a resumed run may leave out."""
    records = read_results(results).records if results.exists() else ()
    return {record.id for record in records if record.is_decided}


def start(results, n_batch):
    """Begin a run, or go on with it."""
    if results.exists() and whole_rows(results):
        command = [*LONGPOLE, "run", "--resume", "-o", results.name]
    else:
        results.unlink(missing_ok=True)
        devices = ["--devices", "fake:2", "--grace", "0.2", "-f"]
        command = [*LONGPOLE, "run", "jobs.jsonl", "-o", results.name, *devices]
    with Path(f"log{n_batch}").open("ab") as log:
        return RUNS.enter_context(started(command, stdout=log, stderr=log))


def check_finished(results, folder):
    """Wait until the run has ended undisturbed, and check the results."""
    with start(results, "end") as process:
        assert process.wait() in {0, 1}, Path("logend").read_text()
    stored = read_results(results)
    assert stored.skipped == 0
    decided = Counter(record.id for record in stored.records if record.is_decided)
    assert decided == {f"j{number:03d}": 1 for number in range(COUNT)}
    outcomes = {record.outcome for record in final_records(stored.records).values()}
    assert outcomes <= {"ok", "signal"}  # a job that was killed was ended by a signal
    assert marked(folder) == []


def check_kills(folder, n_kills, seed=0):
    choose = random.Random(seed)  # noqa: S311 - a choice, not a secret
    n_batch = n_killed = 0
    results = folder / "r0.jsonl"
    process = start(results, n_batch)
    while n_killed < n_kills:
        time.sleep(choose.uniform(0.0, 0.6))
        victim = choose.choice(["runner", "guard", "job"])
        before = whole_rows(results)
        n_killed += kill_one(victim, process)
        time.sleep(0.01)
        assert whole_rows(results).startswith(before)
        if process.poll() is None:
            continue
        if len(decided_in(results)) == COUNT:
            check_finished(results, folder)
            (folder / "runs").unlink()
            n_batch += 1
            results = folder / f"r{n_batch}.jsonl"
        process = start(results, n_batch)
    process.kill()
    process.wait()
    decided = decided_in(results)
    time.sleep(1.5)  # guards without a runner give their jobs a second
    assert marked(folder) == []
    begun = len((folder / "runs").read_text().split()) if (folder / "runs").exists() else 0
    check_finished(results, folder)
    again = (folder / "runs").read_text().split()[begun:]
    assert not {f"j{number}" for number in again} & decided


def test_a_few_kills_lose_nothing_and_repeat_nothing(folder):
    check_kills(folder, 6)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_kills_of_runner_guard_and_job_lose_nothing(folder):
    check_kills(folder, 200, seed=1)


def test_a_worker_that_is_killed_costs_its_run_only(folder):
    (folder / "timed.py").write_text(
        "import os, signal\n"
        "def work():\n"
        "    if not os.path.exists('killed'):\n"
        "        open('killed', 'w').close()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [*LONGPOLE, "time", "timed:work", "--runs", "3", "--budget", "0.1"]
    subprocess.run([*command, "-o", "out.jsonl"], check=False, capture_output=True)
    outcomes = [record.outcome for record in read_results("out.jsonl").records]
    assert outcomes == ["signal", "ok", "ok"]


def test_half_a_first_row_is_refused_and_left(folder):
    results = folder / "r.jsonl"
    (folder / "jobs.jsonl").write_text('{"argv": ["true"], "format": "none"}')
    with start(results, "first") as process:  # this writes the plan as well
        assert process.wait() == 0
    results.write_text('{"schema": "longpole.bench.record/1", "id": "j0')
    for command in (["run", "jobs.jsonl", "-o", "r.jsonl"], ["run", "--resume", "-o", "r.jsonl"]):
        answer = subprocess.run([*LONGPOLE, *command], capture_output=True, text=True, check=False)
        assert answer.returncode == 3
        assert "r.jsonl contains no record" in answer.stderr
        assert "only the beginning of a first one" in answer.stderr
        assert results.read_text().endswith('"id": "j0')
