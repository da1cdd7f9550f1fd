"""Whatever a job prints, its record stays small, and so does the memory of the runner."""

import json
import subprocess
import sys

import pytest

from longpole.bench import Job, Outcome, Policy, Runner, extract

KEPT = 10_000
MIB = 1 << 20

# A process that says by how much its memory grew beyond what its imports took.
MEASURED = """
import resource, sys
import click, json, polars, rich, longpole.bench, longpole.cli, longpole.devices
def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak_kib()
sys.argv = ["longpole", *sys.argv[1:]]
try:
    longpole.cli.main()
except SystemExit:
    pass
print((peak_kib() - before) * 1024, file=sys.stderr)
"""


def memory_beyond_imports(*arguments, **options):
    command = [sys.executable, "-c", MEASURED, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return int(answer.stderr.splitlines()[-1]), answer.stdout


def run_one(script, timeout_s=60):
    with Runner(["cpu"], policy=Policy(timeout_s=timeout_s, grace_s=0.2)) as runner:
        (record,) = runner.run([Job(["sh", "-c", script], key="k")])
    return record


def test_rows_beyond_the_limit_are_summed_up_in_the_record(said):
    lines = f"seq {KEPT + 5} | sed 's/.*/OP:a,TIME:&,WS:0/'; echo OP:a,TIME:0.5,WS:7"
    record = run_one(f"{lines}; echo OP:b,TIME:0,WS:0")
    first, second = record.omitted
    assert (record.outcome, len(record.results)) == (Outcome.OK, KEPT)
    assert (first.name, first.count, first.min_ns, first.last_ns) == ("a", 6, 500_000, 500_000)
    assert (second.name, second.count, second.min_ns, second.last_ns) == ("b", 1, None, 0)
    assert (record.best.time_ns, record.best.workspace_bytes) == (500_000, 7)
    assert record.unparsed == 1
    said.within(record.message)
    assert type(record).from_dict(json.loads(json.dumps(record.to_dict()))) == record


def test_a_job_that_prints_rows_without_end_is_ended_at_its_limit():
    record = run_one("exec yes OP:a,TIME:1.5,WS:0", timeout_s=1)
    (omitted,) = record.omitted
    assert (record.outcome, record.best, len(record.results)) == (Outcome.TIMEOUT, None, KEPT)
    assert (omitted.name, omitted.min_ns) == ("a", 1_500_000)
    assert omitted.count > KEPT
    assert len(json.dumps(record.to_dict())) < 4 * MIB


ENDLESS_NAMES = "seq 100000000 | sed 's/.*/OP:name&,TIME:&,WS:0/'"


@pytest.mark.parametrize("script", ["yes OP:a,TIME:1.5,WS:0", ENDLESS_NAMES])
def test_memory_does_not_grow_with_the_rows(tmp_path, script):
    job = {"argv": ["sh", "-c", script], "timeout_s": 2, "key": "k"}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job))
    grown, _ = memory_beyond_imports("bench", "run", "jobs.jsonl", "--devices=cpu", cwd=tmp_path)
    assert grown <= 100 * MIB
    (line,) = (tmp_path / "jobs.results.jsonl").read_text().splitlines()
    assert json.loads(line)["omitted"]


@pytest.mark.slow
def test_memory_does_not_grow_with_a_gibibyte_of_rows(tmp_path):
    job = {"argv": ["sh", "-c", "yes OP:a,TIME:1.5,WS:0 | head -c 1G"], "timeout_s": 100}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job))
    grown, _ = memory_beyond_imports("bench", "run", "jobs.jsonl", "--devices=cpu", cwd=tmp_path)
    assert grown <= 100 * MIB
    (line,) = (tmp_path / "jobs.results.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["outcome"], record["stdout_bytes"]) == ("ok", 1 << 30)


def test_an_absurd_time_is_no_result():
    record = run_one("echo OP:a,TIME:1e300,WS:0; echo OP:b,TIME:2,WS:0")
    assert ([each.name for each in record.results], record.unparsed) == (["b"], 1)


def test_best_looks_at_all_rows_whatever_is_kept():
    rows = b"".join(b"OP:op%d,TIME:%d,WS:0\n" % (n % 7, 1000 - n) for n in range(999))
    kept = extract(rows, max_rows=10)
    assert (len(kept.measurements), sum(each.n_rows for each in kept.omitted)) == (10, 989)
    assert kept.best() == extract(rows).best()
    assert kept.best(["op3"]) == extract(rows).best(["op3"])


@pytest.mark.parametrize("max_rows", [0, -1])
def test_no_rows_at_all_cannot_be_asked_for(max_rows):
    with pytest.raises(ValueError, match="max_rows must be at least 1"):
        extract(b"", max_rows=max_rows)


def test_a_long_log_says_what_is_left_out(tmp_path):
    (tmp_path / "a.log").write_text("".join(f"OP:a,TIME:{n},WS:0\n" for n in range(1, 30)))
    command = [sys.executable, "-m", "longpole", "bench", "extract", "a.log", "--top", "9"]
    answer = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    found = json.loads(answer.stdout)
    (omitted,) = found["data"]["omitted"]
    assert (found["status"], found["truncated"]) == (
        "partial",
        {"records": {"shown": 9, "total": 29}},
    )
    assert (omitted["count"], omitted["min_ns"], omitted["last_ns"]) == (20, 10_000_000, 29_000_000)


@pytest.mark.slow
def test_a_gigabyte_of_rows_is_extracted_in_little_memory(tmp_path):
    block = "".join(f"OP:op{n % 50_000},TIME:{n % 977}.5,WS:0\n" for n in range(500_000))
    with (tmp_path / "big.log").open("w") as file:
        while file.tell() < 1 << 30:
            file.write(block)
    grown, said = memory_beyond_imports("bench", "extract", "big.log", "--json", cwd=tmp_path)
    assert grown <= 50 * MIB
    assert json.loads(said)["truncated"]["records"]["shown"] == KEPT


@pytest.mark.slow
def test_a_million_records_are_answered_from_in_little_memory(tmp_path):
    line = {
        "schema": "longpole.bench.record/1",
        "outcome": "ok",
        "environment": {"host": "here", "padding": "x" * 700},
    }
    with (tmp_path / "r.jsonl").open("w") as file:
        for number in range(1_000_000):
            found = {"name": "gemm", "time_ns": 1000 + number * 7919 % 1000}
            named = {"id": f"job{number}", "key": f"k{number % 1000}", "results": [found]}
            file.write(json.dumps({**line, **named, "best": found}) + "\n")
    for command in (["best"], ["results"], ["results", "--json"], ["compare", "r.jsonl"]):
        grown, _ = memory_beyond_imports("bench", *command, "r.jsonl", cwd=tmp_path)
        assert grown <= 300 * MIB, command
