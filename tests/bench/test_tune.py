"""`longpole tune`: spaces, searches, checks, and the results of a killed search."""

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from longpole.bench import read_results
from longpole.bench.expressions import compute
from longpole.bench.reference import difference
from longpole.bench.tune import Effort, Space, powers_of_two, read_task, strategies, tune
from longpole.bench.tune.finals import hold_finals
from longpole.bench.tune.strategies import halving
from longpole.cli.program import run
from longpole.devices import select
from processes import started

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("empty_folder")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune"


def write_task(text, name="task.toml"):
    Path(name).write_text(text)
    return name


def searched(path, *options, device=("--devices", "cpu")):
    return run(["tune", path, *device, "-o", "out.jsonl", "--json", "--budget", "0.5", *options])


SLEEPS = """
[parameters]
seconds = [0.01, 0.03, 0.05]
how = ["sleep", "false"]
[baseline]
seconds = 0.05
how = "sleep"
[candidate]
command = "{how} {seconds}"
"""


def test_the_fastest_of_six_commands_wins_and_those_that_fail_never_do(capsys):
    code = searched(write_task(SLEEPS), "--strategy", "exhaustive", "--runs", "2")
    found = json.loads(capsys.readouterr().out)["data"]
    assert (code, found["winner"]["label"]) == (0, "seconds=0.01 how=sleep")
    assert found["outcomes"] == {"nonzero": 3, "ok": 3}
    assert found["baseline"]["label"] == "seconds=0.05 how=sleep"
    low, high = found["speedup_interval"]["low"], found["speedup_interval"]["high"]
    assert 1 < low <= found["speedup"] <= high < 5.5
    assert [each["is_tied"] for each in found["finalists"]] == [True, False, False]


def test_alike_candidates_are_said_to_be_tied(capsys):
    task = write_task('[parameters]\nname = ["a", "b"]\n[candidate]\ncommand = "sleep 0.0{same}1"')
    assert run(["tune", task]) == 2  # there is no {same}
    task = write_task("""
        [parameters]
        seconds = [0.02, 0.020001]
        [candidate]
        command = "sleep {seconds}"
    """)
    assert searched(task) == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert [each["is_tied"] for each in found["finalists"]] == [True, True]


def test_a_space_where_nothing_works_has_no_winner(capsys):
    task = write_task('[parameters]\ncode = [1, 2]\n[candidate]\ncommand = "false {code}"')
    assert searched(task) == 4
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "abstained"
    assert found["data"]["winner"] is None


def test_a_slow_candidate_is_ended_but_the_baseline_is_measured_whatever_it_takes(
    capsys, monkeypatch
):
    monkeypatch.setattr("longpole.bench.tune.commands._SHORTEST_LIMIT_S", 0.05)
    task = write_task("""
        [parameters]
        seconds = [0.3, 0.01, 0.31]
        [candidate]
        command = "sleep {seconds}"
    """)
    assert searched(task, "--strategy", "exhaustive", "--runs", "2") == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert [each["outcome"] for each in found["candidates"]] == ["ok", "ok", "timeout"]
    assert found["baseline"]["label"] == "seconds=0.3"
    assert found["speedup"] > 10


@pytest.mark.parametrize(
    ("limit", "outcomes"), [("", ["ok", "ok", "timeout"]), ("timeout_s = 9", ["ok", "ok", "ok"])]
)
def test_what_prints_its_time_is_ended_when_it_takes_many_times_the_baseline(
    capsys, monkeypatch, limit, outcomes
):
    monkeypatch.setattr("longpole.bench.tune.commands._SHORTEST_LIMIT_S", 0.05)
    task = write_task(f"""
        [parameters]
        seconds = [0.1, 0.01, 2.5]
        [candidate]
        command = ["sh", "-c", "sleep {{seconds}}; echo took {{seconds}} s"]
        {limit}
        [objective]
        format = "regex=took (?P<time_s>[0-9.]+) s"
    """)
    assert searched(task, "--strategy", "exhaustive", "--runs", "1", "--finalists", "1") == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert [each["outcome"] for each in found["candidates"]] == outcomes


def test_no_run_is_ended_for_its_time_where_something_else_counts(capsys, monkeypatch):
    monkeypatch.setattr("longpole.bench.tune.commands._SHORTEST_LIMIT_S", 0.01)
    task = write_task("""
        [parameters]
        seconds = [0, 0.25]
        [candidate]
        command = ["sh", "-c", "sleep {seconds}; echo loss {seconds}1"]
        [objective]
        metric = "loss"
        format = "regex=loss (?P<loss>[0-9.]+)"
    """)
    assert searched(task, "--strategy", "exhaustive", "--runs", "1") == 0
    assert json.loads(capsys.readouterr().out)["data"]["outcomes"] == {"ok": 2}


def test_more_can_be_better_and_a_printed_number_can_be_what_counts(capsys):
    task = write_task("""
        [parameters]
        rate = [10, 30, 20]
        [candidate]
        command = ["echo", "rate {rate} per s"]
        [objective]
        metric = "rate"
        goal = "max"
        format = "regex=rate (?P<rate>[0-9]+)"
    """)
    assert searched(task) == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert (found["winner"]["point"], found["winner"]["value"]) == ({"rate": 30}, 30)
    assert found["speedup"] == pytest.approx(3)  # over the first of the space


MATMUL = """
constraints = ["not (block == 16 and flags == '-O1')"]

[parameters]
flags = ["-O1", "-O3"]
block = [16, 32]
kind = ["plain", "broken", "wrong", "slow"]

[baseline]
flags = "-O1"
block = 32
kind = "plain"

[candidate]
sources = ["small.c"]
build = "gcc {flags} -DN=64 -DBLOCK={block} -DKIND_{kind} small.c -o {program}"
command = "{program} {output}"
timeout_s = 1

[objective]
format = "regex=time (?P<time_ns>[0-9]+) ns"

[reference]
file = "right.txt"
"""

SMALL = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#ifdef KIND_broken
#error "broken"
#endif
int main(int n, char **arguments)
{
    static double a[N][N], c[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = (i * 3 + j) % 7;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
#ifdef KIND_slow
    sleep(30);
#endif
#ifndef KIND_wrong
    for (int k0 = 0; k0 < N; k0 += BLOCK)
        for (int i = 0; i < N; i++)
            for (int k = k0; k < k0 + BLOCK; k++)
                for (int j = 0; j < N; j++) c[i][j] += a[i][k] * a[k][j];
#endif
    clock_gettime(CLOCK_MONOTONIC, &end);
    long time_ns = (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec;
    printf("time %ld ns\n", time_ns);
    FILE *file = fopen(arguments[1], "w");
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) fprintf(file, "%g\n", c[i][j]);
    return fclose(file);
}
"""


def write_matmul():
    a = [[(i * 3 + j) % 7 for j in range(64)] for i in range(64)]
    right = [[sum(a[i][k] * a[k][j] for k in range(64)) for j in range(64)] for i in range(64)]
    Path("right.txt").write_text("\n".join(str(each) for row in right for each in row))
    Path("small.c").write_text(SMALL)
    return write_task(MATMUL, "matmul.toml")


needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


@needs_gcc
@pytest.mark.slow
def test_of_twelve_programs_a_broken_wrong_or_slow_one_never_wins(capsys, said):
    code = searched(write_matmul(), "--strategy", "exhaustive", "--runs", "3")
    found = json.loads(capsys.readouterr().out)["data"]
    assert code == 0
    assert found["outcomes"] == {"not_started": 3, "ok": 3, "timeout": 3, "wrong": 3}
    assert found["winner"]["point"]["kind"] == "plain"
    messages = {each["outcome"]: each["message"] for each in found["candidates"]}
    assert "broken" in messages["not_started"]
    said.within(messages["wrong"])
    wrong = [each for each in read_results("out.jsonl").records if each.outcome == "wrong"]
    assert all(each.best is None for each in wrong)  # `bench compare` does not choose them either
    assert not list(Path(".longpole/tune/outputs").iterdir())


PRINTS = """
[parameters]
number = [1, 2]
[candidate]
{candidate}
[reference]
{reference}
"""
# One takes twice as long, so that the first look of the finals can tell them apart.
PRINTING = 'command = ["sh", "-c", "sleep 0.0{number}; echo {number}"]'
CALLING = 'function = "numbers_of:give"'
GIVE = "import time\ndef give(number):\n    time.sleep(number / 1000)\n    return [number]\n"
RESUMED, REUSED = ["--resume"], ["--reuse", "out.jsonl", "-o", "new.jsonl"]
TOLERANT = 'file = "right.txt"\nabsolute = 1'


@pytest.mark.parametrize(
    ("candidate", "again", "numbers", "reference", "right"),
    [
        (PRINTING, RESUMED, "2", 'file = "right.txt"', {2}),
        (PRINTING, REUSED, "1", TOLERANT, {1, 2}),
        pytest.param(CALLING, RESUMED, "1", TOLERANT, {1, 2}, marks=pytest.mark.slow),
        pytest.param(CALLING, REUSED, "2", 'file = "right.txt"', {2}, marks=pytest.mark.slow),
    ],
)
def test_runs_that_another_reference_checked_are_made_again(  # noqa: PLR0917
    capsys, candidate, again, numbers, reference, right
):
    Path("numbers_of.py").write_text(GIVE)
    device = ("--devices", "cpu") if candidate == PRINTING else ()
    before, after = ("1", 'file = "right.txt"', []), (numbers, reference, again)
    for written, checked, options in (before, after):
        Path("right.txt").write_text(written)
        text = PRINTS.replace("{candidate}", candidate).replace("{reference}", checked)
        assert searched(write_task(text), "--runs", "1", *options, device=device) == 0
        found = json.loads(capsys.readouterr().out)["data"]
    assert found["n_known"] == 0
    outcomes = {each["point"]["number"]: each["outcome"] for each in found["candidates"]}
    assert {number for number, outcome in outcomes.items() if outcome == "ok"} == right


def executions(results):
    """Count how often each run was made; a verdict on a run is a second record of it."""
    records = read_results(results).records
    return Counter(name for name, _ in {(record.id, record.started_at) for record in records})


@needs_gcc
def test_a_search_that_is_killed_and_resumed_repeats_no_run(capsys):
    task = write_matmul()
    command = [sys.executable, "-m", "longpole", "tune", task, "--devices", "cpu", "-o"]
    command += ["out.jsonl", "--strategy", "exhaustive", "--runs", "3", "--budget", "0.5"]
    results = Path("out.jsonl")
    for resume in ([], ["--resume"], ["--resume"]):
        before = results.read_bytes().count(b"\n") if results.exists() else 0
        with started([*command, *resume], stdout=subprocess.DEVNULL) as process:
            while not results.exists() or results.read_bytes().count(b"\n") < before + 8:
                assert process.poll() is None
                time.sleep(0.01)
        time.sleep(0.2)
    known = {record.id for record in read_results("out.jsonl").records if record.is_decided}
    code = searched(task, "--strategy", "exhaustive", "--runs", "3", "--resume")
    found = json.loads(capsys.readouterr().out)["data"]
    assert code == 0
    assert found["n_known"] == len(known) > 12
    assert found["winner"]["point"]["kind"] == "plain"
    assert set(executions("out.jsonl").values()) == {1}


def test_halving_finds_the_best_with_fewer_runs_than_all():
    task = read_task(
        write_task("""
            [parameters]
            seconds = { range = [10, 40] }
            [candidate]
            command = "sleep 0.0{seconds}"
        """)
    )
    devices = select(["cpu"])
    effort = Effort(n_runs=4, n_finalists=2)
    found = tune(task, "halving", results="h.jsonl", devices=devices, effort=effort, budget_s=0.5)
    assert found.winner is not None
    assert found.winner.point["seconds"] <= 12
    assert found.n_screening_runs < 31 * 4 / 2


def test_halving_gives_up_a_value_with_which_all_candidates_are_far_worse():
    space = Space({"slow": [0, 1], "broken": [0, 1], "n": range(20)})
    tried = {}

    def evaluate(points, n_runs):
        tried.update({(point["slow"], point["broken"], point["n"]): n_runs for point in points})
        return [
            None
            if point["broken"]
            else 10.0 + point["n"]
            if point["slow"]
            else 5.0 + point["n"] / 9
            for point in points
        ]

    halving(space, evaluate, Effort())
    assert {(0, 0, n) for n in range(20)} <= tried.keys()
    assert sum(broken for _, broken, _ in tried) < 25  # of 40
    assert sum(slow and not broken for slow, broken, _ in tried) == 20  # not three times as slow


@pytest.mark.parametrize(("n_points", "n_runs"), [(2, 7), (3, 8), (5, 9), (100, 14)])
def test_finals_end_at_the_first_look_that_can_tell_all_apart(n_points, n_runs):
    def turns(points, number):
        return [[10.0 ** (point["n"] + number)] for point in points]

    finals = hold_finals([{"n": n} for n in range(n_points)], turns, gate=0.03, confidence=0.95)
    assert {len(runs) for runs in finals.runs.values()} == {n_runs}
    assert not finals.undecided()


def test_a_space_has_the_points_that_meet_the_constraints():
    space = Space({"a": powers_of_two(2, 16), "b": range(1, 4)}, ["a * b <= 8", "b in [1, 2]"])
    assert [tuple(point.values()) for point in space] == [*((2, 1), (2, 2), (4, 1), (4, 2), (8, 1))]
    assert space.allows({"a": 8, "b": 1})
    assert not space.allows({"a": 16, "b": 1})
    assert len(space.sample(100)) == 5
    huge = Space({f"p{number}": range(100) for number in range(8)}, ["p0 < 50"])
    assert len(huge.sample(20, seed=1)) == 20


def test_drawing_from_a_huge_space_ends_once_there_are_enough(monkeypatch):
    huge = Space({f"p{number}": range(100) for number in range(8)})
    n_asked = []
    monkeypatch.setattr(Space, "allows", lambda *_: n_asked.append(1) or True)
    assert len(huge.sample(20)) == len(n_asked) == 20


@pytest.mark.parametrize("values", [[1, "1"], [True, "True"], [1, 1.0], [True, 1], ["a", "a"]])
def test_values_that_a_label_cannot_tell_apart_are_refused(values):
    with pytest.raises(ValueError, match="which are alike"):
        Space({"a": values})


def test_a_parameter_may_be_called_like_a_function():
    space = Space({"max": [1, 2, 3], "abs": [1, 2]}, ["max(max, abs) < 3", "max > abs"])
    assert list(space) == [{"max": 2, "abs": 1}]
    with pytest.raises(ValueError, match="'min' is not a parameter"):
        Space({"max": [1]}, ["min < 2"])


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.__class__",
        "a[0]",
        "(lambda: 1)()",
        "9 ** 99 ** 99",
        "'a' * 1000",
        "[x for x in b]",
        "b",
        "1 +",
        "min(a, key=a)",
    ],
)
def test_an_expression_runs_no_code(text):
    with pytest.raises(ValueError, match=r"."):
        compute(text, {"a": 1})


def test_an_expression_compares_and_joins():
    names = {"x": 32, "y": 4, "mode": "fast"}
    assert compute("32 <= x * y < 1024 and not mode == 'slow' or y % 3 == 0", names) is True
    assert compute("min(x, y) ** 2 // 3 - -1", names) == 6


def test_numbers_are_right_within_tolerances_and_nan_is_not(said):
    assert difference([1.0, float("nan")], [1.0, 2.0], 0.1, 0.0)
    said(difference([1.0], [1.0, 2.0], 0.1, 0.0))
    assert not difference([1.0, float("nan")], [1.0, float("nan")], 0, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[parameters]\na = []\n[candidate]\ncommand = 'x'", "at least one value"),
        ("[parameters]\na = 3\n[candidate]\ncommand = 'x'", "must be a list"),
        ("[parameters]\na = [1]\n[candidate]\ncommand = '{b}'", "{b}"),
        ("[parameters]\na = [1]\n[candidate]\ncommand = 'x'\nbuilds = 'x'", "'builds'"),
        ("[parameters]\na = [1]", "'candidate' is missing"),
        ("constraints = ['b > 1']\n[parameters]\na = [1]\n[candidate]\ncommand='x'", "'b'"),
        ("[parameters]\na = [1]\n[baseline]\na = 2\n[candidate]\ncommand='x'", "a=2"),
    ],
)
def test_a_wrong_task_is_refused_with_its_file(text, said):
    with pytest.raises(ValueError, match=r"task\.toml") as error:
        read_task(write_task(text))
    assert said in str(error.value)


def test_functions_are_timed_in_their_own_process_and_checked(capsys):
    Path("kernels.py").write_text(
        "import os\n"
        "def work(n, how):\n"
        "    if how == 'raises': raise RuntimeError('no')\n"
        "    if how == 'dies': os._exit(3)\n"
        "    return [sum(range(n if how == 'right' else 10)) * 0 + 7 + (how == 'wrong')]\n"
        "def right():\n"
        "    return [7]\n"
    )
    task = write_task("""
        [parameters]
        n = [2000, 20000]
        how = ["right", "wrong", "raises", "dies"]
        [candidate]
        function = "kernels:work"
        [reference]
        function = "kernels:right"
    """)
    assert searched(task, "--strategy", "exhaustive", "--runs", "1") == 2  # it has no --devices
    capsys.readouterr()
    assert searched(task, "--strategy", "exhaustive", "--runs", "1", device=()) == 0
    found = json.loads(capsys.readouterr().out)["data"]
    assert found["winner"]["point"] == {"n": 2000, "how": "right"}
    assert found["outcomes"] == {"nonzero": 2, "ok": 2, "raised": 2, "wrong": 2}
    n_rows = len(read_results("out.jsonl").records)
    resume = ["--strategy", "exhaustive", "--runs", "1", "--resume"]
    assert searched(task, *resume, device=()) == 0
    assert len(read_results("out.jsonl").records) == n_rows


def screened(seed, noise):
    """Halve 64 candidates in noise; return the best finalist's place and the number of runs."""
    chance = random.Random(seed)  # noqa: S311 - noise, not a secret
    runs = {}

    def evaluate(points, n_runs):
        for point in points:
            values = runs.setdefault(point["n"], [])
            while len(values) < n_runs:
                values.append((1 + point["n"] / 64) * chance.lognormvariate(0, noise))
        return [median(runs[point["n"]]) for point in points]

    halving(Space({"n": range(64)}), evaluate, Effort(seed=seed))
    ranked = sorted(runs, key=lambda n: (-len(runs[n]), median(runs[n])))
    return min(ranked[:4]), sum(map(len, runs.values()))


def test_a_noisy_screening_runs_more_candidates_again_before_it_drops_them(monkeypatch):
    places, n_runs = zip(*(screened(seed, 0.1) for seed in range(100)), strict=True)
    monkeypatch.setattr(strategies, "_ABOVE", 0.0)
    plain, n_plain = zip(*(screened(seed, 0.1) for seed in range(100)), strict=True)
    assert sum(place > 0 for place in places) < 0.7 * sum(place > 0 for place in plain)
    assert sum(n_runs) < 2 * sum(n_plain)
    monkeypatch.undo()
    assert screened(0, 0.0) == (0, n_plain[0])
