"""Ctrl-C at any moment of start-up ends the command with 130 and without a traceback.

Excepted is what comes before: Python itself, and finding the first modules of longpole. The signal
is sent when a module is about to be imported, so that no test depends on time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SENDS = """
import os, signal, sys
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SEND_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000): pass
        return None
sys.meta_path.insert(0, Sender())
"""
SENDS_AT_THE_END = """
import os, signal, sys
left = int(os.environ["SEND_AT"])
def watch(frame, event, value):
    return at_line if frame.f_code.co_name == "stop_at_interrupts" else None
def at_line(frame, event, value):
    global left
    left -= event == "line"
    if left == 0 and event == "line":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
    return at_line
sys.settrace(watch)
"""
MOMENTS = [
    *("longpole.tables", "longpole.tables.catalogue"),
    *(
        "longpole.errors",
        "longpole._core",
        "longpole.formats.read",
        "longpole.trace.trace",
        "longpole.engine.windows",
    ),
    *("longpole.files.vocabulary", "longpole.cli.program", "longpole.cli.answer", "click"),
    *("click.core", "click.shell_completion", "longpole.cli.answer.emit", "longpole.files.writing"),
    *("longpole.cli.ask.commands", "longpole.cli.table", "longpole.report.document"),
    *("longpole.cli.answer.table", "polars", "numpy"),
]


@pytest.fixture
def trace(tmp_path):
    from longpole.testing import TraceBuilder

    return TraceBuilder().operator("a", (0, 5)).write(tmp_path / "trace.json")


@pytest.fixture
def started(tmp_path, trace):
    """Run a command whose interpreter is interrupted at the import of a module."""
    (tmp_path / "hook").mkdir()

    def run(moment, *command, hook=SENDS):
        (tmp_path / "hook/sitecustomize.py").write_text(hook)
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "hook"), "SEND_AT": moment}
        words = [*command, "table", str(trace), "kernels"]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)

    return run


@pytest.mark.parametrize(
    "moment",
    [
        *MOMENTS[::3],
        *(pytest.param(it, marks=pytest.mark.slow) for it in MOMENTS if it not in MOMENTS[::3]),
    ],
)
def test_ctrl_c_while_a_module_is_imported_ends_the_command_quietly(started, moment):
    done = started(moment, str(Path(sys.executable).with_name("longpole")))
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_while_the_package_is_imported_as_a_module(started):
    done = started("longpole.tables.catalogue", sys.executable, "-m", "longpole")
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("line", range(1, 5))
def test_ctrl_c_while_the_command_ends_does_so_without_a_traceback(started, line):
    words = str(Path(sys.executable).with_name("longpole"))
    done = started(str(line), words, hook=SENDS_AT_THE_END)
    ended = 130 if line < 4 else -signal.SIGINT  # the last line finds the default handler
    assert (done.returncode, done.stderr) == (ended, "")
