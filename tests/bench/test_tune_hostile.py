"""Tasks of any form are searched or refused: quickly, in bounded memory, with one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from longpole.bench import Outcome, Record
from longpole.bench.expressions import ExpressionError, compute, names_in
from longpole.bench.reference import Reference
from longpole.bench.tune import (
    Objective,
    Space,
    TaskError,
    read_t1,
    read_task,
)
from longpole.cli.program import run

HOSTILE = Path(__file__).parents[3] / "shared/data/cases/hostile"
COMMAND = "[candidate]\ncommand = 'true {a}'\n"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def told(capsys):
    lines = capsys.readouterr().err.splitlines()
    return [line for line in lines if line.startswith("error: ")]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("a = { range = [0, 300000000] }", "has 300,000,001 values, more than 100,000"),
        ("a = { range = [0, 9223372036854775807] }", "more than 100,000"),
        ("a = { range = [0, 5, 0] }", "must be a list of values"),
        ("a = { powers_of_two = [1, 1e300] }", "must be a list of values"),
        ("a = [[1]]", "must be a list of values"),
        ("a = [nan]", "has nan, which is not a number"),
        ("a = [1]\n" + "\n".join(f"b{n} = [1]" for n in range(100)), "101 parameters"),
    ],
)
def test_a_space_that_is_too_large_or_has_no_values_is_refused(capsys, parameters, said):
    Path("task.toml").write_text(f"[parameters]\n{parameters}\n{COMMAND}")
    assert run(["tune", "task.toml"]) == 2
    (error,) = told(capsys)
    assert error.startswith("error: task.toml: ")
    assert said in error
    assert error.endswith("[usage]")


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ("a.__class__ == 1", "'a.__class__' is not allowed in an expression"),
        ("(9 ** 9 ** 9) > 0", "a power of 387420489 is too large, for any point"),
        ("('a' % a) == 'a'", "uses a value that is not a number, for a=1"),
        ("a % 0 == 1", "cannot be computed"),
        ("a < 'b'", "'<' not supported"),
        ("a > 1", "no combination of the parameters meets all constraints"),
        ("-" * 900 + "a", "nested too deeply"),
        ("a + " * 400 + "a", "longer than 1,000 characters"),
    ],
)
def test_a_refused_constraint_is_an_error_of_usage(capsys, constraint, said):
    task = {"parameters": {"a": [1]}, "constraints": [constraint]}
    Path("task.json").write_text(json.dumps({**task, "candidate": {"command": "true {a}"}}))
    assert run(["tune", "task.json"]) == 2
    (error,) = told(capsys)
    assert said in error
    assert error.endswith("[usage]")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"parameters": 5}, "parameters must be a table or the name of a file, not 5"),
        ({"constraints": "a < 1"}, "constraints must be a list of strings"),
        ({"constraints": [5]}, "constraints must be a list of strings"),
        ({"candidate": "true"}, "candidate must be a table, not 'true'"),
        (
            {"candidate": {"command": 5}},
            "command in candidate must be a string or a list of strings",
        ),
        ({"candidate": {"command": ["a", 5]}}, "command in candidate must be a string"),
        ({"candidate": {"command": "a", "timeout_s": "x"}}, "timeout_s in candidate must be a n"),
        ({"candidate": {"function": 5}}, "function in candidate must be a string, not 5"),
        ({"objective": "time"}, "objective must be a table"),
        ({"objective": {"metric": []}}, "metric in objective must be a string"),
        ({"reference": {"file": "x", "relative": "1"}}, "relative in reference must be a number"),
        ({"baseline": 5}, "baseline must be a table"),
    ],
)
def test_a_malformed_task_is_an_error_of_usage(capsys, changed, said):
    task = {"parameters": {"a": [1]}, "candidate": {"command": "true {a}"}}
    Path("task.json").write_text(json.dumps(task | changed))
    assert run(["tune", "task.json"]) == 2
    (error,) = told(capsys)
    assert error.startswith("error: task.json: ")
    assert said in error


@pytest.mark.parametrize("text", ["[" * 100_000, "[1", "[]", "\udcff", "null"])
def test_a_task_that_cannot_be_parsed_is_refused(text):
    Path("task.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"^task\.json: "):
        read_task("task.json")


def test_a_task_of_another_kind_is_named_as_that():
    Path("task.toml").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(ValueError, match=r"^task\.toml: it is compressed with gzip, not text$"):
        read_task("task.toml")


def test_a_task_without_end_is_not_read_to_the_end():
    with pytest.raises(OSError, match="this is a device, not a regular file"):
        read_task("/dev/zero")
    Path("task.json").write_text(" " * 10_000_001)
    with pytest.raises(ValueError, match="larger than 10,000,000 bytes"):
        read_task("task.json")


def test_reading_a_task_runs_no_code():
    declared = {"TuningParameters": [{"Name": "a", "Values": "[open('ran', 'w')]"}]}
    Path("t1.json").write_text(json.dumps({"ConfigurationSpace": declared}))
    Path("task.toml").write_text(f"parameters = 't1.json'\n{COMMAND}")
    with pytest.raises(ValueError, match="neither a list nor a range"):
        read_task("task.toml")
    assert not Path("ran").exists()


def test_a_value_that_would_need_a_shell_is_refused_and_not_run(capsys, said):
    Path("task.toml").write_text(
        "[parameters]\na = ['1; touch ran', '$(touch ran)']\n[candidate]\ncommand = 'echo {a}'\n"
    )
    assert run(["tune", "task.toml", "--devices", "cpu", "--busy", "allow"]) == 2
    (error,) = told(capsys)
    said.within(error)
    assert not Path("ran").exists()


def test_a_walk_through_a_space_ends(monkeypatch):
    monkeypatch.setattr("longpole.bench.tune.space._LARGEST_LISTED", 20_000)
    space = Space({name: range(10) for name in "abcdefgh"}, ["a+b+c+d+e+f+g+h == -1"])
    with pytest.raises(TaskError, match="combinations of the parameters were enumerated"):
        space.first()


def test_a_space_of_many_points_is_sampled_but_not_listed(monkeypatch):
    monkeypatch.setattr("longpole.bench.tune.space._LARGEST_LISTED", 20_000)
    space = Space({name: range(10) for name in "abcdefgh"}, ["a != b"])
    assert len(space.sample(50)) == 50
    with pytest.raises(TaskError, match="use the strategy random or halving"):
        list(space)


@pytest.mark.parametrize(
    "text", ["a.__class__", "__import__('os')", "a[0]", "(lambda: 1)()", "f'{a}'", "a if a else 1"]
)
def test_what_is_not_allowed_is_refused_before_anything_is_computed(text):
    with pytest.raises(ExpressionError, match="is not allowed in an expression"):
        names_in(f"True or {text}")


def test_an_error_of_an_expression_is_always_of_one_kind():
    for text in ("a + 'x'", "1 / 0", "max([])", "2.0 ** 16 ** 16", "min()", "a in 5", "b", "("):
        with pytest.raises(ExpressionError):
            compute(text, {"a": 1})


@pytest.mark.parametrize(
    "values",
    ["range(100000000000)", 5, "range(1, 2, 0)", "[" * 9_000, "{}", None, [[1]], "range(,)"],
)
def test_values_of_kernel_tuner_that_are_no_values_are_refused(values):
    declared = {"TuningParameters": [{"Name": "a", "Values": values}]}
    Path("t1.json").write_text(json.dumps({"ConfigurationSpace": declared}))
    with pytest.raises(ValueError, match=r".") as raised:
        read_t1("t1.json")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("text", ["[]", "{}", '{"ConfigurationSpace": 5}', "[" * 100_000])
def test_another_file_is_no_input_of_kernel_tuner(text):
    Path("t1.json").write_text(text)
    with pytest.raises(ValueError, match=r"t1\.json is not an input file of Kernel Tuner"):
        read_t1("t1.json")


@pytest.mark.skipif(not HOSTILE.exists(), reason="the hostile inputs are not beside the project")
@pytest.mark.parametrize(
    "task",
    ["expr", pytest.param("hang", marks=pytest.mark.slow), "inj", "mod", "pow", "pow2", "range"],
)
def test_hostile_tasks_are_refused(capsys, task):
    options = ["--devices", "cpu", "--busy", "allow", "-o", "results.jsonl"]
    assert run(["tune", str(HOSTILE / f"{task}.toml"), *options]) == 2
    assert len(told(capsys)) == 1


@pytest.mark.parametrize(
    "table",
    [
        "[reference]\nfile = 'expected.txt'\nlines = '{}'\n",
        "[objective]\nmetric = 'rate'\nformat = 'regex={}'\n",
    ],
)
@pytest.mark.parametrize(
    ("pattern", "said"), [(r"\w{80}", "more than 1 MB of memory"), ("(", "unclosed group")]
)
def test_a_pattern_of_a_task_is_bounded(capsys, table, pattern, said):
    task = f"[parameters]\na = [1]\n{COMMAND}{table.format(pattern)}"
    Path("task.toml").write_text(task)
    assert run(["tune", "task.toml"]) == 2
    (error,) = told(capsys)
    assert said in error


def test_patterns_of_a_task_take_time_linear_in_the_output():
    """A backtracking search takes 2^n steps for n letters."""
    endless = "(a+)+$"
    output = "a" * 4_000 + "b\nsum 5\n"
    assert Reference(file="x", lines=f"{endless}|^sum").printed(output) == [5.0]
    objective = Objective(metric="rate", format=f"regex=(?P<rate>{endless})|sum (?P<n>.)")
    record = Record(id="a", key="a", outcome=Outcome.OK, stdout_tail=output)
    assert objective.value(record) is None


def test_the_last_match_of_a_pattern_is_the_figure():
    record = Record(id="a", key="a", outcome=Outcome.OK, stdout_tail="x=1\n y=9\nx=2.5 z\n")
    assert Objective(metric="r", format=r"regex=^x=(?P<r>\S+)").value(record) == 2.5
    assert Objective(metric="q", format=r"regex=^x=(?P<r>\S+)").value(record) is None
