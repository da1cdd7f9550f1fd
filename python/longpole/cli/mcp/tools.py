"""The tools: read-only commands, with the options that an agent may set.

A tool runs its command in the calling process, so that an agent gets the same answer as a person.
The server calls it in a separate process for each question (`worker`).
"""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import Problem
from longpole.cli.answer.table import tables
from longpole.cli.mcp.arguments import check_arguments, checked, traces_in
from longpole.cli.mcp.bounds import bounded, events_in
from longpole.cli.program import longpole, run
from longpole.cli.schema import schema_for
from longpole.tables.catalogue import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longpole.words.json_schema import Schema

Answer = dict[str, Any]

_CHOICE: Final = ("step", "window", "step_name")
_WINDOW: Final = (*_CHOICE, "step_time")
_FILES: Final = ("capture_trace",)
"""Options that name files."""
_MOST_ROWS: Final = 50
_MOST_EVENTS: Final = 20
_MOST_VALUES: Final = 100
_LARGEST: Final = 2**63 - 1
_EVENT: Final = ("event", "kind", "name", "process", "thread", "device", "stream")
_TIMES: Final = ("start_ns", "duration_ns")

_NO_EVIDENCE: Final[Answer] = {
    "code": "no_evidence",
    "count": 1,
    "message": "the trace could not be read again for the events that the answer names",
    "effect": "the events of the answer could not be read again; the file may have been replaced",
    "hint": "ask again",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A command as a tool: its files, its options, and whether its answer contains events."""

    files: Mapping[str, str]
    options: tuple[str, ...] = ()
    has_events: bool = True


_TRACE: Final = {"trace": "Path of the trace"}
TOOLS: Final[Mapping[str, Tool]] = {
    "traces": Tool({}),
    "summary": Tool(_TRACE, (*_WINDOW, "top", "capture_trace")),
    "path": Tool(_TRACE, (*_WINDOW, "in_order", "top")),
    "whatif": Tool(_TRACE, (*_WINDOW, "scale", "drop", "remove_wait", "remedy", "capture_trace")),
    "table": Tool(_TRACE, (*_CHOICE, "where", "sort", "top", "capture_trace")),
    "check": Tool(_TRACE, has_events=False),
    "diff": Tool(
        {"base": "Trace, or folder of traces, before", "new": "The same after"},
        ("gate", "same_program", "window", "step_name", "top"),
        has_events=False,
    ),
    "ranks": Tool(
        {"traces": "Folder with the traces of all ranks"}, ("step", "window"), has_events=False
    ),
}
"""The tools by command name; `traces` lists the files."""


def purpose(name: str) -> str:
    """Return the description of a tool, one sentence."""
    if name == "traces":
        return "List the files that can be asked about, with their sizes in bytes."
    text = _command(name).get_short_help_str(limit=200)
    return f"{text} Columns of tables: see `longpole schema`." if name == "table" else text


def input_schema(name: str) -> Schema:
    """Derive the arguments of a tool from the options of its command."""
    tool = TOOLS[name]
    properties: Answer = {
        file: {"type": "string", "description": text} for file, text in tool.files.items()
    }
    required = list(properties)
    if name == "table":
        properties["table"] = {"type": "string", "enum": list(tables())}
        required.append("table")
        properties["by"] = {"type": "string", "description": _kinds()}
    properties |= {option: _property(_option(name, option)) for option in tool.options}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _kinds() -> str:
    """Describe the argument `by`."""
    listed = {name: words for name in tables() if (words := words_of(name))}
    told = "; ".join(f"{name}: {', '.join(words)}" for name, words in listed.items())
    return f"Kind of rows of the table, by default the first of {told}."


def output_schema(name: str) -> Schema:
    """Derive the output of a tool from the declared answer of its command."""
    envelope = schema_for("envelope", longpole)
    data = envelope["properties"]["data"] if name in ("traces", "table") else _nullable(name)
    rows = {"type": "array", "items": {"type": "object"}}
    evidence = {"evidence": {**rows, "description": "The events that the answer names."}}
    properties = {**envelope["properties"], "data": data, **evidence}
    return {**envelope, "properties": properties, "required": [*envelope["required"], "evidence"]}


def call(name: str, arguments: Mapping[str, Any], folders: Sequence[Path]) -> Answer:
    """Answer a call, within the maximum length."""
    try:
        _check(name, arguments)
        if name == "traces":
            return _listed(folders)
        files = {file: checked(arguments[file], folders) for file in TOOLS[name].files}
        named = {it: arguments[it] for it in _FILES if it in arguments}
        paths = {it: [checked(path, folders) for path in named[it]] for it in named}
        words = _words(name, {**arguments, **paths}, files)
    except (click.UsageError, OSError, ValueError) as error:
        return bounded(_error(Problem.of(error)), _MOST_ROWS)
    answer = bounded(_told([name, *words, "--json"]), _MOST_ROWS)
    events = events_in(answer["data"], _MOST_EVENTS) if TOOLS[name].has_events else []
    evidence = _rows_of(files["trace"], events) if events else []
    if evidence is None:
        answer["warnings"] = [*answer["warnings"], _NO_EVIDENCE]
    return bounded({**answer, "evidence": evidence or []}, _MOST_ROWS)


def refused(code: str, message: str, hint: str) -> Answer:
    """Return the envelope of a question without an answer."""
    return _error(Problem(code, message, exit_codes.UNREADABLE, hint))


def _error(problem: Problem) -> Answer:
    return _known("longpole.error/1", error=problem.to_dict(), status="error")


def _listed(folders: Sequence[Path]) -> Answer:
    rows, total = traces_in(folders, _MOST_ROWS)
    cut = {"traces": {"shown": len(rows), "total": total}} if total > len(rows) else None
    return bounded(_known("longpole.traces/1", data={"traces": rows}, truncated=cut), _MOST_ROWS)


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise for an unknown tool, and for arguments that its schema does not allow."""
    if name not in TOOLS:
        message = f"{name!r} is not a tool; the tools are {', '.join(TOOLS)}"
        raise click.UsageError(message)
    check_arguments(name, arguments, input_schema(name))


def _words(name: str, arguments: Mapping[str, Any], files: Mapping[str, str]) -> list[str]:
    """Convert a tool call to the arguments of a command line."""
    words = list(files.values())
    if name == "table":
        words += [
            arguments["table"],
            *(f"--by={arguments[key]}" for key in ["by"] if key in arguments),
        ]
        arguments = {"top": _MOST_ROWS, **arguments}
    for option in TOOLS[name].options:
        if option in arguments:
            words += _given(_option(name, option), arguments[option])
    return words


def _given(option: click.Option, value: Any) -> list[str]:
    [flag, *_] = option.opts
    if option.is_flag:
        return [flag] if value else []
    return [f"{flag}={each}" for each in (value if option.multiple else [value])]


def _told(words: Sequence[str]) -> Answer:
    """Run a command; return the envelope that it prints."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        run(words)
    answers = json.loads(told.getvalue())
    # A MindSpore profile may have an answer about its timeline, then one about its tables.
    answer: Answer = answers[0] if isinstance(answers, list) else answers
    return answer


def _rows_of(trace: str, events: Sequence[int]) -> list[Answer] | None:
    """Return the rows of some events, with the columns that support an answer.

    None if the trace could not be read again, for example because it was replaced.
    """
    where = f"event IN ({', '.join(map(str, events))})"
    told = _told(["table", trace, "events", "--window=all", f"--where={where}", "--json"])
    data = bounded(told, _MOST_ROWS)["data"]
    if data is None:
        return None
    rows = data["rows"]
    return [{key: row[key] for key in (*_EVENT, *_TIMES)} for row in rows]


def _known(schema: str, **known: Any) -> Answer:
    """Return the envelope for answers without a command."""
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
    if one["type"] == "integer":
        least = getattr(option.type, "min", None)
        one |= {"minimum": -_LARGEST if least is None else least, "maximum": _LARGEST}
    if option.multiple:
        one = {"type": "array", "items": one, "maxItems": _MOST_VALUES}
    return {**one, "description": option.help or ""}


def _type(option: click.Option) -> str | list[str]:
    if option.is_flag:
        return "boolean"
    if isinstance(option.type, click.Path):
        return "string"
    whole = isinstance(option.type, click.types.IntParamType)
    return "integer" if whole else ["string", "number"]


def _nullable(name: str) -> Schema:
    # The summary of a memory timeline or snapshot is the table `memory`.
    others = {"summary": ("table memory", "mindspore"), "check": ("mindspore",)}
    names = (name, *others.get(name, ()))
    return {"anyOf": [*(schema_for(each, longpole) for each in names), {"type": "null"}]}
