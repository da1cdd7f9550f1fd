"""The fixture `longpole_bench`, in pytests of its own."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

if not any(each.name == "longpole" for each in entry_points(group="pytest11")):
    pytest.skip("longpole was installed without its plugin", allow_module_level=True)

BENCHES = """
import os, time

def test_other():
    open("others", "a").write("x")

def test_sum(longpole_bench):
    n = int(os.environ.get("LONGPOLE_BENCH_N", "2000"))
    assert longpole_bench(sum, range(n)) == n * (n - 1) // 2

def test_two(longpole_bench):
    assert longpole_bench(max, [1, 2], key="max") == 2
    assert longpole_bench(min, [1, 2], key="min") == 1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_it.py").write_text(BENCHES)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run_pytest(*arguments, loads_all=False, **variables):
    """Run pytest with only this plugin, since others take most of the time of a start."""
    plugins = [
        "-p",
        "no:cacheprovider",
        *([] if loads_all else ["-p", "longpole.bench.pytest_plugin"]),
    ]
    command = [sys.executable, "-m", "pytest", *plugins, *arguments]
    environment = {**os.environ, "LONGPOLE_BASELINES": "kept", **variables}
    if not loads_all:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    found = subprocess.run(
        [*command, "--longpole-budget-s", "0.05"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.returncode, found.stdout + found.stderr


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_benchmark_is_a_test_and_its_time_is_shown(folder):
    code, said = run_pytest("--longpole-records", "out.jsonl", loads_all=True)
    assert code == 0, said
    assert "3 passed" in said
    keys = [row["key"] for row in rows(folder / "out.jsonl")]
    assert keys == ["test_it.py::test_sum", "test_it.py::test_two max", "test_it.py::test_two min"]
    assert "test_it.py::test_sum" in said.partition("benchmarks (longpole)")[2]


def test_each_run_is_a_process_and_only_benchmarks_run_again(folder):
    code, said = run_pytest("--longpole-runs", "3", "--longpole-records", "out.jsonl")
    assert code == 0, said
    assert (folder / "others").read_text() == "x"
    of_sum = [row for row in rows(folder / "out.jsonl") if row["key"] == "test_it.py::test_sum"]
    assert len({row["run"] for row in of_sum}) == 3
    assert len(rows(folder / "out.jsonl")) == 9


def test_the_verdict_on_a_baseline_decides_the_exit_status(folder):
    only = ["test_it.py::test_sum"]
    only += ["--longpole-runs", "4"]
    code, said = run_pytest(*only, "--longpole-save", "main")
    assert code == 0, said
    assert (folder / "kept" / "main.jsonl").exists()

    code, said = run_pytest(*only, "--longpole-baseline", "main", LONGPOLE_BENCH_N="8000")
    shown = said.partition("benchmarks (longpole)")[2]
    if "programs waited for the processors" in " ".join(shown.split()):
        assert (code, "inconclusive" in shown) == (0, True), said
    else:
        assert (code, "slower" in shown) == (1, True), said


def test_one_run_is_inconclusive_and_fails_only_where_that_was_asked_for():
    only = ["test_it.py::test_sum"]
    assert run_pytest(*only, "--longpole-save", "main", "--longpole-runs", "1")[0] == 0
    compared = [*only, "--longpole-baseline", "main", "--longpole-runs", "1"]
    code, said = run_pytest(*compared)
    assert (code, "one run of each side" in said) == (0, True)
    assert run_pytest(*compared, "--longpole-fail", "inconclusive")[0] == 1


def test_a_test_that_fails_is_not_measured_again(folder):
    (folder / "test_it.py").write_text(
        "def test_wrong(longpole_bench):\n    assert longpole_bench(sum, [1]) == 2\n"
    )
    code, said = run_pytest("--longpole-runs", "3", "--longpole-records", "out.jsonl")
    assert (code, "1 failed" in said) == (1, True)
    assert len(rows(folder / "out.jsonl")) == 1


def test_a_run_that_fails_is_told(folder, said):
    (folder / "test_it.py").write_text(
        "import os\n"
        "def test_first_only(longpole_bench):\n"
        "    longpole_bench(sum, [1])\n"
        "    assert not os.environ.get('LONGPOLE_PYTEST_INTO'), 'not again'\n"
    )
    code, printed = run_pytest("--longpole-runs", "3")
    assert code == 1
    said.within(printed)
    assert "not again" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--longpole-baseline", "absent"], "neither a file nor a baseline"),
        (["--longpole-save", "no/name"], "not a valid baseline name"),
        (["--longpole-save", "main"], "there is a baseline main"),
        (["--longpole-gate", "3"], "'3' is not a share; write 3% or 0.03"),
        (["--longpole-runs", "0"], "invalid"),
        (["--longpole-records", "mine"], "mine exists"),
    ],
)
def test_wrong_use_is_named_and_nothing_is_written_over(arguments, message, folder):
    (folder / "mine").write_text("mine")
    (folder / "kept").mkdir()
    (folder / "kept" / "main.jsonl").write_text("kept")
    code, said = run_pytest("test_it.py::test_sum", *arguments)
    assert code == 4, said
    assert message in said
    assert "1 passed" not in said
    assert (folder / "mine").read_text() == "mine"
    assert (folder / "kept" / "main.jsonl").read_text() == "kept"
