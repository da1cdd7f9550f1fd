"""What to run: a command, its limits and retries, and the jobs of a run as a file.

A plan is stored with the results of its run, so that the run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.run.output import check_format
from longpole.errors import ResultsError
from longpole.files.writing import new_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from longpole.devices import Busy

_SCHEMA: Final = "longpole.bench.plan/1"

LONGEST_S: Final = 1_000_000_000
"""The longest time limit; 30 years have the effect of no limit."""

# Tokens that `shlex` splits off where a shell would interpret them.
SHELL_CHARACTERS: Final = frozenset("();<>|&")

# Parts of a command: quoted, escaped, or interpreted by a shell (but not by `shlex`).
_PARTS: Final = re.compile(
    r"""'[^']*'|(?P<double>"(?:\\.|[^"\\])*")|\\[^\n]"""
    r"""|(?P<shell>\A[A-Za-z_]\w*\+?=\S*|\$\w*|`|[*?]|(?<!\S)[~#]\S*|\\?\n)""",
    re.DOTALL,
)
_IN_DOUBLE_QUOTES: Final = re.compile(r"\\[$`\n]|(?<!\\)(?:\\\\)*(?:\$\w*|`)")

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
        operators = (word for word in argv if SHELL_CHARACTERS.issuperset(word))
        if operator := next(operators, None) or _interpreted(command.strip()):
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


def _interpreted(command: str) -> str | None:
    """Return the first part that a shell replaces: a variable, a pattern or an assignment."""
    for found in _PARTS.finditer(command):
        if found["shell"]:
            return found["shell"]
        if found["double"] and (inner := _IN_DOUBLE_QUOTES.search(found["double"])):
            return inner[0]
    return None


def _check_environment(env: Mapping[str, str], folder: str | None) -> None:
    """Raise for variables or a folder that a process cannot have."""
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
        except (ValueError, TypeError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            message = f"line {number}: {why}"
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
    """Raise for values with which the job could only fail."""
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


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits and retries of a runner. All times are seconds on a monotonic clock.

    Parameters
    ----------
    timeout_s
        Time limit of a job without its own; None for no limit.
    total_timeout_s
        Time limit of all jobs together, from the first on.
    grace_s
        Time for a job to clean up between SIGTERM and SIGKILL.
    drain_s
        Time that processes left by a job may run after the job itself has ended.
    retries
        How often a failed job (by exit status or signal) is repeated. Hangs and outputs without
        results are not repeated.
    launch_attempts
        How often to try to start a job if the system refuses for a temporary reason: out of memory
        or processes, a file being written.
    launch_delay_s
        Time to wait between these attempts.
    busy
        What to do if another program uses a device when its first job is about to start: `refuse`
        the device, `wait` until it is idle, or `allow` it.
    lock_clock_mhz
        Clock to lock while jobs run on a device; None leaves it unchanged. The guard of the device
        releases it at its end, even if the runner was killed.
    """

    timeout_s: float | None = 60.0
    total_timeout_s: float | None = None
    grace_s: float = 5.0
    drain_s: float = 0.3
    retries: int = 0
    launch_attempts: int = 3
    launch_delay_s: float = 5.0
    busy: Busy = "refuse"
    lock_clock_mhz: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_s", "total_timeout_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LONGEST_S:
                message = f"{name} must be above 0 and at most {LONGEST_S:,} s, not {value!r}"
                raise ValueError(message)
        if self.busy not in {"refuse", "wait", "allow"}:
            message = f"busy must be refuse, wait or allow, not {self.busy!r}"
            raise ValueError(message)
        for name in ("grace_s", "drain_s", "launch_delay_s"):
            value = getattr(self, name)
            if not 0 <= value <= LONGEST_S:
                message = f"{name} must be 0 to {LONGEST_S:,} s, not {value!r}"
                raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs of a run, and its limits and devices.

    The file contains the environment variables of jobs with their values, which are needed to run
    them again. It is readable only by its owner.
    """

    jobs: tuple[Job, ...]
    given: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan.

        Raises
        ------
        ResultsError
            The file does not exist, or is not a plan.
        """
        try:
            fields = _fields(path)
            jobs = tuple(read_jobs(json.dumps(job) for job in fields["jobs"]))
            return cls(jobs, dict(fields["given"]))
        except FileNotFoundError:
            message = (
                f"{path} is missing; it lists the jobs to run\n"
                "hint: `longpole bench run` writes it next to the results"
            )
            raise ResultsError(message) from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            message = f"{path} does not say what to run: {why}"
            raise ResultsError(message) from error

    def write(self, path: Path, *, force: bool) -> None:
        """Write the plan; with `force` replace an earlier one.

        Raises
        ------
        ResultsError
            A plan exists without `force`, or a file that is not a plan (it is left unchanged), or
            the plan cannot be written.
        """
        check_plan_can_be_written(path, force=force)
        text = json.dumps(
            {
                "schema": _SCHEMA,
                "given": dict(self.given),
                "jobs": [job.to_dict() for job in self.jobs],
            }
        )
        try:
            with new_file(path, force=force, private=True) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror or error}"
            raise ResultsError(message) from error


def plan_path(results: Path) -> Path:
    """Return the plan file of a results file; it need not exist."""
    return results.with_suffix(".plan.json")


def check_plan_can_be_written(path: Path, *, force: bool) -> None:
    """Raise if a file exists, unless it is an earlier plan and `force` is given.

    Raises
    ------
    ResultsError
        A file exists that must not be replaced.
    """
    if not (path.exists() or path.is_symlink()):
        return
    if not _is_plan(path):
        message = (
            f"{path} is not the plan of a run, so it is not replaced\n"
            "hint: choose another name for the results file; its plan has the same name"
        )
        raise ResultsError(message)
    if not force:
        message = (
            f"{path} contains the plan of another run\n"
            "hint: give another name for the results, or replace it with -f"
        )
        raise ResultsError(message)


def _is_plan(path: Path) -> bool:
    try:
        return not path.is_symlink() and _fields(path).get("schema") == _SCHEMA
    except (OSError, ValueError, RecursionError):
        return False


def _fields(path: Path) -> dict[str, Any]:
    fields = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(fields, dict):
        message = "it is not a JSON object"
        raise ValueError(message)  # noqa: TRY004 - handled like invalid JSON
    return fields
