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


@pytest.mark.parametrize("command", ["summary", "check", "path", "table overlap", "whatif --ideal"])
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


def test_a_name_is_text_in_a_web_page(tmp_path):
    hostile(tmp_path)
    for command in ("summary", "path"):
        page = run_watched(tmp_path, command, "trace.json", "--format", "html").stdout
        assert "alert(1)" in page
        assert "<script>alert" not in page


def test_only_descendants_are_ended():
    guard = Guard()
    with subprocess.Popen(["/bin/sleep", "60"]) as bystander:
        script = "setsid sleep 60 & sleep 60"
        order = Order(["/bin/sh", "-c", script], dict(os.environ), None, 0.2, 0.1, 0.1)
        assert guard.run(order, lambda *_: None).stopped == "limit"
        guard.close()
        time.sleep(0.1)
        assert bystander.poll() is None
        bystander.kill()
