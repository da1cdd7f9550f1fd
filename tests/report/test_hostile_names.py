"""Names from a trace are shown as what they are, in every format, and none of them acts."""

from __future__ import annotations

import re
import unicodedata

import pytest
from markdown_it import MarkdownIt

from longpole.cli.program import run
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.markdown import markdown
from longpole.testing import TraceBuilder
from longpole.words.wording import escape

INVISIBLE = {
    "tag": "\U000e0041",
    "a control": "\x1b",
    "delete": "\x7f",
    "a C1 control": "\x9b",
    "right to left": "\u202e",
    "no width": "\u200b",
    "soft hyphen": "\xad",
    "joiner of graphemes": "\u034f",
    "filler of Hangul": "\u3164",
    "variation": "\ufe0f",
    "variation of ideographs": "\U000e0100",
    "blank of Braille": "\u2800",
    "annotation": "\ufff9",
    "music": "\U0001d173",
    "private": "\ue000",
    "line end": "\u2028",
}
VISIBLE = "gemm 漢字 é µ … \ufffd \U0001f600"
COMMANDS = ("summary", "check", "path", "table kernels", "table events", "whatif")


@pytest.mark.parametrize("form", ["text", "md", "html", "csv", "json", "jsonl"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_format_holds_a_character_that_nobody_sees(command, form, tmp_path, capsys):
    name = f"gemm{''.join(INVISIBLE.values())}"
    builder = TraceBuilder().operator(name, (0, 20)).launch(name, call=(5, 10), work=(12, 60))
    builder.write(tmp_path / "a.json")
    word, *rest = command.split()
    assert run([word, str(tmp_path / "a.json"), *rest, "--format", form]) in {0, 4}
    text = capsys.readouterr().out
    shown = {kind for kind, letter in INVISIBLE.items() if letter in text}
    assert shown == set()
    assert {each for each in text if unicodedata.category(each) in {"Cc", "Cf"}} <= {"\n"}


@pytest.mark.parametrize("letter", INVISIBLE.values(), ids=INVISIBLE)
def test_what_is_not_seen_is_escaped(letter):
    assert escape(f"a{letter}b") == f"a{ascii(letter)[1:-1]}b"


def test_what_is_seen_stays():
    assert escape(VISIBLE) == VISIBLE


ACTING = (
    *("http://evil.example/x", "https://evil.example", "www.evil.example", "mailto:a@b.example"),
    *("a@b.example", "@someone", "~~gone~~", "**bold**", "_x_", "<b>x</b>", "`x`", "[a](b)"),
    *("![a](http://b)", "http://a`b|c", "&lt;", "# x", "- x", "1. x", "> x", "---", "===", "+ x"),
)


@pytest.mark.parametrize("text", ACTING)
def test_no_text_acts_in_markdown(text):
    table = Table((Column("name", "name"),), [(text,), ("last",)])
    page = markdown([Headline(text), Sentence("before"), Sentence(text), Notes([text]), table])
    parser = MarkdownIt("gfm-like", {"linkify": False})
    acting = {
        each.type
        for token in parser.parse(page)
        for each in (token, *(token.children or ()))
        if re.match(r"link|image|strong|em_|s_|html|blockquote|hr|ordered", each.type)
    }
    assert acting == set()
    html = parser.render(page)
    assert re.findall(r"<h\w", html) == ["<h3"]
    assert html.count("<tr>") == 3
    assert html.count("<li>") == 1


@pytest.mark.parametrize("text", [text for text in ACTING if re.search("://|www|@", text)])
def test_an_address_is_code_which_no_renderer_links(text):
    [line] = markdown([Sentence(f"see {text} here")]).strip().splitlines()
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parseInline(line)[0].children
    codes = [token.content for token in tokens if token.type == "code_inline"]
    assert [code.replace("\\|", "|") for code in codes] == [text]
