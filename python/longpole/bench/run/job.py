"""What to run: a command, and the name under which its result is stored."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.run.output import check_format
from longpole.bench.run.policy import LONGEST_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Job", "parse_argv", "read_jobs"]

# Tokens that `shlex` splits off where a shell would interpret them.
SHELL_CHARACTERS: Final = frozenset("();<>|&")

# Valid types of a job's fields, and their names in messages.
FIELDS: Final = {
    "argv": ((str, list), "a list of words or a command"),
    "key": ((str,), "a string"),
    "id": ((str, int), "a string or an integer"),
    "tags": ((dict,), "an object"),
    "format": ((str,), "a string"),
    "timeout_s": ((int, float, type(None)), "a number of seconds"),
    "env": ((dict,), "an object of strings"),
    "folder": ((str, type(None)), "a string"),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One command to measure.

    Parameters
    ----------
    argv
        Program and arguments. A string is split as a shell would split it, but not run in a shell.
    key
        Name of what is measured. Jobs with the same key are repetitions. By default the command
        itself.
    tags
        Additional fields to store with the results.
    format
        How to find results in the output, as for `longpole.bench.extract`: `auto` recognises
        profilers. With `none` no result is expected, and only the exit status counts.
    timeout_s
        Time limit of this job, instead of the runner's.
    env
        Environment variables in addition to those of the runner.
    folder
        Working directory; by default that of the runner when it took its devices.
    """

    argv: tuple[str, ...]
    key: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)
    format: str = "auto"
    timeout_s: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None

    def __post_init__(self) -> None:
        argv = parse_argv(self.argv)
        check_format(self.format)
        _check_environment(self.env, self.folder)
        object.__setattr__(self, "argv", argv)
        object.__setattr__(self, "key", self.key or shlex.join(argv))

    def _repr_html_(self) -> str:
        from longpole.report.blocks import Column, Table
        from longpole.report.html import html

        fields = {"key": self.key, "command": shlex.join(self.argv), **self.to_dict()}
        rows = [[name, str(value)] for name, value in fields.items() if name != "argv"]
        return html([Table([Column("field"), Column("value")], rows)])

    def digest(self) -> str:
        """Return a digest of everything that determines what is run."""
        text = json.dumps(
            [self.argv, dict(self.env), self.folder, self.format, dict(self.tags)],
            sort_keys=True,
            default=str,
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, in the form of `read_jobs`."""
        fields = {
            "key": self.key,
            "argv": list(self.argv),
            "tags": dict(self.tags),
            "format": self.format,
            "timeout_s": self.timeout_s,
            "env": dict(self.env),
            "folder": self.folder,
        }
        return {name: value for name, value in fields.items() if value}


def parse_argv(command: str | Iterable[str]) -> tuple[str, ...]:
    """Split a command; raise if it needs a shell.

    Raises
    ------
    ValueError
        The command is empty, contains a NUL, has an open quote, or needs a shell.
    """
    if isinstance(command, str):
        words = shlex.shlex(command, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        words.commenters = ""
        argv = tuple(words)
        if operator := next((word for word in argv if SHELL_CHARACTERS.issuperset(word)), None):
            message = (
                f"{operator!r} in {command!r} needs a shell\n"
                'hint: quote it, or give ["bash", "-c", "..."] if a shell is meant'
            )
            raise ValueError(message)
    else:
        argv = tuple(str(word) for word in command)
    if not argv or not argv[0]:
        message = "the command is empty"
        raise ValueError(message)
    if any("\0" in word for word in argv):
        message = f"an argument of {argv[0]!r} holds a NUL character"
        raise ValueError(message)
    return argv


def _check_environment(env: Mapping[str, str], folder: str | None) -> None:
    """Raise for variables or a folder that no process can have."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            message = f"{name!r} cannot be a variable of the environment with value {value!r}"
            raise ValueError(message)
    if "\0" in (folder or ""):
        message = "the folder holds a NUL character"
        raise ValueError(message)


def read_jobs(lines: Iterable[str], default_format: str = "auto") -> Iterator[Job]:
    """Read jobs, one JSON object per line; skip blank lines and comments (`#`).

    Parameters
    ----------
    lines
        The lines.
    default_format
        Format of jobs that do not set one.

    Raises
    ------
    ValueError
        A line is not a job. The message has the line number.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            yield _parse_job(json.loads(line), default_format)
        except (ValueError, TypeError) as error:
            message = f"line {number}: {error}"
            raise ValueError(message) from error


def _parse_job(fields: Any, default_format: str) -> Job:
    if isinstance(fields, str | list):
        fields = {"argv": fields}
    if not isinstance(fields, dict) or "argv" not in fields:
        message = 'a job is an object with "argv", a list of words, or a command'
        raise ValueError(message)
    if unknown := sorted(fields.keys() - FIELDS):
        message = f"unknown field {unknown[0]!r}; known: {', '.join(sorted(FIELDS))}"
        raise ValueError(message)
    _check_types(fields)
    key = str(fields.pop("id", ""))
    return Job(**{"key": key, "format": default_format, **fields})


def _check_types(fields: Mapping[str, Any]) -> None:
    """Raise for values that would only fail when the job is run."""
    for name, value in fields.items():
        types, words = FIELDS[name]
        if not isinstance(value, types) or isinstance(value, bool):
            message = f"{name!r} must be {words}, not {json.dumps(value)}"
            raise TypeError(message)
    if not all(isinstance(word, str | int | float) for word in fields["argv"]):
        message = "'argv' must be a list of words or a command"
        raise ValueError(message)
    if not all(isinstance(value, str) for value in fields.get("env", {}).values()):
        message = "'env' must be an object of strings"
        raise ValueError(message)
    timeout_s = fields.get("timeout_s")
    if timeout_s is not None and not 0 < timeout_s <= LONGEST_S:
        message = f"'timeout_s' must be above 0 and at most {LONGEST_S:,}, not {timeout_s}"
        raise ValueError(message)
