"""Documents, help texts and messages use the terms of the field, one for each thing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

import longpole
from longpole.cli import program

ROOT = Path(__file__).parents[1]
PACKAGE = Path(longpole.__file__).parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
QUOTED = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)+", re.DOTALL)
"""Code, and where links lead."""

INSTEAD = {
    r"own time": "self time",
    r"doubts": "warnings",
    r"pieces? of work|work on (?:a|the) device|device work": "GPU activity",
    r"launch[- ]bound": "waiting for launches",
    r"not begun": "queued behind other work",
    r"handover": "thread handoff",
    r"detach(?:es|ed)? (?:a|the) waits?": "remove the wait",
    r"(?<!calls it )(?<!Wikipedia: )lags?": "minimum latency",
    r"twins?": "reference implementation",
    r"for nothing recorded": "inferred, not recorded",
    r"passed, of which": "total",
    r"has no name for": "host time outside operators",
    r"nothing to say against": "no problems found",
    r"no regular expression": "invalid regular expression",
    r"made a mistake": "internal error",
    r"no surprise": "by chance",
    r"who waited for whom": "which call or stream waited for which",
    r"told apart": "separated, identified",
    r"(?:time )stamps?|stamps": "timestamp",
    r"gravest": "most severe",
    r"mending": "a fix",
    r"held against": "compared with",
    r"stood behind": "followed",
    r"somebody|nobody": "another program, no one named",
    r"whatever": "regardless of",
    r"fulfils": "matches",
    r"no (?:plan|name) of": "not a",
}
WORDS = re.compile("|".join(rf"\b(?:{words})\b" for words in INSTEAD), re.IGNORECASE)


def unwanted(text):
    """Find the words that have a better one, each with what stands around it."""
    prose = " ".join(QUOTED.sub(" ", text).split())
    return [prose[max(0, found.start() - 40) : found.end() + 20] for found in WORDS.finditer(prose)]


def messages(path):
    """Give the texts of a module of more than one word that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text and id(node) not in described:
            yield text


def commands(group, name="longpole"):
    context = click.Context(group, info_name=name)
    yield name, group
    for word in group.list_commands(context) if isinstance(group, click.Group) else ():
        yield from commands(group.get_command(context, word), f"{name} {word}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_uses_the_terms_of_the_field(page):
    assert unwanted(page.read_text(encoding="utf-8")) == []


def test_help_texts_use_the_terms_of_the_field():
    helps = {name: command.get_help(click.Context(command)) for name, command in COMMANDS.items()}
    assert {name: found for name, text in helps.items() if (found := unwanted(text))} == {}


def test_every_option_has_a_help_text():
    options = [
        (name, option.opts[0], option.help)
        for name, command in COMMANDS.items()
        for option in command.params
        if isinstance(option, click.Option)
    ]
    assert options
    assert [(name, option) for name, option, text in options if not text] == []


def test_messages_use_the_terms_of_the_field():
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in messages(path)
        if unwanted(text)
    }
    assert found == set()


def test_the_words_are_found_in_prose_and_not_in_code():
    assert unwanted("Its own\ntime is long.") == ["Its own time is long."]
    assert unwanted("`handover` [see](own-time.md), timestamps") == []


COMMANDS = dict(commands(program.longpole))
