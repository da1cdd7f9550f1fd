"""Many jobs on many devices, with everything that goes wrong going wrong."""

import json
import subprocess
import sys
import time
from collections import Counter

import pytest

from longpole.bench import (
    Job,
    Outcome,
    Policy,
    Runner,
    best_records,
    final_records,
    read_results,
)
from processes import started

# What a job does goes by its number: of ten one fails, and two devices fall off the bus.
SCRIPT = """
echo $1 >> "$RUNS"
case "$LONGPOLE_FAKE_DEVICE" in
3) [ $1 -gt 100 ] && { echo GPU has fallen off the bus >&2; exit 1; } ;;
5) [ $1 -gt 250 ] && { echo no CUDA-capable device is detected >&2; exit 100; } ;;
esac
echo OP:op_$1,TIME:1.$(printf %03d $1),WS:0
case $1 in
*13|*57) exec sleep 1000 ;;
*4[24]|*7) [ $(($1 % 3)) = 0 ] && kill -SEGV $$ ;;
esac
exit 0
"""
COUNT = 500


def jobs(folder):
    environ = {"RUNS": str(folder / "runs")}
    return [
        Job(
            ["/bin/sh", "-c", SCRIPT, "sh", str(number)],
            key=f"j{number}",
            env=environ,
            timeout_s=0.5,
        )
        for number in range(1, COUNT + 1)
    ]


def expected(number):
    text = str(number)
    if text.endswith(("13", "57")):
        return Outcome.TIMEOUT
    if text.endswith(("42", "44", "7")) and number % 3 == 0:
        return Outcome.SIGNAL
    return Outcome.OK


def test_every_job_has_one_last_record_and_the_best_is_right(tmp_path):
    with Runner(["fake:8"], results=tmp_path / "r.jsonl", policy=Policy(grace_s=0.2)) as runner:
        records = runner.run(jobs(tmp_path))
    assert [record.outcome for record in records] == [expected(n) for n in range(1, COUNT + 1)]
    assert set(runner.quarantined) == {"FAKE-0003", "FAKE-0005"}
    stored = read_results(tmp_path / "r.jsonl").records
    finals = Counter(record.id for record in stored if record.is_final)
    assert finals == {f"j{number}": 1 for number in range(1, COUNT + 1)}
    best = min(best_records(stored, lambda _: "all").values(), key=lambda each: each.id)
    assert (best.id, best.best.time_ns) == ("j1", 1.001e6)


@pytest.mark.real_time
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    lines = [json.dumps(job.to_dict()) for job in jobs(tmp_path)]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    results = tmp_path / "jobs.results.jsonl"
    longpole = [sys.executable, "-m", "longpole", "bench"]
    command = [*longpole, "run", "jobs.jsonl", "--devices", "fake:8", "--grace", "0.2"]
    with started(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        while not results.exists() or results.read_bytes().count(b"\n") < 150:
            assert process.poll() is None
            time.sleep(0.01)
    time.sleep(1.5)  # the guards have ended what was running
    decided = {record.id for record in read_results(results).records if record.is_decided}
    begun_before = (tmp_path / "runs").read_text().split()

    again = subprocess.run(
        [*longpole, "run", "jobs.jsonl", "--resume"], cwd=tmp_path, capture_output=True, check=False
    )
    assert again.returncode == 1, again.stderr  # some jobs fail, as they must
    begun = Counter((tmp_path / "runs").read_text().split()[len(begun_before) :])
    assert not [number for number in begun if f"j{number}" in decided]
    last = final_records(read_results(results).records)
    assert {name: record.outcome for name, record in last.items()} == {
        f"j{number}": expected(number) for number in range(1, COUNT + 1)
    }


@pytest.mark.slow
def test_ten_thousand_small_jobs(tmp_path):
    jobs = [Job(["/bin/true"], key=f"j{number}", format="none") for number in range(10_000)]
    with Runner(["fake:2"], results=tmp_path / "r.jsonl") as runner:
        records = runner.run(jobs)
    assert {record.outcome for record in records} == {Outcome.OK}
    assert len(final_records(read_results(tmp_path / "r.jsonl").records)) == 10_000
