"""Wrong numbers, closed streams and interrupts: one sentence each, and the right exit code."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from test_written_files import commands

import longpole
from longpole.cli import interrupts
from longpole.cli.answer.problems import Problem
from longpole.cli.program import run
from longpole.testing import TraceBuilder
from processes import started

I64 = 2**63 - 1


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(5, 10), work=(12, 60))
    return str(builder.write(tmp_path / "trace.json"))


def test_every_number_has_a_limit():
    unlimited = [
        f"{name} {parameter.opts[0]}"
        for name, command in commands()
        for parameter in command.params
        if isinstance(parameter.type, click.types.IntParamType)
        and not (getattr(parameter.type, "max", None) or I64 + 1) <= I64
    ]
    assert unlimited == []


@pytest.mark.parametrize("number", [10**30, I64 + 1, 10**10, 0, -(10**30)])
def test_a_number_beyond_its_range_is_a_usage_error(number, trace, capsys):
    assert run(["table", trace, "kernels", "--top", str(number)]) == 2
    assert f"{number} is not in the range" in capsys.readouterr().err


def test_the_error_for_a_number_shows_the_range_that_the_help_leaves_out(trace, capsys, said):
    assert run(["table", trace, "kernels", "--top", "0"]) == 2
    said.within(capsys.readouterr().err)
    assert run(["table", "--help"]) == 0
    assert "1000000000" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "missing argument 'TRACE...'"),
        (["report", "x.json"], "give -o FILE, or --open to show the page"),
        (["path", "x.json", "--end", "never"], "invalid value for '--end': 'never'"),
        (["path", "x.json", "--step"], "option '--step' requires an argument"),
        (["guide", "a", "b"], "got unexpected extra arguments (a b)"),
    ],
)
def test_an_error_of_click_reads_like_all_others(arguments, message, capsys):
    assert run(arguments) == 2
    error = capsys.readouterr().err.splitlines()[0]
    assert error.startswith(f"error: {message}")
    assert error.endswith(" [usage]")
    assert not error.endswith(". [usage]")


@pytest.mark.parametrize("devices", ["fake:99999999", "fake:" + "9" * 5_000, "9" * 5_000, "fake:0"])
def test_devices_that_cannot_be_are_refused_at_once(devices, tmp_path, capsys):
    results = tmp_path / "r.jsonl"
    assert run(["bench", "run", "--devices", devices, "-o", str(results), "--", "true"]) == 5
    assert "[missing]" in capsys.readouterr().err
    assert not results.exists()


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code(closed, trace, tmp_path):
    program = f"{sys.executable} -m longpole"
    for command, code in ((f"check {trace}", 0), ("check missing.json", 3), ("check --nope", 2)):
        done = subprocess.run(
            ["/bin/sh", "-c", f"{program} {command} {closed}"],
            cwd=tmp_path,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert done.returncode == code, command
        assert ("note" in done.stdout.decode()) == (code == 0 and ">&- 2" not in closed)


def test_a_closed_stdin_is_an_empty_file(tmp_path):
    words = f"{sys.executable} -m longpole check - <&-"
    done = subprocess.run(
        ["/bin/sh", "-c", words], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (done.returncode, "the file is empty" in done.stderr) == (3, True)


SLOW_IMPORT = """
import sys, time, types
from longpole.cli import interrupts
import longpole.cli.program
interrupts.delay_interrupts()
sys.path.insert(0, sys.argv[1])
print("ready", flush=True)
try:
    import slow
    print("imported", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", hasattr(sys.modules.get("slow"), "end"))
"""


def test_an_interrupt_waits_for_the_end_of_an_import(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\nprint('in', flush=True)\ntime.sleep(1)\nend = 1\n"
    )
    command = [sys.executable, "-c", SLOW_IMPORT, str(tmp_path)]
    with started(command, stdout=subprocess.PIPE, text=True) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "in\n"]
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert output.splitlines()[-1] == "interrupted True"


def test_an_interrupt_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupts.delay_interrupts()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", [ValueError, FileExistsError, click.UsageError, RuntimeError])
def test_a_hint_is_a_line_of_its_own(kind, capsys):
    problem = Problem.of(kind("it is wrong\nhint: do this"))
    problem.show()
    assert (problem.message, problem.hint) == ("it is wrong", "do this")
    assert capsys.readouterr().err.splitlines()[1] == "hint: do this"


def test_a_step_with_nothing_in_it_is_no_usage_error(tmp_path, capsys):
    builder = TraceBuilder().step(1, (0, 100)).step(2, (100, 200))
    path = builder.operator("aten::mm", (300, 320)).write(tmp_path / "late.json")
    assert run(["summary", str(path)]) in {0, 4}
    assert "step" in capsys.readouterr().out


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e300", "-1"])
@pytest.mark.parametrize(
    "words",
    [
        ["table", "{}", "roofline", "--peak", "bf16={number}"],
        ["table", "{}", "roofline", "--peak", "bandwidth={number}"],
        ["mcp", "--timeout", "{number}", "."],
        ["mcp", "--memory-limit", "{number}", "."],
        ["bench", "run", "jobs.jsonl", "--timeout", "{number}"],
        ["bench", "run", "jobs.jsonl", "--grace", "{number}"],
        ["bench", "time", "--budget", "{number}", "--", "true"],
        ["tune", "task.toml", "--budget", "{number}"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_number_that_is_none_is_a_usage_error(words, number, trace, capsys):
    given = [word.format(trace, number=number) for word in words]
    assert run(given) == 2
    err = capsys.readouterr().err
    told = ("is not a number", "is not at least", "is not above", "is not NAME=NUMBER")
    assert any(words in err for words in told)


def test_every_real_number_has_limits():
    loose = [
        f"{name} {parameter.opts[0]}"
        for name, command in commands()
        for parameter in command.params
        if isinstance(parameter.type, click.types.FloatParamType)
        and getattr(parameter.type, "max", None) is None
    ]
    assert loose == []


def test_a_name_that_is_only_a_suffix_is_refused(trace, tmp_path, capsys):
    assert run(["convert", trace, "-o", str(tmp_path / ".csv")]) == 2
    assert "only a suffix" in capsys.readouterr().err


DEEP = {".json": "[" * 100_000, ".toml": "a = " + "[" * 100_000, ".jsonl": "[" * 100_000 + "\n"}
READERS = {
    "vocabulary.toml": ["summary", "{trace}", "--vocabulary", "{path}"],
    "a.toml": ["tune", "{path}"],
    "a.json": ["tune", "{path}"],
    "jobs.jsonl": ["bench", "run", "{path}", "-o", "{folder}/new.jsonl"],
    "results.plan.json": ["bench", "run", "--resume", "-o", "{folder}/results.jsonl"],
    "found.plan.json": ["bench", "run", "-o", "{folder}/found.jsonl", "--", "true"],
    "results.jsonl": ["bench", "compare", "{path}", "{path}"],
    "et.json": ["convert", "{path}", "--to", "chakra", "-o", "{folder}/x.et"],
    "trace.json": ["diff", "{trace}", "{path}"],
    "nccl_trace_rank_0.json": ["ranks", "{folder}"],
    "hyperfine.json": ["bench", "extract", "{path}"],
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_nested_too_deeply_is_refused_in_a_sentence(name, trace, tmp_path, capsys):
    folder = tmp_path / "given"
    folder.mkdir()
    path = folder / name
    path.write_text(DEEP[path.suffix])
    (folder / "results.jsonl").touch()
    asked = [each.format(trace=trace, path=path, folder=folder) for each in READERS[name]]
    assert run(asked) in {1, 2, 3, 4, 5, 6}
    said = capsys.readouterr()
    assert "internal error" not in said.err
    assert len(said.err) < 2000
    assert said.err or said.out


OWN_DOCUMENTS = {
    # Lines of longpole's own processes.
    "bench/run/conditions.py",
    "bench/run/sampler.py",
    "bench/time/candidates.py",
    "bench/time/command_worker.py",
    "bench/time/processes.py",
    "bench/time/worker.py",
    "cli/mcp/server.py",
    "cli/mcp/tools.py",
    "cli/mcp/worker.py",
    "cli/whatif/remedy.py",
    # Files and texts of the package, and an answer of rocm-smi.
    "devices/amd.py",
    "remedies/evidence.py",
    "words/json_schema.py",
    # Functions whose callers handle what is nested too deeply.
    "bench/run/job.py",
    "bench/tune/task.py",
}


def parsers(tree):
    """Yield the calls that parse documents, and whether a handler takes those nested too deeply."""
    taken = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            handled = " ".join(ast.unparse(each.type) for each in node.handlers if each.type)
            if "RecursionError" in handled:
                taken |= {id(call) for part in node.body for call in ast.walk(part)}
        if isinstance(node, ast.With) and "RecursionError" in ast.unparse(node.items[0]):
            taken |= {id(call) for part in node.body for call in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {
            "ast.literal_eval",
            "json.load",
            "json.loads",
            "tomllib.load",
            "tomllib.loads",
        }:
            yield node.lineno, id(node) in taken


def test_every_document_of_a_user_may_be_nested_too_deeply():
    root = Path(longpole.__file__).parent
    found = {
        path.relative_to(root).as_posix(): list(parsers(ast.parse(path.read_text("utf-8"))))
        for path in root.rglob("*.py")
    }
    unguarded = {name for name, calls in found.items() if not all(taken for _, taken in calls)}
    assert unguarded == OWN_DOCUMENTS
