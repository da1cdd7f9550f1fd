"""The tools: commands that only read, with the options that an agent may set.

A tool runs its command in this process, so that an agent gets the answer that a person gets.
"""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer.problems import Problem
from longpole.cli.answer.table import tables
from longpole.cli.mcp.bounds import bounded, events_in
from longpole.cli.mcp.paths import checked, traces_in
from longpole.cli.program import longpole, run
from longpole.cli.schema import schema_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longpole.json_schema import Schema

__all__ = ["TOOLS", "call", "input_schema", "output_schema", "purpose"]

Answer = dict[str, Any]

_WINDOW: Final = ("step", "annotation", "instance", "between", "whole")
_MOST_ROWS: Final = 50
_MOST_EVENTS: Final = 20
_EVENT: Final = ("event", "kind", "name", "process", "thread", "device", "stream")
_TIMES: Final = ("start_ns", "duration_ns")


@dataclass(frozen=True, slots=True)
class Tool:
    """A command as a tool: its files, its options, and whether its answer names events."""

    files: Mapping[str, str]
    options: tuple[str, ...] = ()
    has_events: bool = True


_TRACE: Final = {"trace": "Path of the trace"}
TOOLS: Final[Mapping[str, Tool]] = {
    "traces": Tool({}),
    "summary": Tool(_TRACE, (*_WINDOW, "top")),
    "path": Tool(_TRACE, (*_WINDOW, "top")),
    "whatif": Tool(_TRACE, (*_WINDOW, "scale", "drop", "remove_wait", "ideal")),
    "table": Tool(_TRACE, (*_WINDOW, "where", "sort", "top")),
    "check": Tool(_TRACE, has_events=False),
    "diff": Tool(
        {"base": "Trace, or folder of traces, before", "new": "The same after"},
        ("gate", "top"),
        has_events=False,
    ),
    "ranks": Tool({"traces": "Folder with the traces of all ranks"}, ("step",), has_events=False),
}
"""The questions, by the names of their commands; `traces` lists the files."""


def purpose(name: str) -> str:
    """Say what a tool answers."""
    if name == "traces":
        return "List the files that can be asked about, with their sizes in bytes."
    text = _command(name).get_short_help_str(limit=200)
    return f"{text} Columns of tables: see `longpole schema`." if name == "table" else text


def input_schema(name: str) -> Schema:
    """Derive what a tool takes from the options of its command."""
    tool = TOOLS[name]
    properties: Answer = {
        file: {"type": "string", "description": text} for file, text in tool.files.items()
    }
    required = list(properties)
    if name == "table":
        properties["table"] = {"type": "string", "enum": list(tables())}
        required.append("table")
    properties |= {option: _property(_option(name, option)) for option in tool.options}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def output_schema(name: str) -> Schema:
    """Derive what a tool gives from the declared answer of its command."""
    envelope = schema_for("envelope", longpole)
    data = envelope["properties"]["data"] if name in ("traces", "table") else _nullable(name)
    rows = {"type": "array", "items": {"type": "object"}}
    evidence = {"evidence": {**rows, "description": "The events that the answer names."}}
    properties = {**envelope["properties"], "data": data, **evidence}
    return {**envelope, "properties": properties, "required": [*envelope["required"], "evidence"]}


def call(name: str, arguments: Mapping[str, Any], folders: Sequence[Path]) -> Answer:
    """Answer a call, at a bounded length."""
    try:
        if name == "traces":
            return _known("longpole.traces/1", data={"traces": traces_in(folders, _MOST_ROWS)})
        _check(name, arguments)
        files = {file: checked(arguments[file], folders) for file in TOOLS[name].files}
        words = _words(name, arguments, files)
    except (click.UsageError, OSError, ValueError) as error:
        return _known("longpole.error/1", error=Problem.of(error).to_dict(), status="error")
    answer = bounded(_told([name, *words, "--json"]), _MOST_ROWS)
    events = events_in(answer["data"], _MOST_EVENTS) if TOOLS[name].has_events else []
    return {**answer, "evidence": _rows_of(files["trace"], events) if events else []}


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the tool does not declare, or that are missing."""
    if name not in TOOLS:
        message = f"{name!r} is not a tool; the tools are {', '.join(TOOLS)}"
        raise click.UsageError(message)
    declared = input_schema(name)
    unknown = [given for given in arguments if given not in declared["properties"]]
    missing = [needed for needed in declared["required"] if needed not in arguments]
    if unknown or missing:
        what = f"unknown argument {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        message = f"{what}; {name} takes {', '.join(declared['properties'])}"
        raise click.UsageError(message)
    if name == "table" and arguments["table"] not in tables():
        message = f"{arguments['table']!r} is not a table; the tables are {', '.join(tables())}"
        raise click.UsageError(message)


def _words(name: str, arguments: Mapping[str, Any], files: Mapping[str, str]) -> list[str]:
    """Write a call as the words of a command line."""
    words = list(files.values())
    if name == "table":
        words += [str(arguments["table"])]
        arguments = {"top": _MOST_ROWS, **arguments}
    for option in TOOLS[name].options:
        if option in arguments:
            words += _given(_option(name, option), arguments[option])
    return words


def _given(option: click.Option, value: Any) -> list[str]:
    [flag, *_] = option.opts
    if option.is_flag:
        return [flag] if value else []
    if option.nargs > 1:
        if not _are_times(value, option.nargs):
            message = f"{flag} takes a list of {option.nargs} integers"
            raise click.UsageError(message)
        return [flag, *map(str, value)]
    return [f"{flag}={each}" for each in (value if option.multiple else [value])]


def _are_times(value: Any, count: int) -> bool:
    is_list = isinstance(value, list) and len(value) == count
    return is_list and all(type(one) is int for one in value)


def _told(words: Sequence[str]) -> Answer:
    """Run a command; give the envelope that it prints."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        run(words)
    answer: Answer = json.loads(told.getvalue())
    return answer


def _rows_of(trace: str, events: Sequence[int]) -> list[Answer]:
    """Give the rows of some events, the columns that prove a figure."""
    where = f"event IN ({', '.join(map(str, events))})"
    told = _told(["table", trace, "events", "--whole", f"--where={where}", "--json"])
    rows = bounded(told, _MOST_ROWS)["data"]["rows"]
    return [{key: row[key] for key in (*_EVENT, *_TIMES)} for row in rows]


def _known(schema: str, **known: Any) -> Answer:
    """Write the envelope of what no command answers."""
    from longpole.report.document import Document

    return {**Document(schema=schema, input={}, **known).envelope(), "evidence": []}


def _command(name: str) -> click.Command:
    command = longpole.get_command(click.Context(longpole), name)
    assert command is not None  # noqa: S101 (it is in `TOOLS`)
    return command


def _option(name: str, option: str) -> click.Option:
    flag = f"--{option.replace('_', '-')}"
    options = (one for one in _command(name).params if isinstance(one, click.Option))
    return next(one for one in options if flag in one.opts)


def _property(option: click.Option) -> Schema:
    """Derive the schema of an option."""
    one: Schema = {"type": _type(option)}
    if option.nargs > 1:
        one = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    elif option.multiple:
        one = {"type": "array", "items": one}
    return {**one, "description": option.help or ""}


def _type(option: click.Option) -> str | list[str]:
    if option.is_flag:
        return "boolean"
    whole = isinstance(option.type, click.types.IntParamType)
    return "integer" if whole else ["string", "number"]


def _nullable(name: str) -> Schema:
    declared = schema_for(name, longpole)
    return {"anyOf": [declared, {"type": "null"}]}
