"""Comments in the Rust sources use plain English and the terms of the field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "rust"
CRATES = ["longpole-core", "longpole-fuzz", "longpole-guard", "longpole-py"]
COMMENT = re.compile(r"^\s*//(?P<mark>[/!]?) ?(?P<text>.*)$")
QUOTED = re.compile(r"`[^`]*`|\]\([^)]*\)")
"""Code, and the targets of links."""

FIRST_WORDS = {
    r"Gives?": "Returns",
    r"Says?": "Returns, Whether ...",
    r"Tells?": "Returns, Determines",
    r"Names? (?:the|what|each|it)": "Returns the name of",
    r"Takes?": "Reads, Removes, Returns",
    r"Puts?": "Adds, Moves, Places",
    r"Lets?": "Makes, Adds an edge",
    r"Nobody|Whoever|Whatever": "No thread, Any caller",
    r"So (?:many|much|often|long)": "Maximum number of, Minimum time",
    r"Who(?:se)? (?!loads data)": "The thread that ..., The event of ...",
    r"None where": "None if",
    r"Has to": "Must",
}
"""Words that do not begin a doc comment, and better ones."""

INSTEAD = {
    r"(?<!clock was )(?<!clock is )behind": "after",
    r"beside": "next to, in addition to",
    r"so (?:many|much)(?! (?:longer|time))": "the number of",
    r"none where": "None if, empty if",
    r"nobody|somebody|anybody": "no thread, other programs",
    r"whoever|whatever": "any, regardless of",
    r"(?<!there )(?:is|are|be) no (?!longer|later|more)": "is not a",
    r"which (?:is|are) none": "is not one",
    r"stood|stands? (?!for)": "is in, comes after",
    r"(?:time )stamps?|stamped": "timestamp",
    r"stretch(?:es)?": "time range",
    r"hangs? on": "depends on",
    r"pieces? of (?:device )?work|work (?:of|on) (?:a|the) devices?|device work": "GPU activity",
    r"own time": "self time",
    r"doubts?": "warnings",
    r"silences?|lost work": "missing records",
    r"handovers?": "thread handoff",
    r"lags?": "minimum latency",
    r"twins?": "reference implementation",
    r"tells?|told": "shows, determines, identifies",
    r"anew": "again",
    r"made a mistake": "internal error",
    r"no regular expression": "not a regular expression",
    r"one behind the other": "one after another",
    r"gives (?:back|how|where|whether|its|the (?!same))": "returns",
    r"at the (?:least|most)": "at least, at most",
    r"sound (?:JSON|documents?|texts?|files?)": "valid",
    r"refus(?:es|ed)": "rejects, rejected",
    r"of which (?:nothing|none|all|one)": "a relative clause with a subject",
    r"but for": "except",
    r"gravest": "most severe",
    r"who waited for whom": "which call or stream waited for which",
    r"everybody|everyone": "all callers",
}
BEGINNING = re.compile("|".join(rf"^(?:{words})\b" for words in FIRST_WORDS))
WORDS = re.compile("|".join(rf"\b(?:{words})(?:\b|(?<= ))" for words in INSTEAD), re.IGNORECASE)


def comments(source):
    """Return the paragraphs of the comments in a source text, each with its mark."""
    found, mark = [], None
    for line in source.splitlines():
        comment = COMMENT.match(line)
        if comment is None or not comment["text"].strip():
            mark = None
        elif comment["mark"] == mark:
            found[-1][1].append(comment["text"].strip())
        else:
            mark = comment["mark"]
            found.append((mark, [comment["text"].strip()]))
    return [(mark, " ".join(lines)) for mark, lines in found]


def unwanted(source):
    """Return the parts of comments that have a better wording."""
    found = []
    for mark, text in comments(source):
        prose = QUOTED.sub("``", text)
        if mark and BEGINNING.match(prose):
            found.append(prose[:60])
        found += [prose[max(0, hit.start() - 40) : hit.end() + 20] for hit in WORDS.finditer(prose)]
    return found


@pytest.mark.parametrize("crate", CRATES)
def test_comments_use_the_terms_of_the_field(crate):
    sources = sorted((SOURCES / crate).rglob("*.rs"))
    assert sources
    found = {
        str(path.relative_to(SOURCES)): words
        for path in sources
        if (words := unwanted(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_words_are_found_in_comments_and_not_in_code():
    assert unwanted("let behind = 1;\n/// Says the `lag`.\nfn lag() {}") == ["Says the ``."]
    assert unwanted("// What comes\n// behind it.") == ["What comes behind it."]
    assert unwanted("/// The clock is behind.") == []
