"""Builds that cannot share a process take turns all the same."""

import sys

import pytest
from timed import answered, time

from longpole.bench import read_results
from longpole.bench.time.lockstep import Build, builds_running

WANTED = {"name": "built:work", "point": {"n": 3}, "factory": False}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand beside two builds of a module, which could not be imported into one process."""
    for label, times in (("old", 1), ("new", 3)):
        (tmp_path / label).mkdir()
        (tmp_path / label / "built.py").write_text(
            f"LABEL = {label!r}\n"
            "import os\n"
            f"def work(n): return sum(range({times} * n))\n"
            "def who(): print(LABEL, flush=True)\n"
            "def broken(n): raise ValueError(n)\n"
            "def dying(n): os._exit(3)\n"
            "def made(n): return lambda: sum(range(n))\n"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def builds():
    return [Build.parse(f"{label}={label}", sys.executable) for label in ("old", "new")]


def time_both(*arguments, **limits):
    return time(*arguments, "--build", "old=old", "--build", "new=new", **limits)


def test_each_build_has_its_own_module_and_waits_for_its_turn():
    with builds_running(builds(), WANTED) as running:
        old, new = running
        assert old.time_ns(1000) > 0
        assert new.time_ns(1000) > 0
        assert old.time_ns(1000) > 0
    with pytest.raises(ValueError, match="closed"):
        old.time_ns(1)


def test_a_slower_build_is_told_from_the_other(capsys):
    both = ["--build", "old=old", "--build", "new=new"]
    arguments = ["built:work", "--axis", "n=3000", "-o", "out.jsonl", *both]
    code, found = answered(capsys, *arguments, processes=7, budget="2")
    assert code == 0
    [difference] = found["differences"]
    assert (difference["verdict"], difference["design"]) == ("slower", "in turns")
    assert 2 < 1 + difference["change"] < 4
    records = read_results("out.jsonl").records
    assert {record.key for record in records} == {"built:work@old n=3000", "built:work@new n=3000"}
    assert {record.sampling["clock"] for record in records} == {"cpu in lock-step"}
    assert len({record.pair for record in records}) == 7


def test_a_factory_is_called_in_the_process_of_its_build():
    assert time_both("built:made", "--axis", "n=10", "--factory") == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [("built:broken", "ValueError: 10"), ("built:dying", "ended with exit status 3")],
)
def test_a_build_that_fails_is_a_record_that_says_so(name, message, capsys):
    assert time_both(name, "--axis", "n=10", "-o", "out.jsonl") == 1
    assert message in capsys.readouterr().out
    assert {record.outcome for record in read_results("out.jsonl").records} == {"raised"}


def test_what_a_build_prints_is_no_answer():
    assert time_both("built:who") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["built:work", "other:work", "--build", "a=old", "--build", "b=new"], "one function"),
        (["built:work", "--build", "a=old"], "each of two builds"),
        (["built:work", "--build", "a=old", "--build", "a=new"], "labels of their own"),
        (["built:work", "--build", "a=absent", "--build", "b=new"], "neither a folder nor"),
        (["built:work", "--build", "old", "--build", "b=new"], "not of the form LABEL=PATH"),
        (["built:nothing", "--build", "a=old", "--build", "b=new"], "nothing cannot be loaded"),
    ],
)
def test_wrong_use_is_named(arguments, message, capsys):
    assert time(*arguments, processes=1) == 2
    assert message in capsys.readouterr().err
