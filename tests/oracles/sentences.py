"""The sentences that tests expect, in one file for a reviewer: `tests/sentences.toml`.

A test with the fixture `said` compares its sentences with those of its entry, in their order. With
`LONGPOLE_WRITE_SENTENCES=1`, what is said in other words is written into the file instead, in tests
that run in one process; a test whose sentence is gone fails as before.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]
FILE = TESTS / "sentences.toml"
HEAD = "# Sentences that tests expect, by file and test function, in the order of the test.\n"


def known() -> dict[str, dict[str, list[str]]]:
    """Return the sentences of each test function, by file."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def written(sentences: dict[str, dict[str, list[str]]]) -> str:
    """Return the file with some sentences."""
    text = HEAD
    for file, tests in sentences.items():
        text += f'\n["{file}"]\n'
        for name, told in tests.items():
            lines = "".join(f"\n  {json.dumps(it, ensure_ascii=False)}," for it in told)
            text += f"{name} = [{lines}\n]\n"
    return text


def functions(file: str) -> set[str]:
    """Return the names of the test functions of a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def nearest(asked: str, printed: str) -> str | None:
    """Return the passage of a text that is most like a sentence; `None` if nothing is like it."""
    like = max(_passages(asked, printed), key=lambda one: _likeness(asked, one), default="")
    return like if _likeness(asked, like) >= _AS_LIKE else None


_AS_LIKE = 0.6


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _passages(asked: str, printed: str) -> Iterator[str]:
    """Yield runs of whole words that have about as many as what is asked."""
    words = [word.span() for word in re.finditer(r"\S+", printed)]
    n_asked = len(asked.split())
    for length in range(max(1, n_asked - 3), n_asked + 4):
        for first in range(len(words) - length + 1):
            yield printed[words[first][0] : words[first + length - 1][1]]


def _writes() -> bool:
    return bool(os.environ.get("LONGPOLE_WRITE_SENTENCES"))


class Said:
    """The expected sentences of one test, in order."""

    def __init__(self, file: str, name: str) -> None:
        self.file, self.name = file, name
        self.expected = known().get(file, {}).get(name, [])
        self.n_used = 0

    def __call__(self, text: str) -> None:
        """Assert that a text is the next sentence."""
        if _writes() and self.n_used == len(self.expected):
            self.expected.append("")  # a sentence that the file does not have
        expected = self._next()
        if text != expected and self._write(text):
            return
        assert text == expected

    def within(self, text: str) -> None:
        """Assert that a text contains the next sentence."""
        expected = self._next()
        if expected not in text and self._write(nearest(expected, text)):
            return
        assert expected in text

    def _write(self, text: str | None) -> bool:
        """Write a text for the sentence compared last, if writing is on; return whether it did."""
        if text is None or not _writes():
            return False
        sentences = known()
        of_test = sentences.setdefault(self.file, {}).setdefault(self.name, [])
        of_test[self.n_used - 1 : self.n_used] = [text]
        FILE.write_text(written(sentences), encoding="utf-8")
        return True

    def _next(self) -> str:
        assert self.n_used < len(self.expected), f"add to {FILE.name}: {self.file}, {self.name}"
        self.n_used += 1
        return self.expected[self.n_used - 1]


@pytest.fixture
def said(request: Any) -> Any:
    """Compare sentences with those of `tests/sentences.toml`."""
    file = Path(request.node.path).relative_to(TESTS).as_posix()
    sentences = Said(file, request.node.originalname)
    yield sentences
    if not request.node.stash.get(_ENDED_EARLY, False):
        assert sentences.n_used == len(sentences.expected), "sentences that the test does not ask"


_ENDED_EARLY = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Note that a test failed or skipped: then, it has not asked for all its sentences."""
    report = yield
    if call.when == "call":
        item.stash[_ENDED_EARLY] = not report.passed
    return report
