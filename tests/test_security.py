"""What SECURITY.md promises and no other test looks at; and that its tests are there."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longpole.bench.run.guard import Guard, Order
from longpole.testing import TraceBuilder
from oracles.watching import run_module
from processes import started

ROOT = Path(__file__).parents[1]
CRATES = sorted(path.parent.parent for path in ROOT.glob("rust/*/src/lib.rs"))
NAMED = re.findall(r"`([\w/.-]+)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))

# Ends the program at the first sign of a connection, a process or a file that is written.
WATCHED = """
import sys
import longpole.cli.program as program
import polars
def watch(event, arguments):
    if event.startswith(("socket.connect", "subprocess", "os.system", "os.exec", "os.posix_spawn")):
        raise SystemExit(f"did {event}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise SystemExit(f"wrote {arguments[0]}")
sys.addaudithook(watch)
raise SystemExit(program.run(sys.argv[1:]))
"""


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_is_named_is_there(path, name):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^\s*(def|fn) {name}\(", text, re.MULTILINE)


def test_many_tests_are_named():
    assert len(NAMED) > 20


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_no_crate_holds_unsafe_code(crate):
    assert "#![forbid(unsafe_code)]" in (crate / "src" / "lib.rs").read_text(encoding="utf-8")


def run_watched(folder, *arguments):
    command = [sys.executable, "-B", "-c", WATCHED, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def hostile(folder):
    """Write a trace whose names are paths and markup."""
    names = ("../../../etc/evil", "/tmp/evil", "<script>alert(1)</script>")  # noqa: S108
    builder = TraceBuilder().step(1, (0, 100))
    for place, name in enumerate(names):
        start = 10 + 20 * place
        builder.operator(name, (start, start + 8))
        builder.launch(name, call=(start + 1, start + 3), work=(start + 4, start + 15))
    builder.call("cudaDeviceSynchronize", (75, 99))
    return builder.write(folder / "trace.json")


@pytest.mark.parametrize("command", ["summary", "check", "path", "table breakdown", "whatif"])
def test_an_answer_writes_nothing_starts_nothing_and_asks_nobody(tmp_path, command):
    hostile(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    word, *rest = command.split()
    answer = run_watched(tmp_path, word, "trace.json", *rest, "--json")
    assert answer.returncode in {0, 1, 4}, answer.stderr
    assert json.loads(answer.stdout)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_watch_sees_what_it_looks_for(tmp_path):
    answer = run_watched(tmp_path, "convert", str(hostile(tmp_path)), "-o", "out.pftrace")
    assert "wrote" in answer.stderr


QUESTIONS = [
    "summary trace.json --json",
    "table trace.json kernels --json",
    "report trace.json -o ../out/report.html",
    "convert trace.json -o ../out/trace.pftrace",
]


@pytest.fixture
def given(tmp_path):
    """Make a folder with a trace, one with a secret next to it, and one for what is written."""
    for name in ("given", "out", "secret"):
        (tmp_path / name).mkdir()
    hostile(tmp_path / "secret")
    hostile(tmp_path / "given")
    return tmp_path / "given"


def foreign(watched, script):
    """List what was opened but the script itself, its folder and the tests."""
    own = {path for path in watched.opened if Path(path).name == script}
    own |= {str(Path(path).parent) for path in own}
    return {path for path in watched.opened - own if not path.startswith(str(ROOT / "tests"))}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_opens_the_trace_and_what_it_writes(given, question):
    watched = run_module("longpole", *question.split(), cwd=given)
    assert watched.returncode == 0, watched.stderr
    own = (str(given.parent / "out"), str(ROOT / "tests"))
    read = {path for path in watched.opened if not path.startswith(own) and path != str(given)}
    assert read == {str(given / "trace.json")}
    assert watched.connected == ()


TASK = """
[parameters]
tile = [1, 2]

[candidate]
command = "./program {tile}"
"""


def test_reading_a_task_opens_the_task_only(given):
    (given / "task.toml").write_text(TASK)
    (given.parent / "reads.py").write_text(
        "from longpole.bench.tune.task import read_task; print(read_task('given/task.toml').space)"
    )
    watched = run_module("reads", cwd=given.parent)
    assert watched.returncode == 0, watched.stderr
    assert foreign(watched, "reads.py") == {str(given / "task.toml")}
    assert watched.connected == ()


ASKS = """
import json, pathlib, sys
from cli.mcp_client import Client
with Client(pathlib.Path("given")) as client:
    for name, arguments in json.loads(sys.stdin.read()):
        print(client.answer(name, arguments)["status"])
"""


@pytest.mark.needs("mcp")
def test_a_question_of_an_agent_opens_files_of_its_folders_only(given):
    (given / "link.json").symlink_to(given.parent / "secret/trace.json")
    (given.parent / "asks.py").write_text(ASKS)
    questions = [
        ("summary", {"trace": "trace.json"}),
        ("table", {"trace": "trace.json", "table": "kernels"}),
        ("traces", {}),
        ("summary", {"trace": "link.json"}),
        ("summary", {"trace": "../secret/trace.json"}),
    ]
    watched = run_module("asks", cwd=given.parent, stdin=json.dumps(questions))
    assert watched.stdout.split() == ["ok", "ok", "ok", "error", "error"], watched.stderr
    assert foreign(watched, "asks.py") == {str(given), str(given / "trace.json")}
    assert watched.connected == ()


def test_the_watch_sees_a_file_and_a_connection(given):
    (given / "foreign.py").write_text(
        "import socket\nopen('../secret/trace.json').close()\n"
        "socket.socket().connect_ex(('127.0.0.1', 9))"
    )
    watched = run_module("foreign", cwd=given)
    assert str(given.parent / "secret/trace.json") in watched.opened
    assert len(watched.connected) == 1


def test_a_name_is_text_in_a_web_page(tmp_path):
    hostile(tmp_path)
    for command in ("summary", "path"):
        page = run_watched(tmp_path, command, "trace.json", "--format", "html").stdout
        assert "<script>alert" not in page
    assert "alert(1)" in page


def test_only_descendants_are_ended():
    guard = Guard()
    with started(["/bin/sleep", "60"]) as bystander:
        script = "setsid sleep 60 & sleep 60"
        order = Order(["/bin/sh", "-c", script], dict(os.environ), None, 0.2, 0.1, 0.1)
        assert guard.run(order, lambda *_: None).stopped == "limit"
        guard.close()
        time.sleep(0.1)
        assert bystander.poll() is None
