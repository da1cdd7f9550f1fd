"""Documents, help texts and messages use the terms of the field, one for each thing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import click

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


ODD_VERBS = "Give", "Say", "Tell", "Name", "Take", "Put", "Let"
"""Verbs that no docstring begins with: it returns, reads, lists, or says whether."""

ALLOWED_BEGINNINGS = (
    "Name of ",
    "Let agents ask ",  # the help text of `longpole mcp`
)

INSTEAD_IN_CODE = {
    r"none where": "without, if there is none",
    r"where there (?:is|are)": "if there is",
    r"so (?:many|much)": "this number, `n`",
    r"beside (?-i:[a-z])": "next to, in addition to",
    r"(?<!hidden )(?<!tables )behind": "after",
    r"(?<!there )(?:is|are) no (?!longer)": "is not a",
    r"(?<!there )(?:is|are) (?-i:none)": "is not one, is empty",
    r"gives? back": "return, release",
    r"at the (?:most|least)": "at most, at least",
    r"stands? (?:beside|behind|before)": "is next to, follows, precedes",
    r"dearest": "most expensive",
    r"asked for": "requested",
    r"mends?": "fix",
    r"wherever": "if, in any",
    r"as of `": "as for",
    r"speaks? against": "a warning, a caveat",
    r"holds? \w+(?: \w+)? up": "limits",
    r"le(?:ft|aves?) \w* ?alone": "unchanged",
    r"worth a (?:word|sentence)": "reported",
    r"puts? .{0,30} into words": "describe, format",
    r"made a mistake": "internal error",
    r"out of order": "broken",
    r"nothing where": "empty if",
    r"another matter": "does not count",
    r"by their places?": "by index",
}
"""Phrases that docstrings and comments do without, beyond those of `INSTEAD`."""

CODE_WORDS = re.compile(
    rf"{WORDS.pattern}|" + "|".join(rf"\b(?:{words})" for words in INSTEAD_IN_CODE), re.IGNORECASE
)

MODULES = sorted(PACKAGE.rglob("*.py"))


def unwanted(text, words=WORDS):
    """Return the phrases that have a better one, each with its context and the better one."""
    prose = " ".join(QUOTED.sub(" ", text).split())
    return [
        f"{prose[max(0, found.start() - 40) : found.end() + 20]}"
        f" ({found[0]!r}; better: {better(prose, found.start())})"
        for found in words.finditer(prose)
    ]


def better(prose, start):
    """Return what to write instead of the phrase at a place."""
    listed = {**INSTEAD_IN_CODE, **INSTEAD}
    return next(
        text
        for words, text in listed.items()
        if re.compile(rf"\b(?:{words})", re.IGNORECASE).match(prose, start)
    )


def docstrings(path):
    """Yield the docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = getattr(node.value, "value", None) if isinstance(node, ast.Expr) else None
        if isinstance(text, str):
            yield text


def comments(path):
    """Yield the blocks of comments of a module, without notes to linters."""
    block, last = [], 0
    with io.StringIO(path.read_text(encoding="utf-8")) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type != tokenize.COMMENT or "noqa" in token.string:
                continue
            if block and token.start[0] != last + 1:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    if block:
        yield " ".join(block)


def without_examples(text):
    return re.split(r"\n *Examples\n *-+\n", text)[0]


def messages(path):
    """Yield the strings of a module with more than one word that are not docstrings."""
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


def test_pages_use_the_terms_of_the_field():
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    assert {name: found for name, text in texts.items() if (found := unwanted(text))} == {}


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
        if unwanted(text, CODE_WORDS if path in MODULES else WORDS)
    }
    assert found == set()


def test_docstrings_and_comments_are_plain_english():
    problems = {}
    for path in MODULES:
        described = list(docstrings(path))
        texts = [*map(without_examples, described), *comments(path)]
        found = [each for text in texts for each in unwanted(text, CODE_WORDS)]
        verbs = [text.strip() for text in described if text.strip().split(" ")[0] in ODD_VERBS]
        found += [text for text in verbs if not text.startswith(ALLOWED_BEGINNINGS)]
        if found:
            problems[str(path.relative_to(PACKAGE))] = found
    assert problems == {}


def test_odd_docstrings_are_found(tmp_path):
    module = tmp_path / "odd.py"
    module.write_text(
        'def of(x):\n    """Give what stands behind it."""\n    # so many at the most,\n'
        "    # none where there are none\n    return x  # it is no list\n"
    )
    assert list(docstrings(module)) == ["Give what stands behind it."]
    assert list(comments(module)) == [
        "so many at the most, none where there are none it is no list"
    ]
    odd = [unwanted(text, CODE_WORDS) for text in [*docstrings(module), *comments(module)]]
    assert [len(found) for found in odd] == [1, 4]


def test_the_words_are_found_in_prose_and_not_in_code():
    expected = "Its own time is long. ('own time'; better: self time)"
    assert unwanted("Its own\ntime is long.") == [expected]
    assert unwanted("`handover` [see](own-time.md), timestamps") == []


COMMANDS = dict(commands(program.longpole))
