"""Tests name what they need, end what they start, and get Ctrl-C in the background of a script."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from oracles import sentences
from processes import started

TESTS = Path(__file__).parent
FILES = sorted(path for path in TESTS.rglob("test_*.py") if path != Path(__file__))


def test_every_action_of_a_workflow_is_pinned_by_its_digest():
    folder = TESTS.parent / ".github/workflows"
    if not folder.is_dir():
        pytest.skip("not a checkout: it has no workflows")
    used = [
        line.partition("uses: ")[2]
        for path in folder.glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses: " in line
    ]
    assert used
    assert [
        each for each in used if not re.fullmatch(r"[\w/.-]+@[0-9a-f]{40} # v[\d.]+", each)
    ] == []


def test_what_a_test_may_lack_is_said_with_the_mark_needs():
    """`make test-real` finds by it what `make test` skips."""
    skips = re.compile(r"importorskip\(\"(\w+)|skipif\([^)]*find_spec\(\"(\w+)")
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for names in skips.findall(text):
            assert f'mark.needs("{"".join(names)}")' in text, path


def test_every_process_of_a_test_ends_with_it():
    """`with subprocess.Popen` waits without limit for a process whose test has failed."""
    of_tools = {TESTS / "oracles/walker/__main__.py", TESTS / "processes.py"}
    files = [path for path in TESTS.rglob("*.py") if path not in of_tools]
    assert [path for path in files if re.search(r"subprocess.Popen\(", path.read_text())] == [
        TESTS / "cli/mcp_client.py"
    ]


def test_a_process_that_does_not_end_is_killed_when_its_test_fails():
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    processes = []

    def fails():
        with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            processes.append(process)
            process.stdout.readline()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert processes[0].returncode == -9


@pytest.mark.skipif(sys.platform == "win32", reason="`trap` is of POSIX")
def test_ctrl_c_reaches_the_programs_of_tests_in_the_background_of_a_script():
    """There it is ignored, and what ignores it hands this on to every program that it starts."""
    tests = [TESTS / "cli/test_cli.py", "-k", "ctrl_c", "-n", "1", "-p", "no:cacheprovider"]
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-m", "pytest"]
    done = subprocess.run(
        [*command, *tests], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout


def test_every_sentence_belongs_to_a_test():
    known = sentences.known()
    lost = [
        f"{file}::{name}"
        for file, tests in known.items()
        for name in tests.keys() - sentences.functions(file)
    ]
    assert lost == []
    assert sentences.written(known) == sentences.FILE.read_text(encoding="utf-8")


def test_a_sentence_that_differs_is_found(monkeypatch):
    monkeypatch.delenv("LONGPOLE_WRITE_SENTENCES", raising=False)
    [(file, tests), *_] = sentences.known().items()
    [(name, [first, *_]), *_] = tests.items()
    said = sentences.Said(file, name)
    said(first)
    for check in (sentences.Said(file, name), sentences.Said(file, name).within):
        with pytest.raises(AssertionError):
            check(f"other{first[5:]}")


@pytest.mark.parametrize(
    ("asked", "printed", "nearest"),
    [
        ("the host limits it", "step 3: The host limits it.\n", "The host limits it."),
        ("waits 3 ms for a copy", "It waits 4 ms for a copy, then", "waits 4 ms for a copy,"),
        ("the kernels limit it", "Nothing of this kind", None),
    ],
)
def test_what_is_said_in_other_words_is_written(asked, printed, nearest, tmp_path, monkeypatch):
    kept = tmp_path / "sentences.toml"
    kept.write_text(sentences.written({"a.py": {"test_b": [asked, "else"]}}), encoding="utf-8")
    monkeypatch.setattr(sentences, "FILE", kept)
    monkeypatch.setenv("LONGPOLE_WRITE_SENTENCES", "1")
    said = sentences.Said("a.py", "test_b")
    if nearest is None:
        with pytest.raises(AssertionError):
            said.within(printed)
    else:
        said.within(printed)
    assert sentences.known() == {"a.py": {"test_b": [nearest or asked, "else"]}}
