"""What is not ours is never touched, and what was measured is never lost."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from longpole.bench import Measurement, Outcome, Record, Runner, read_results
from longpole.bench.records.store import Store, make_room
from longpole.errors import ResultsError
from processes import started

PRECIOUS = '{"precious": [1, 2, 3]}'


def record(name="a", **fields):
    return Record(id=name, key=name, outcome=Outcome.OK, **fields)


def row(name="a", **fields):
    return json.dumps({**record(name).to_dict(), **fields}) + "\n"


def ids(path):
    return [json.loads(line)["id"] for line in Path(path).read_text().splitlines()]


def test_what_is_written_is_read(tmp_path):
    results = (Measurement("gemm", 1.5e6, 64, {"time": "1.5"}),)
    written = record(results=results, best=results[0], argv=("a", "b"), tags={"m": 1})
    with Store(tmp_path / "r.jsonl") as store:
        store.append(written)
    stored = read_results(tmp_path / "r.jsonl")
    assert (stored.records, stored.skipped) == ((written,), 0)


def test_rows_of_others_are_counted(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"x": 1}\n[]\nnonsense\n{"id":"a","key":"a","outcome":"odd"}\n')
    stored = read_results(path)
    assert (stored.records, stored.skipped) == ((), 4)


# A foreign file under the name of the results.


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    "text", ["my notes", PRECIOUS, '{"', '{"schema": "longpole.bench.rec', "{}\n{}\n"]
)
def test_a_runner_refuses_a_file_without_records_and_leaves_it(tmp_path, text, resume):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"t\.json contains no record of a run"):
        Runner(["cpu"], results=path, resume=resume)
    assert path.read_text() == text


@pytest.mark.parametrize("command", ["run", "resume"])
def test_no_command_empties_a_foreign_file(bench, tmp_path, command):
    (tmp_path / "t.jsonl").write_text(PRECIOUS)
    bench("run", "-o", "u.jsonl", "--devices", "cpu", "--job-format", "none", "--", "true")
    (tmp_path / "u.plan.json").rename(tmp_path / "t.plan.json")
    arguments = ["-f", "--", "true"] if command == "run" else ["--resume"]
    answer = bench("run", "-o", "t.jsonl", *arguments)
    assert answer.returncode != 0
    assert "t.jsonl contains" in answer.stderr
    assert (tmp_path / "t.jsonl").read_text() == PRECIOUS


def test_force_removes_records_only(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(row() + "a note of mine\n" + row())
    with pytest.raises(ResultsError, match="lines that are not records"):
        make_room(path, force=True)
    path.write_text(row() + row("b", results=[{"name": "x", "time_ns": -1}]) + '{"id": "c", "ou')
    make_room(path, force=True)
    assert not path.exists()


def test_what_another_runner_writes_to_is_left_with_force_too(tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path) as store:
        store.append(record())
        with pytest.raises(ResultsError, match="another runner"):
            make_room(path, force=True)
        with pytest.raises(ResultsError, match="another runner"):
            Store(path, resume=True)
        store.append(record("b"))
    assert ids(path) == ["a", "b"]


@pytest.mark.parametrize("force", [[], ["-f"]])
def test_a_foreign_plan_is_not_overwritten(bench, tmp_path, force, said):
    plan = tmp_path / "r.plan.json"
    plan.write_text(PRECIOUS)
    if force:
        (tmp_path / "r.jsonl").write_text(row())
    answer = bench("run", *force, "-o", "r.jsonl", "--devices", "cpu", "--", "true")
    assert answer.returncode != 0
    said.within(answer.stderr)
    assert plan.read_text() == PRECIOUS
    assert not force or ids(tmp_path / "r.jsonl") == ["a"]


def test_the_plan_of_another_run_is_replaced_only_when_told_to(bench, tmp_path):
    arguments = ["-o", "r.jsonl", "--devices", "cpu", "--job-format", "none", "--"]
    assert bench("run", *arguments, "true").returncode == 0
    (tmp_path / "r.jsonl").unlink()
    before = (tmp_path / "r.plan.json").read_text()
    answer = bench("run", *arguments, "false")
    assert (answer.returncode, "contains the plan of another run" in answer.stderr) == (3, True)
    assert (tmp_path / "r.plan.json").read_text() == before
    assert bench("run", "-f", *arguments, "true").returncode == 0


def test_time_does_not_write_over_a_foreign_file(bench, tmp_path):
    (tmp_path / "t.jsonl").write_text(PRECIOUS)
    timed = ["time", "math:gcd", "--axis", "a=1", "--budget", "0.01", "-o", "t.jsonl"]
    for arguments in (timed, [*timed, "-f"]):
        answer = bench(*arguments)
        assert answer.returncode != 0
        assert "t.jsonl contains no record" in answer.stderr
        assert (tmp_path / "t.jsonl").read_text() == PRECIOUS


def test_time_replaces_records_when_told_to(bench, tmp_path):
    (tmp_path / "t.py").write_text("def f(): pass\n")
    timed = ["time", "t:f", "--runs", "1", "--budget", "0.05", "-o", "t.jsonl"]
    assert [bench(*timed).returncode, bench(*timed).returncode] == [0, 3]
    assert bench(*timed, "-f").returncode == 0


# What becomes of a file during a run.


def delete(path):
    path.unlink()


def rotate(path):
    path.rename(path.with_suffix(".1"))


def rotate_and_make_anew(path):
    rotate(path)
    path.write_text("")


def truncate(path):
    os.truncate(path, 10)


def replace_by_symlink(path):
    rotate(path)
    path.symlink_to(path.with_suffix(".1"))


def write_behind(path):
    with path.open("a") as file:
        file.write("mine\n")


def overwrite(path):
    with path.open("r+") as file:
        file.seek(len(path.read_bytes()) - 5)
        file.write("mine")


def link(path):
    path.with_suffix(".2").hardlink_to(path)


CHANGES = {
    delete: "was deleted",
    rotate: "was renamed or replaced",
    rotate_and_make_anew: "was renamed or replaced",
    truncate: "was truncated",
    replace_by_symlink: "was replaced by a symbolic link",
    write_behind: "was written to by another program",
    overwrite: "was overwritten by another program",
    link: "was given another name",
}


@pytest.mark.parametrize(
    ("change", "named"), CHANGES.items(), ids=lambda value: getattr(value, "__name__", value)
)
def test_a_file_that_changes_ends_the_run_and_later_rows_are_kept(tmp_path, change, named):
    path = tmp_path / "r.jsonl"
    store = Store(path)
    store.append(record("a"))
    change(path)
    changed = path.read_bytes() if path.exists() else None
    for name in ("b", "c"):
        with pytest.raises(ResultsError, match=rf"r\.jsonl {named}.*rescued-1\.jsonl"):
            store.append(record(name))
    store.close()
    assert (path.read_bytes() if path.exists() else None) == changed
    kept = ids(tmp_path / "r.jsonl.rescued-1.jsonl")
    assert kept == (["a", "b", "c"] if change is delete else ["b", "c"])


def test_rows_that_were_overwritten_in_place_are_missed_at_the_end(tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path) as store:
        store.append(record("before"))
    store = Store(path, resume=True)
    for name in "abc":
        store.append(record(name))
    with path.open("r+") as file:
        file.write("mine")
    store.append(record("d"))
    with pytest.raises(ResultsError, match=r"was overwritten by another program.*may be lost"):
        store.close()


def test_a_file_that_is_deleted_after_the_last_row_is_missed(tmp_path):
    store = Store(tmp_path / "r.jsonl")
    store.append(record())
    delete(tmp_path / "r.jsonl")
    with pytest.raises(ResultsError, match="was deleted"):
        store.close()
    assert ids(tmp_path / "r.jsonl.rescued-1.jsonl") == ["a"]


@pytest.mark.parametrize(
    "job",
    ["rm r.jsonl", "mv r.jsonl s.jsonl", "truncate -s 5 r.jsonl", "mv r.jsonl s; ln -s s r.jsonl"],
)
def test_a_job_that_changes_the_results_fails_the_run(bench, tmp_path, job):
    commands = ["true", "true", job, "true", "true", "true"]
    lines = [
        json.dumps({"argv": ["sh", "-c", command], "key": f"j{n}", "format": "none"})
        for n, command in enumerate(commands)
    ]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    answer = bench("run", "jobs.jsonl", "-o", "r.jsonl", "--devices", "cpu")
    assert answer.returncode == 3
    assert "during the run" in answer.stderr
    assert "6 ok" not in answer.stdout
    assert "j2" in ids(tmp_path / "r.jsonl.rescued-1.jsonl")


# The last row.


def test_a_whole_last_row_without_line_end_is_kept(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(row("a") + row("b").rstrip("\n"))
    with Store(path, resume=True) as store:
        store.append(record("c"))
    assert ids(path) == ["a", "b", "c"]


def test_a_row_that_was_cut_is_no_record_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(row("a") + '{"id": "b", "outc')
    assert [each.id for each in read_results(path).records] == ["a"]
    with Store(path, resume=True) as store:
        store.append(record("c"))
    assert ids(path) == ["a", "c"]


def test_a_note_at_the_end_is_not_cut(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(row("a") + "keep this")
    with pytest.raises(ResultsError, match="ends with text that is not a row"):
        Store(path, resume=True)
    assert path.read_text() == row("a") + "keep this"


def test_a_half_row_is_not_cut_where_there_is_nothing_to_resume(tmp_path):
    path = tmp_path / "r.jsonl"
    text = row("a") + '{"id": "b", "outc'
    path.write_text(text)
    with pytest.raises(ResultsError, match="already holds results"):
        Store(path)
    assert path.read_text() == text


# Where nothing can be written.


def test_a_disk_without_space_is_named(bench, tmp_path, said):
    # Without -B, Python writes the cache of its modules cut off at the limit.
    limited = f"ulimit -f 4; exec {sys.executable} -B -m longpole bench run -o r.jsonl"
    command = f"{limited} --devices cpu --runs 9 --job-format none -- true"
    answer = subprocess.run(
        ["/bin/bash", "-c", command], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 3
    said.within(answer.stderr)
    assert "rescued-1.jsonl" in answer.stderr
    assert set(ids(tmp_path / "r.jsonl")) <= {"true", *(f"true#{n}" for n in range(2, 10))}
    assert bench("compare", "r.jsonl", "--by", "job").returncode == 0


@contextlib.contextmanager
def another_user():
    """Root may write everywhere."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_is_read_only_is_named():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "r.jsonl")
        path.write_text(row())
        path.chmod(0o444)
        with another_user(), pytest.raises(ResultsError, match=r"r\.jsonl cannot be written"):
            Store(path, resume=True)
        assert path.read_text() == row()


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null", "."])
def test_only_a_plain_file_keeps_results(path):
    with pytest.raises(ResultsError, match=r"not a regular file|cannot be written"):
        Store(path)


# What rows say.


def test_results_and_plan_are_for_their_owner_only(bench, tmp_path):
    secret = {"argv": ["true"], "format": "none", "env": {"TOKEN": "hunter2", "SIZE": "8"}}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(secret))
    bench("run", "jobs.jsonl", "--devices", "cpu", "--record-env", "SIZE")
    written = {path.name: path for path in tmp_path.glob("jobs.*") if path.name != "jobs.jsonl"}
    assert set(written) == {"jobs.results.jsonl", "jobs.results.plan.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in written.values()} == {0o600}
    text = written["jobs.results.jsonl"].read_text()
    changed = json.loads(text)["environment"]["changed"]
    assert "hunter2" not in text
    assert (changed["SIZE"], list(changed["TOKEN"])) == ("8", ["digest"])


@pytest.mark.parametrize(
    "time_ns", [0, -5, float("nan"), float("inf"), "1", None, True, 10**19, 1e300, [1]]
)
def test_a_row_with_a_time_that_is_none_is_damaged_and_never_wins(bench, tmp_path, time_ns):
    sound = Measurement("sound", 2e6)
    damaged = {"name": "damaged", "time_ns": time_ns}
    path = tmp_path / "r.jsonl"
    path.write_text(
        row("a", results=[damaged], best=damaged)
        + json.dumps(record("b", best=sound, results=(sound,)).to_dict())
    )
    stored = read_results(path)
    assert ([each.id for each in stored.records], stored.skipped) == (["b"], 1)
    best = json.loads(bench("compare", "r.jsonl", "--json").stdout)
    assert [each["name"] for each in best["data"]["best"]] == ["sound"]
    assert best["warnings"][0]["code"] == "no_record"


def test_the_last_word_on_a_job_is_found_in_one_stream(bench, tmp_path):
    slow, fast = Measurement("slow", 3e6), Measurement("fast", 1e6)
    path = tmp_path / "r.jsonl"
    first = record("a", best=fast, results=(fast,), is_final=False).to_dict()
    second = record("a", best=slow, results=(slow,)).to_dict()
    path.write_text("".join(json.dumps(each) + "\n" for each in (first, second)))
    best = json.loads(bench("compare", "r.jsonl", "--json").stdout)
    assert best["data"]["best"][0]["name"] == "slow"


# Killed at any time.

WRITER = """
import sys
from longpole.bench import Outcome, Record
from longpole.bench.records.store import Store
first = int(sys.argv[2])
with Store(sys.argv[1], resume=True) as store:
    for number in range(first, first + 100_000):
        store.append(Record(f"j{number}", "k", Outcome.OK, message="x" * (number * 37 % 20_000)))
        print(number, flush=True)
"""


def kill_while_it_writes(path, first, delay_s):
    """Return the numbers of the rows that were said to be on disk."""
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    with started(command, stdout=subprocess.PIPE, text=True) as process:
        said = [int(process.stdout.readline())]
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        said += [int(line) for line in process.stdout.read().splitlines(keepends=True)]
    return said


def check_kills(path, n_kills):
    said = []
    for number in range(n_kills):
        begun = len(read_results(path).records) if path.exists() else 0
        said += kill_while_it_writes(path, begun, delay_s=number % 17 / 1000)
    written = [each.id for each in read_results(path).records]
    assert set(written) >= {f"j{number}" for number in said}
    assert len(written) == len(set(written))


def test_writers_that_are_killed_lose_nothing_and_repeat_nothing(tmp_path):
    check_kills(tmp_path / "r.jsonl", 6)


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing_and_repeat_nothing(tmp_path):
    check_kills(tmp_path / "r.jsonl", 200)
