"""Shells complete commands, options and files, by the script that longpole prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# What only an interactive shell has is replaced: `compopt`, `compdef`, `_describe`.
BASH = """
compopt() {{ :; }}
eval "$(longpole completion bash)"
COMP_WORDS=(longpole {words}); COMP_CWORD={number}
_longpole_completion longpole
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() { print -r -- "registered $2" }
eval "$(python -m longpole completion zsh)"
_describe() { local name=$3; print -rl -- ${(P)name} }
words=(longpole su); CURRENT=2
_longpole_completion
"""
FISH = """
longpole completion fish | source
complete --do-complete "longpole {words}"
"""
BIN = Path(sys.executable).parent
SCRIPTS = {"bash": BASH, "fish": FISH}


@pytest.fixture(params=sorted(SCRIPTS))
def complete(request, tmp_path):
    """Return what a shell offers after some words, the last of which is unfinished."""
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"{request.param} is not installed")
    command = tmp_path / "bin" / "longpole"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m longpole "$@"\n')
    command.chmod(0o755)
    (tmp_path / "trace.json.gz").touch()
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    environment["HOME"] = str(tmp_path)

    def run(words):
        number = len(words.split(" "))
        script = SCRIPTS[request.param].format(words=words or "''", number=number)
        done = subprocess.run(
            [shell, "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return {line.split("\t")[0].split(",")[-1] for line in done.stdout.splitlines()}

    return run


def test_a_command_is_completed(complete):
    assert {"summary"} <= complete("su")
    assert "path" not in complete("su")


def test_fish_shows_whole_descriptions(tmp_path, said):
    shell = shutil.which("fish")
    if shell is None:
        pytest.skip("fish is not installed")
    shown = subprocess.run(
        [shell, "-c", FISH.format(words="dem")],
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    said.within(shown.stdout)


def test_a_command_of_bench_is_completed(complete):
    assert {"compare", "run"} & complete("bench r") == {"run"}


def test_an_option_and_its_choices_are_completed(complete):
    assert "--window" in complete("path --wi")
    assert {"json", "jsonl"} <= complete("path --format js")


def test_the_words_of_a_table_are_completed(complete):
    assert "segments" in complete("table trace.json.gz seg")


def test_zsh_takes_the_script_and_is_given_the_commands(tmp_path):
    shell = shutil.which("zsh")
    if shell is None:
        pytest.skip("zsh is not installed")
    offered = subprocess.run(
        [
            shell,
            "-f",
            "-c",
            ZSH,
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "registered longpole" in offered.stdout
    assert "summary:" in offered.stdout
    assert "path:" not in offered.stdout
