"""`longpole schema`: print the JSON Schema of what a command answers."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.json_schema import Schema

__all__ = ["schema", "schema_for", "schema_names"]

_ENVELOPE = "envelope"


class _Command(click.ParamType[str]):
    """A word of the name of a command, completed by the shell."""

    name = "command"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[click.shell_completion.CompletionItem]:
        words = sorted({word for name in schema_names(_program(ctx)) for word in name.split()})
        matching = (word for word in words if word.startswith(incomplete))
        return [click.shell_completion.CompletionItem(word) for word in matching]


@click.command()
@click.argument("command", nargs=-1, type=_Command(), metavar="COMMAND")
@click.pass_context
def schema(context: click.Context, *, command: tuple[str, ...]) -> int:
    """Print the JSON Schema of what a command answers.

    The schema describes `data` in the output of `--format json`; `envelope` describes what
    stands around it. Without COMMAND the names are listed.

    \b
    Examples:
      longpole schema summary
      longpole schema bench compare
    """
    program = _program(context)
    name = " ".join(command)
    if not name:
        click.echo("\n".join(schema_names(program)))
        return 0
    click.echo(json.dumps(schema_for(name, program), indent=2, ensure_ascii=False))
    return 0


def schema_names(program: click.Command) -> list[str]:
    """Name the commands that have a schema, and `envelope`."""
    return sorted(_answers(program))


def schema_for(name: str, program: click.Command) -> Schema:
    """Derive the schema of what a command answers, or of what stands around every answer.

    Raises
    ------
    click.UsageError
        There is no such command, or it answers nothing.
    """
    from longpole.json_schema import schema_of

    answers = _answers(program)
    if name not in answers:
        message = f"no schema for {name!r}; there are {', '.join(schema_names(program))}"
        raise click.UsageError(message)
    declared, title = answers[name]
    module, _, attribute = declared.partition(":")
    found = schema_of(getattr(import_module(module), attribute))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"longpole.{name.replace(' ', '.')}/1",
        "title": title,
        **found,
    }


def _answers(program: click.Command) -> dict[str, tuple[str, str]]:
    """Find what each command answers with, and what it does."""
    envelope = ("longpole.report.document:Envelope", "What stands around every answer")
    return {_ENVELOPE: envelope, **dict(_answers_of("", program))}


def _answers_of(name: str, command: click.Command) -> Iterator[tuple[str, tuple[str, str]]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            found = command.get_command(context, word)
            assert found is not None  # noqa: S101 (it is listed)
            yield from _answers_of(f"{name} {word}".strip(), found)
    declared: Any = getattr(command.callback, "answer", None)
    if declared is not None:
        yield name, (declared, command.get_short_help_str(limit=200).removesuffix("."))


def _program(context: click.Context) -> click.Command:
    return context.find_root().command
