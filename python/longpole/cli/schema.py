"""`longpole schema`: print the JSON Schema of the answer of a command."""

from __future__ import annotations

import json
from functools import partial, reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.ask.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from longpole.words.json_schema import Schema


class _Command(click.ParamType[str]):
    """A word in the name of a command, completed by the shell."""

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
@click.argument("command", nargs=-1, type=_Command(), metavar="[COMMAND]")
@click.pass_context
def schema(context: click.Context, *, command: tuple[str, ...]) -> int:
    """Print the JSON Schema of the answer of a command.

    The schema describes `data` in the output of `--format json`; `envelope` describes the other
    keys. Without COMMAND, the names are listed.

    \b
    Examples:
      longpole schema summary
      longpole schema bench compare
      longpole schema table queue time
    """
    program = _program(context)
    name = " ".join(command)
    if not name:
        click.echo("\n".join(schema_names(program)))
        return 0
    click.echo(json.dumps(schema_for(name, program), indent=2, ensure_ascii=False))
    return 0


def schema_names(program: click.Command) -> list[str]:
    """Return the commands that have a schema, and `envelope`."""
    return sorted(_answers(program))


def schema_for(name: str, program: click.Command) -> Schema:
    """Derive the schema of a command's or table's answer, or of the envelope.

    Raises
    ------
    click.UsageError
        The command does not exist, or has no schema.
    """
    answers = _answers(program)
    if name not in answers:
        advice = closest(name, answers, "`longpole schema` lists those with one")
        message = f"no schema for {name!r}; {advice}"
        raise click.UsageError(message)
    title, derive = answers[name]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"longpole.{name.replace(' ', '.')}/1",
        "title": title,
        **derive(),
    }


def _answers(program: click.Command) -> dict[str, tuple[str, Callable[[], Schema]]]:
    """Return the description of each command and table, and how to derive its schema."""
    from longpole.cli.answer.table import tables as all_tables
    from longpole.tables.catalogue import words_of

    envelope = partial(_declared, "longpole.report.document:Envelope")
    dumps = partial(_declared, "longpole.jobs.dumps:DumpsData")
    tables = {
        f"table {name}{by and f' {by}'}": (text, partial(_table, name, by))
        for name, text in all_tables().items()
        for by in ("", *words_of(name)[1:])
    }
    profile = partial(_declared, "longpole.formats.mindspore.offline:Analysis")
    return {
        "envelope": ("The envelope of every answer", envelope),
        "mindspore": ("The answer of `longpole FOLDER` about a MindSpore profile", profile),
        "dumps": ("The answer of `longpole ranks` about flight recorder dumps", dumps),
        **dict(_answers_of("", program)),
        **tables,
    }


def _answers_of(
    name: str, command: click.Command
) -> Iterator[tuple[str, tuple[str, Callable[[], Schema]]]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            found = command.get_command(context, word)
            assert found is not None  # noqa: S101 (it is listed)
            yield from _answers_of(f"{name} {word}".strip(), found)
    declared: Any = getattr(command.callback, "answer", None)
    if declared is not None:
        title = command.get_short_help_str(limit=200).removesuffix(".")
        types, has_rows = declared
        yield name, (title, partial(_declared, *types, has_rows=has_rows))


def _declared(*declared: str, has_rows: bool = False) -> Schema:
    """Derive the schema of types given as `module:Class`, or of a list of these as `rows`."""
    from longpole.words.json_schema import schema_of

    names = [each.partition(":") for each in declared]
    types = [getattr(import_module(module), name) for module, _, name in names]
    answer: Any = reduce(or_, types)
    return _object({"rows": schema_of(list[answer])}) if has_rows else schema_of(answer)


def _object(properties: Schema, required: Iterable[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _table(name: str, by: str) -> Schema:
    """Derive the schema of one table: a frame of declared rows, or data with its own fields."""
    from longpole.tables.catalogue import words_of

    found = _rows(name, by or None)
    word = by or next(iter(words_of(name)), None)
    properties = {"table": {"const": name}, "by": {"const": word}, **found["properties"]}
    return _object(properties, ["table", "by", *found["required"]])


def _rows(name: str, by: str | None) -> Schema:
    """Derive the fields next to the name of a table: rows, declared or not, or data fields."""
    from longpole.tables.catalogue import gives_frame, view_of
    from longpole.words.json_schema import schema_of

    answer: Any = view_of(name, by).answer
    if answer is not None and not gives_frame(name, by):
        return schema_of(answer)
    row = schema_of(answer or dict[str, Any])
    rows = {"type": "array", "items": row}
    return {"properties": {"rows": rows}, "required": ["rows"]}


def _program(context: click.Context) -> click.Command:
    return context.find_root().command
