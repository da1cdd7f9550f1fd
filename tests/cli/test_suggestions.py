"""An unknown option is answered with what may have been meant."""

from __future__ import annotations

import pytest

from longpole.cli.ask.suggestions import _MEANT
from longpole.cli.program import longpole, run
from longpole.testing import TraceBuilder


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(5, 10), work=(12, 60))
    return str(builder.write(tmp_path / "trace.json"))


@pytest.mark.parametrize(
    ("command", "option", "advice"),
    [
        ("summary", "--steps", "did you mean `--step`?"),
        ("summary", "--stpe", "did you mean `--step`?"),
        ("summary", "--html", "did you mean `--format html`?"),
        ("check", "--top_k", ""),
        ("table", "--top-k", "did you mean `--top`?"),
        ("table", "--filter", "did you mean `--where`?"),
        ("table", "--at-peak", "`longpole table TRACE memory` is of the peak"),
        ("whatif", "--gain", "`longpole whatif TRACE` lists the remedies with their gains"),
        ("path", "--explain", "`longpole whatif --remedy ID` explains a remedy"),
        ("path", "--shapes", "it is an option of `longpole TRACE operators`"),
        ("summary", "--output-file", "redirect the answer with `> FILE`"),
        ("report", "--output-file", "did you mean `--output`?"),
        ("summary", "-o", "redirect the answer with `> FILE`"),
        ("diff", "-o", "`longpole diff BASE NEW --format html` writes a page"),
        ("ranks", "--save", "`longpole report FOLDER -o FILE.html` writes a page"),
        ("mcp", "--json", "it is an option of `summary`"),
    ],
)
def test_one_suggestion_by_meaning_or_spelling(command, option, advice, trace, capsys):
    assert run([command, trace, option]) == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert message.startswith(f"error: no such option '{option}'")
    assert advice in message
    assert bool(advice) == (";" in message)
    assert hint == f"hint: see `longpole {command} --help`"


def test_an_option_like_no_other_gets_no_suggestion(trace, capsys):
    assert run(["summary", trace, "--xyzzy"]) == 2
    assert capsys.readouterr().err.startswith("error: no such option '--xyzzy' [usage]")


def test_every_suggested_option_exists():
    commands = [longpole.get_command(None, name) for name in longpole.list_commands(None)]
    commands += [
        one.get_command(None, name)
        for one in commands
        if hasattr(one, "list_commands")
        for name in one.list_commands(None)
    ]
    known = {text for one in commands for each in one.params for text in each.opts}
    meant = {option.split()[0] for option in _MEANT}
    table = longpole.get_command(None, "table")
    assert all(table.tables_with(option) for option in meant - known)


@pytest.mark.parametrize("asked", [["schema", "nope"], ["table", "trace.json", "nope"]])
def test_a_name_that_resembles_none_gets_no_suggestion(asked, capsys):
    assert run(asked) == 2
    said = capsys.readouterr().err
    assert "did you mean" not in said
    assert "lists" in said
