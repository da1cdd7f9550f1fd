"""One spelling, one help text and one type for each option, in all commands."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import click
import pytest

from longpole.cli import program

# What these options name depends on the command, so their help does, too.
_NAMES_THINGS_OF_THE_COMMAND = {
    "--output",
    "--runs",
    "--timeout",
    "--budget",
    "--gate",
} | {"--job-format", "--key", "--by"}
_OTHER_SPELLINGS = {
    "--out": "--output",
    "--outfile": "--output",
    "--results": "--output",
    "--limit": "--top",
    "--time-limit": "--timeout",
    "--repeat": "--runs",
    "--repetitions": "--runs",
    "--processes": "--runs",
    "--gpus": "--devices",
    "--overwrite": "--force",
    "--execution-trace": "--et",
}
_METAVARS = {"--timeout": "SECONDS", "--budget": "SECONDS", "--runs": "N", "--top": "N"}


def _commands(command, context):
    yield command, context
    for word in command.list_commands(context) if isinstance(command, click.Group) else ():
        found = command.get_command(context, word)
        yield from _commands(found, click.Context(found, parent=context, info_name=word))


def _options():
    """Yield each option of each command, by its longest name."""
    root = program.longpole
    for command, context in _commands(root, click.Context(root, info_name="longpole")):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                names = [name for name in parameter.opts if name.startswith("--")]
                yield names[0], parameter, context.command_path


OPTIONS = list(_options())


def _meaning(option):
    help_text = re.sub(r"  \[default.*| Repeatable\.", "", option.help or "")
    return help_text, option.metavar, type(option.type).__name__, option.is_flag


def test_an_option_has_one_help_text_and_type_in_all_commands():
    meanings = defaultdict(lambda: defaultdict(list))
    for name, option, command in OPTIONS:
        if name not in _NAMES_THINGS_OF_THE_COMMAND:
            meanings[name][_meaning(option)].append(command)
    several = {name: dict(found) for name, found in meanings.items() if len(found) > 1}
    assert several == {}


@pytest.mark.parametrize("other", _OTHER_SPELLINGS)
def test_an_option_has_one_spelling(other):
    assert [command for name, _, command in OPTIONS if name == other] == []


def test_no_name_carries_a_unit():
    assert [name for name, _, _ in OPTIONS if re.search(r"-(s|ms|seconds|ns)$", name)] == []


def test_what_is_written_is_named_by_the_same_two_options():
    outputs = [(option.opts, command) for name, option, command in OPTIONS if name == "--output"]
    assert [command for opts, command in outputs if "-o" not in opts] == []
    forces = [(option.opts, command) for name, option, command in OPTIONS if name == "--force"]
    assert [command for opts, command in forces if "-f" not in opts] == []


@pytest.mark.parametrize("name", _METAVARS)
def test_a_quantity_is_shown_alike(name):
    shown = {option.metavar for found, option, _ in OPTIONS if found == name}
    assert shown == {_METAVARS[name]}


def test_only_commands_that_answer_have_a_format():
    with_format = {command for name, _, command in OPTIONS if name == "--format"}
    silent = ("guide", "completion", "schema", "mcp")
    assert not with_format & {f"longpole {command}" for command in silent}


def test_every_file_of_a_command_is_listed():
    folder = Path(program.__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("*/__init__.py")]
    first_lines = [path.read_text(encoding="utf-8").partition("\n")[0] for path in files]
    commands = [
        found[1] for line in first_lines if (found := re.match(r'"""`longpole (\w+)`', line))
    ]
    assert sorted(commands) == list(program.longpole.helps)
