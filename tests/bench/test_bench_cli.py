"""`longpole bench` at the terminal."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from processes import started

LONGPOLE = [sys.executable, "-m", "longpole"]
GEMM = {"argv": ["sh", "-c", "echo OP:gemm,TIME:0.5,WS:64"], "key": "gemm", "tags": {"m": 64}}


def write_jobs(folder, *jobs):
    (folder / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))


def test_a_run_its_results_and_the_best(bench, tmp_path, said):
    slower = {**GEMM, "argv": ["sh", "-c", "echo OP:other,TIME:0.75,WS:0"]}
    write_jobs(tmp_path, GEMM, slower)
    ran = bench("run", "jobs.jsonl", "--devices", "cpu")
    assert (ran.returncode, ran.stderr) == (0, "")
    first, last = ran.stdout.splitlines()
    assert first.startswith("2 jobs in ")
    assert first.endswith(" s: 2 ok")
    said(last)

    shown = bench("compare", "jobs.results.jsonl", "--by", "job").stdout.splitlines()
    said(shown[0])
    assert shown[2].split()[:4] == ["job", "outcome", "attempt", "took"]
    assert shown[3].split()[:3] == ["gemm", "ok", "1"]
    best = json.loads(bench("compare", "jobs.results.jsonl", "--by", "tag=m", "--json").stdout)
    assert best["data"]["outcomes"] == {"ok": 2}
    (row,) = best["data"]["best"]
    assert (row["key"], row["name"], row["time_ns"], row["id"]) == ("64", "gemm", 500000, "gemm")
    assert isinstance(row["time_ns"], int)


def test_jobs_are_chosen_by_the_named_groups_of_their_best_result(bench, tmp_path):
    pattern = r"regex=^(?P<op>\w+): (?P<time_us>\S+) us, (?P<gbps>\S+) GB/s, (?P<kind>\w+)"
    printed = {"a": "a: 5 us, 700 GB/s, hot", "b": "b: 4 us, 9e2 GB/s, cold", "c": "none"}
    jobs = [
        {"argv": ["echo", text], "key": key, "format": pattern} for key, text in printed.items()
    ]
    write_jobs(tmp_path, *jobs)
    bench("run", "jobs.jsonl", "--devices", "cpu")

    def keys(where):
        found = bench("compare", "jobs.results.jsonl", "--where", where, "--json").stdout
        return [row["key"] for row in json.loads(found)["data"]["best"]]

    assert keys("gbps > 800") == ["b"]
    assert keys("kind = 'hot' AND gbps < 800") == ["a"]
    assert bench("compare", "jobs.results.jsonl", "--where", "tflops > 1").returncode == 2


def test_one_command_many_times(bench):
    options = ["-o", "r.jsonl", "--runs", "3", "--key", "k", "--job-format", "none"]
    assert bench("run", *options, "--", "echo", "--x").returncode == 0
    shown = json.loads(bench("compare", "r.jsonl", "--by", "job", "--json").stdout)
    rows = shown["data"]["records"]
    assert [row["stdout_tail"] for row in rows] == ["--x\n"] * 3
    assert [row["id"] for row in rows] == ["k", "k#2", "k#3"]


def test_failures_are_shown_and_give_exit_code_1(bench, tmp_path, said):
    write_jobs(tmp_path, GEMM, {"argv": "sh -c 'echo why >&2; exit 3'", "key": "bad"})
    ran = bench("run", "jobs.jsonl", "--json")
    assert ran.returncode == 1
    said(ran.stderr)
    assert json.loads(ran.stdout)["data"]["outcomes"] == {"nonzero": 1, "ok": 1}
    where = ("--by", "job", "--where", "outcome = 'nonzero'", "--format", "csv")
    shown = bench("compare", "jobs.results.jsonl", *where).stdout.splitlines()
    assert [line.split(",")[0] for line in shown] == ["id", "bad"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_how_to_go_on(bench, tmp_path, number, code, said):
    job = {"argv": ["sh", "-c", "echo x >> runs; sleep 0.3"], "format": "none"}
    write_jobs(tmp_path, *({**job, "key": f"j{index}"} for index in range(6)))
    command = [*LONGPOLE, "bench", "run", "jobs.jsonl", "--devices", "cpu"]
    results = tmp_path / "jobs.results.jsonl"
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        while not results.exists() or not results.stat().st_size:
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, number)
        _, printed = process.communicate(timeout=120)
    assert process.returncode == code
    said.within(printed)
    assert "Traceback" not in printed
    resumed = bench("run", "jobs.jsonl", "--resume")
    assert resumed.stdout.splitlines()[0].endswith(": 6 ok")
    # None that was finished ran twice; the one that was cut short may have.
    assert (tmp_path / "runs").read_text().count("x") in {6, 7}


def test_results_are_not_replaced_unasked(bench, tmp_path, said):
    write_jobs(tmp_path, GEMM)
    assert bench("run", "jobs.jsonl").returncode == 0
    again = bench("run", "jobs.jsonl")
    assert again.returncode == 3
    said.within(again.stderr)
    assert bench("run", "jobs.jsonl", "-f").returncode == 0


def test_a_run_never_writes_over_its_own_jobs(bench, tmp_path):
    write_jobs(tmp_path, GEMM)
    (tmp_path / "link").symlink_to("jobs.jsonl")
    (tmp_path / "r.plan.json").hardlink_to(tmp_path / "jobs.jsonl")
    before = (tmp_path / "jobs.jsonl").read_text()
    for results in ("jobs.jsonl", "./jobs.jsonl", "link", "r.jsonl"):
        refused = bench("run", "jobs.jsonl", "-f", "-o", results)
        assert refused.returncode == 2
        assert "is the file of jobs" in refused.stderr
    assert (tmp_path / "jobs.jsonl").read_text() == before


@pytest.mark.parametrize("content", ["my notes", "my notes\n", '{"key": "a"}\n'])
def test_force_replaces_nothing_but_results(bench, tmp_path, content, said):
    (tmp_path / "mine").write_text(content)
    refused = bench("run", "-f", "-o", "mine", "--devices", "cpu", "--", "true")
    assert refused.returncode == 3
    said.within(refused.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine").read_text() == content


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--devices", "17"], 5), (["--devices", "cpu", "--timeout", "-1"], 2)]
)
def test_a_run_that_cannot_start_leaves_earlier_results_as_they_are(
    bench, tmp_path, arguments, code
):
    write_jobs(tmp_path, GEMM)
    bench("run", "jobs.jsonl", "--devices", "cpu")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.json*")}
    assert len(before) == 3
    assert bench("run", "jobs.jsonl", "-f", *arguments).returncode == code
    assert bench("run", "jobs.jsonl", "-o", "new.jsonl", *arguments).returncode == code
    assert {path: path.read_bytes() for path in tmp_path.glob("*.json*")} == before


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run"], 2, "error: give a file of jobs, or -- and a command [usage]"),
        (["run", "missing.jsonl"], 3, "error: missing.jsonl: no such file"),
        (["run", "--job-format", "odd", "--", "true"], 2, "no format 'odd'"),
        (["run", "--devices", "17", "--", "true"], 5, "error: '17' is not a device here"),
        (["run", "--runs", "0", "--", "true"], 2, "0 is not in the range 1<=x"),
        (["run", "--retries", "-1", "--", "true"], 2, "-1 is not in the range 0<=x"),
        (["compare", "missing.jsonl"], 3, "error: missing.jsonl: no such file"),
        (
            ["compare", "nofile", "b"],
            3,
            "error: nofile: there is neither a file nor a baseline of that name [file_not_found]",
        ),
        (["run", "-f", "-o", ".", "--", "true"], 2, "File '.' is a directory"),
        (["run", "--resume", "-o", "."], 2, "File '.' is a directory"),
        (["run", "--resume", "-o", "missing.jsonl"], 3, "missing.plan.json is missing"),
        (["odd"], 2, "'odd' is not a command of bench"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(bench, arguments, code, said):
    answer = bench(*arguments)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"argv": ["a"], "timeout_s": "x"}', "jobs.jsonl: line 2: 'timeout_s' must be"),
        (b'["caf\xe9"]', "jobs.jsonl: line 2: not UTF-8 at its byte 5"),
    ],
)
def test_a_file_of_jobs_that_is_none_is_named_with_the_line(bench, tmp_path, line, said):
    (tmp_path / "jobs.jsonl").write_bytes(b'["true"]\n' + line)
    refused = bench("run", "jobs.jsonl", "--devices", "cpu")
    assert refused.returncode == 2
    assert said in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.jsonl"]


@pytest.mark.parametrize("by", ["key", "job", "attempt"])
@pytest.mark.parametrize("content", ["", "my notes\n", '{"key": "a", "samples_ns": [1]}\n'])
def test_a_file_without_a_record_of_a_run_is_no_answer(bench, tmp_path, by, content, said):
    (tmp_path / "r.jsonl").write_text(content)
    refused = bench("compare", "r.jsonl", "--by", by)
    assert (refused.returncode, refused.stdout) == (3, "")
    said(refused.stderr)


def test_nothing_to_choose_from_is_inconclusive(bench):
    bench("run", "-o", "r.jsonl", "--", "sh", "-c", "echo OP:a,TIME:0,WS:0")
    assert bench("compare", "r.jsonl").returncode == 4


def test_no_record_of_an_outcome_is_an_answer(bench):
    bench("run", "-o", "r.jsonl", "--devices", "cpu", "--job-format", "none", "--", "true")
    shown = bench("compare", "r.jsonl", "--by", "job", "--where", "outcome = 'timeout'")
    said = "r.jsonl: 0 jobs\n\n  no such record\n"
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, said, "")
    assert bench("compare", "r.jsonl", "--by", "job", "--where", "outcom = 1").returncode == 2


def test_jobs_without_the_tag_to_choose_by_are_left_out_and_counted(bench, tmp_path):
    write_jobs(tmp_path, GEMM, {**GEMM, "key": "other", "tags": {}})
    bench("run", "jobs.jsonl", "-o", "r.jsonl", "--devices", "cpu")
    some = json.loads(bench("compare", "r.jsonl", "--by", "tag=m", "--json").stdout)
    assert [row["key"] for row in some["data"]["best"]] == ["64"]
    assert [(each["code"], each["count"]) for each in some["warnings"]] == [("no_tag", 1)]
    none = bench("compare", "r.jsonl", "--by", "tag=nosuch")
    assert none.returncode == 4
    assert none.stdout.endswith("2 jobs without the tag 'nosuch' left out\n")


def test_a_run_is_continued_with_its_own_jobs(bench, tmp_path, said):
    write_jobs(tmp_path, GEMM, {**GEMM, "key": "other"})
    bench("run", "jobs.jsonl", "--runs", "2", "--devices", "cpu")
    again = bench("run", "jobs.jsonl", "--resume", "--json")
    assert json.loads(again.stdout)["data"]["n_done_before"] == 4
    write_jobs(tmp_path, GEMM)
    refused = bench("run", "jobs.jsonl", "--resume")
    assert refused.returncode == 2
    said.within(refused.stderr)
    assert bench("run", "--resume", "-o", "jobs.results.jsonl").returncode == 0
    for words in (["run", "--resume"], ["run", "--resume", "-o", "x.jsonl", "--", "true"]):
        assert bench(*words).returncode == 2


def test_a_file_is_compared_with_the_baseline_that_it_was_saved_as(bench, tmp_path, said):
    write_jobs(tmp_path, GEMM)
    bench("run", "jobs.jsonl", "--runs", "4", "--devices", "cpu")
    saved = bench("compare", "jobs.results.jsonl", "--save", "main")
    assert (saved.returncode, saved.stderr) == (0, "kept as .longpole/baselines/main.jsonl\n")
    compared = bench("compare", "main", "jobs.results.jsonl", "--json")
    assert json.loads(compared.stdout)["data"]["differences"][0]["key"] == "gemm"
    again = bench("compare", "jobs.results.jsonl", "--save", "main")
    assert (again.returncode, again.stdout) == (2, "")
    said.within(again.stderr)
    assert bench("compare", "jobs.results.jsonl", "--save", "main", "-f").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["a.jsonl", "--key", "x"],
        ["a.jsonl", "b.jsonl", *("--key", "x") * 3],
        ["a.jsonl", "b.jsonl", "--by", "job"],
        ["a.jsonl", "b.jsonl", "--where", "key = 'x'"],
        ["a.jsonl", "--by", "tag="],
        ["a.jsonl", "--by", "keys"],
    ],
)
def test_options_of_compare_that_do_not_fit_are_refused(bench, words):
    refused = bench("compare", *words)
    assert (refused.returncode, refused.stdout) == (2, "")


def test_what_programs_print_is_escaped(bench, tmp_path):
    name = "\x1b[31m=1+1|x"
    write_jobs(tmp_path, {"argv": ["printf", f"OP:{name},TIME:1,WS:0\\n"], "key": "=cmd"})
    bench("run", "jobs.jsonl", "-o", "r.jsonl")
    assert "\x1b" not in bench("compare", "r.jsonl").stdout
    assert "\\|x" in bench("compare", "r.jsonl", "--format", "md").stdout
    assert "\n'=cmd," in bench("compare", "r.jsonl", "--format", "csv").stdout
    (row,) = json.loads(bench("compare", "r.jsonl", "--json").stdout)["data"]["best"]
    assert row["name"] == name


def test_help_imports_no_verb():
    program = (
        "import sys; from longpole.cli.program import run; run(['bench', '--help']);"
        "sys.exit(any(name in sys.modules for name in ('longpole.bench', 'rich', 'polars')))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
