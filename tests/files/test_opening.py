"""Files are opened without waiting, and what is not a regular file is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import longpole
from longpole.files.opening import entries, matching, open_file, read_text
from longpole.testing import TraceBuilder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are of POSIX")


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().step(1, (0, 20)).launch("gemm", call=(0, 1), work=(2, 9))
    return builder.write(tmp_path / "trace.json")


def longpole_says(*words, stdin=None):
    command = [sys.executable, "-m", "longpole", *map(str, words)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=120
    )


def shell_says(script, *words):
    command = ["/bin/bash", "-c", script, sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_pipe_is_opened_only_if_it_was_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="this is a pipe, not a regular file"):
        open_file(tmp_path / "pipe", is_named=False)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(path):
    with pytest.raises(OSError, match="this is a device, not a regular file"):
        open_file(path)
    with pytest.raises(OSError, match="this is a device, not a regular file"):
        longpole.read_trace(path)


def test_a_folder_and_a_missing_file_are_the_errors_of_the_system(tmp_path):
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "missing")


def test_names_are_listed_in_order(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text("1\r\n2")
    assert [path.name for path in entries(tmp_path)] == ["a.csv", "b.csv", "c.txt"]
    assert matching(tmp_path, "*.csv") == [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert matching(tmp_path / "missing", "*") == []
    assert read_text(tmp_path / "c.txt") == "1\n2"


def test_a_vocabulary_that_is_a_device_is_refused_in_one_sentence(trace, said):
    printed = longpole_says("summary", trace, "--vocabulary", "/dev/zero")
    assert printed.returncode == 3
    said(printed.stderr)


def test_a_pipe_in_a_folder_of_ranks_is_passed_over(trace):
    os.mkfifo(trace.with_name("rank1.json"))
    os.mkfifo(trace.with_name("trace.capture.json"))
    assert longpole_says("ranks", trace.parent, "--json").returncode in {0, 4}
    assert longpole_says("check", trace).returncode in {0, 1}


@pytest.mark.parametrize(
    "script",
    [
        '"$0" -m longpole check /dev/stdin < "$1"',
        'cat "$1" | "$0" -m longpole check /dev/stdin',
        'cat "$1" | "$0" -m longpole check -',
        '"$0" -m longpole check <(cat "$1")',
        'mkfifo "$1.pipe"; cat "$1" > "$1.pipe" & "$0" -m longpole check "$1.pipe"',
        '"$0" -m longpole check "$1" --vocabulary <(echo "[kernels]")',
    ],
)
def test_a_pipe_that_was_named_is_read(trace, script):
    said = shell_says(script, trace)
    assert said.returncode == longpole_says("check", trace).returncode, said.stderr
    assert "error" not in said.stderr


@pytest.mark.parametrize(
    "script",
    [
        'cat "$1" | "$0" -m longpole summary /dev/stdin',
        'cat "$1" | "$0" -m longpole table /dev/stdin kernels',
        '"$0" -m longpole table <(cat "$1") kernels',
        'mkfifo "$1.pipe"; cat "$1" > "$1.pipe" & "$0" -m longpole "$1.pipe"',
    ],
)
def test_no_command_looks_into_a_pipe_before_it_reads_it(trace, script):
    said = shell_says(script, trace)
    assert ": step 1\n" in said.stdout or "gemm" in said.stdout, said.stderr
    assert said.returncode in {0, 4}


def test_what_cannot_be_read_from_a_pipe_says_so(trace, said):
    printed = shell_says('"$0" -m longpole ranks <(cat "$1")', trace)
    said.within(printed.stderr)
    trace.write_text('{"segments": [], "device_traces": []}')
    printed = shell_says('cat "$1" | "$0" -m longpole /dev/stdin', trace)
    said.within(printed.stderr)
