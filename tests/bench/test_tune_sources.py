"""A search repeats what was measured with another program, file, import or environment."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from longpole.bench.tune.sources import environment_digest, imported_files, program_files
from longpole.cli.program import run
from longpole.cli.tune import _headline, _left_out
from longpole.rows.statistics import Interval

pytestmark = pytest.mark.usefixtures("empty_folder")

PROGRAM = """
import time
from helper import SECONDS
time.sleep(SECONDS + float(__import__("sys").argv[1]))
"""
TASK = """
[parameters]
seconds = [0.0]
[candidate]
command = "python3 -S program.py {seconds}"
"""
FUNCTION_TASK = """
[parameters]
seconds = [0.0]
[candidate]
function = "work:work"
"""


def write(**texts):
    for name, text in texts.items():
        Path(name.replace("_py", ".py").replace("_toml", ".toml")).write_text(text)


def searched(capsys, *options, device=("--devices", "cpu")):
    limits = ("--budget", "0.1", "--runs", "1", "--json")
    assert run(["tune", "task.toml", *device, *limits, *options]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)["data"]


def change_program():
    Path("program.py").write_text(PROGRAM + "\n# another\n")


def change_import():
    Path("helper.py").write_text("from deep import SECONDS\n# another\n")


def change_import_of_import():
    Path("deep.py").write_text("SECONDS = 0.0001\n")


def change_threads():
    os.environ["OMP_NUM_THREADS"] = "3"


def change_nothing():
    Path("notes.txt").write_text("not named by the command")
    os.environ["LONGPOLE_NOTE"] = "does not matter"


CHANGES = [change_program, change_import, change_import_of_import, change_threads, change_nothing]


@pytest.mark.parametrize(
    ("change", "option"), [*((each, "--resume") for each in CHANGES), (change_import, "--reuse")]
)
def test_runs_of_another_program_or_environment_are_made_again(capsys, monkeypatch, change, option):
    for name in ("OMP_NUM_THREADS", "LONGPOLE_NOTE"):
        monkeypatch.setenv(name, "1")
    write(task_toml=TASK, program_py=PROGRAM, deep_py="SECONDS = 0.0\n")
    write(helper_py="from deep import SECONDS\n")
    first = searched(capsys)
    again = ("--resume",) if option == "--resume" else ("-o", "b.jsonl", "--reuse")
    source = () if option == "--resume" else ("task.results.jsonl",)
    change()
    second = searched(capsys, *again, *source)
    if change is change_nothing:
        assert second["n_outdated"] == 0
        assert second["n_known"] > first["n_screening_runs"]
    else:
        assert second["n_known"] == 0
        assert second["n_outdated"] >= second["n_screening_runs"]


@pytest.mark.parametrize("name", [pytest.param("work.py", marks=pytest.mark.slow), "parts.py"])
def test_a_function_depends_on_the_modules_that_it_imports(capsys, name):
    write(task_toml=FUNCTION_TASK, parts_py="def nap(s):\n    __import__('time').sleep(s)\n")
    write(work_py="from parts import nap\ndef work(seconds):\n    nap(seconds)\n")
    searched(capsys, device=())
    Path(name).write_text(Path(name).read_text() + "# another\n")
    found = searched(capsys, "--resume", device=())
    assert (found["n_known"], found["n_outdated"] > 0) == (0, True)


def test_the_program_and_the_files_of_a_command_are_found():
    folder = Path.cwd()
    Path("package/sub").mkdir(parents=True)
    for name in ("package/__init__.py", "package/sub/__init__.py", "package/other.py"):
        Path(name).write_text("")
    Path("package/sub/leaf.py").write_text("from ..other import x\nimport json, leaf2\n")
    Path("main.py").write_text("def f():\n    from package.sub import leaf\n")
    Path("data.bin").write_text("1")
    found = program_files(["sh", "main.py", "--data=data.bin", "missing"], folder)
    names = {path.relative_to(folder).as_posix() for path in found if folder in path.parents}
    assert names == {
        *("main.py", "data.bin", "package/__init__.py", "package/sub/__init__.py"),
        *("package/sub/leaf.py", "package/other.py"),
    }
    assert any(path.name in {"sh", "dash", "bash"} for path in found)


def test_sources_that_cannot_be_parsed_import_nothing():
    for text in ("import (", "\0", "(" * 10_000, "import x" * 3):
        Path("odd.py").write_text(text)
        assert imported_files([Path("odd.py")], Path.cwd()) == []


def test_variables_that_change_times_count():
    base = {"PATH": "/bin", "TOKEN": "secret"}
    same = environment_digest(base)
    assert environment_digest({**base, "PATH": "/usr/bin", "TOKEN": "other"}) == same
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "TORCHINDUCTOR_MAX_AUTOTUNE"):
        assert environment_digest({**base, name: "1"}) != same
    assert environment_digest(base, also=["TOKEN"]) != same


def finalist(label, *, baseline=False, tied=False):
    return SimpleNamespace(label=label, value=2e6, is_baseline=baseline, is_tied=tied)


def tuning(**fields):
    given = {
        "metric": "time",
        "unit": "ns",
        "outcomes": {"ok": 2},
        "speedup": 1.02,
        "speedup_interval": Interval(0.98, 1.06),
        "strategy": "random",
        "n_points": 100,
        "candidates": [None] * 10,
        "n_allowed": 40,
    }
    return SimpleNamespace(**given, **fields)


def test_the_headline_says_what_the_table_says():
    best = finalist("a=1", tied=True)
    tied = tuning(winner=best, baseline=finalist("a=2", baseline=True, tied=True))
    assert _headline(tied).startswith("no candidate is shown to be faster than the baseline")
    worse = tuning(winner=best, baseline=finalist("a=2", baseline=True))
    assert _headline(worse).startswith("a=1: 2.00 ms, 1.02 times as fast as the baseline")


@pytest.mark.parametrize(
    ("n_points", "n_allowed", "n_tried", "said"),
    [
        (10, 10, 10, ""),
        (100, 40, 40, "constraints exclude 60; "),
        (40, 40, 10, "the strategy random left out 30 that are allowed; "),
        (100, 40, 10, "constraints exclude 60; the strategy random left out 30 that are allowed; "),
        (10**9, None, 10, "constraints or the strategy random left out the others; "),
    ],
)
def test_what_was_left_out_is_counted_with_the_reason(n_points, n_allowed, n_tried, said):
    found = SimpleNamespace(
        n_points=n_points, n_allowed=n_allowed, candidates=[None] * n_tried, strategy="random"
    )
    assert _left_out(found) == said
