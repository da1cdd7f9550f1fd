"""A tuning task: a space, how to run a candidate, the objective, and the correct result."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from longpole.bench.reference import Reference
from longpole.bench.run.job import parse_argv
from longpole.bench.tune.kernel_tuner import read_t1
from longpole.bench.tune.objective import Objective
from longpole.bench.tune.space import Space, TaskError, label_of
from longpole.files.opening import short_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.tune.space import Point, Value

Made = TypeVar("Made")

_HOLE: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_RESERVED: Final = frozenset({"program", "output"})
_MOST_BYTES: Final = 10_000_000
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "command": (str, tuple),
    "build": (str, tuple),
    "sources": (tuple,),
    "timeout_s": (int, float),
    "relative": (int, float),
    "absolute": (int, float),
    "factory": (bool,),
}
"""Valid types of the keys of a task; all others are strings."""
_WORDS: Final = {
    str: "a string",
    tuple: "a list of strings",
    float: "a number",
    bool: "true or false",
}
_KEYS: Final = frozenset(
    {"parameters", "constraints", "baseline", "candidate", "objective", "reference"}
)


@dataclass(frozen=True, slots=True)
class Command:
    """Candidates that are commands, with `{name}` for the value of a parameter.

    Parameters
    ----------
    command
        The command: a string, split as a shell would after values are inserted, or a list of words.
        `{program}` is the file that `build` creates, `{output}` a file to write results to.
    build
        The command that creates `{program}`. The file is kept until the command, the sources or the
        compiler change.
    sources
        Files that determine what is built and run.
    timeout_s
        Time limit of a run and of a build; by default the limit of all jobs.
    """

    command: str | tuple[str, ...]
    build: str | tuple[str, ...] | None = None
    sources: tuple[str, ...] = ()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """Candidates that are calls of a Python function with the parameters as arguments.

    Parameters
    ----------
    function
        The function, as `MODULE:FUNC`.
    factory
        Whether it returns the function to time.
    clock, cache
        As for `longpole bench time`.
    configs
        An autotuned Triton kernel, as `MODULE:KERNEL`: points are its configurations, and the
        function, which launches it, has no arguments.
    timeout_s
        Time limit of one candidate; by default the limit of all jobs.
    """

    function: str
    factory: bool = False
    clock: str = "cpu"
    cache: str | None = None
    configs: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A complete tuning task.

    Parameters
    ----------
    space
        The search space.
    candidate
        How to run a point.
    objective
        The quantity to optimise.
    reference
        The correct result; without it, every successful run counts as correct.
    baseline
        The point to compare with; the first of the space by default.
    folder
        Working directory of commands, and folder of files.
    origin
        The file with the parameters; None if they were declared.
    """

    space: Space
    candidate: Command | Function
    objective: Objective = field(default_factory=Objective)
    reference: Reference | None = None
    baseline: Point | None = None
    folder: Path = field(default_factory=Path)
    origin: str | None = None

    def __post_init__(self) -> None:
        if self.baseline is not None and not self.space.allows(self.baseline):
            message = f"the baseline {label_of(self.baseline)!r} is not a point of the space"
            raise ValueError(message)
        if isinstance(self.candidate, Command):
            self._check_holes(self.candidate)

    @property
    def start(self) -> Point:
        """The point to compare with."""
        return self.space.first() if self.baseline is None else self.space.own(self.baseline)

    def files(self) -> list[Path]:
        """List the files of the task: sources, the correct numbers, parameters."""
        names = [*(self.candidate.sources if isinstance(self.candidate, Command) else ())]
        if self.origin is not None:
            names.append(self.origin)
        if self.reference is not None and self.reference.file is not None:
            names.append(self.reference.file)
        return [self.folder / name for name in names]

    def _check_holes(self, candidate: Command) -> None:
        if taken := sorted(_RESERVED & self.space.parameters.keys()):
            message = f"a parameter cannot be called {taken[0]!r}: commands use that name"
            raise ValueError(message)
        known = {*self.space.parameters, *_RESERVED}
        for template in filter(None, (candidate.command, candidate.build)):
            words = [template] if isinstance(template, str) else template
            for hole in (found for word in words for found in _HOLE.findall(word)):
                if hole not in known:
                    message = f"{{{hole}}} in {template!r} is not a parameter"
                    raise ValueError(message)
        if candidate.build is None and "{program}" in str(candidate.command):
            message = "{program} needs a build command"
            raise ValueError(message)


def filled(template: str | Sequence[str], values: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the words of a command with values inserted.

    Raises
    ------
    TaskError
        The command is empty, or needs a shell.

    Examples
    --------
    >>> filled("gcc {flags} -DN={n} {{x}}", {"flags": "-O3 -g", "n": 4})
    ('gcc', '-O3', '-g', '-DN=4', '{{x}}')
    """

    def put(text: str) -> str:
        return _HOLE.sub(lambda hole: str(values.get(hole[1], hole[0])), text)

    words = put(template) if isinstance(template, str) else [put(word) for word in template]
    try:
        return parse_argv(words)
    except ValueError as error:
        problem, _, hint = str(error).partition("\nhint: ")
        message = f"{problem}; {hint}" if hint else problem
        raise TaskError(message) from error


def read_task(path: str | os.PathLike[str]) -> Task:
    """Read a tuning task from a TOML or JSON file.

    Raises
    ------
    ValueError
        The file declares something else; the message says what is wrong.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    try:
        fields = _fields(path)
        if unknown := sorted(fields.keys() - _KEYS):
            message = f"unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
            raise ValueError(message)  # noqa: TRY301 - one place adds the name of the file
        return _task(fields, path.parent)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        said = {KeyError: f"{error} is missing", RecursionError: "it is nested too deeply"}
        message = f"{path}: {said.get(type(error), error)}"
        raise ValueError(message) from error


def _fields(path: Path) -> dict[str, Any]:
    text = short_text(path, most_bytes=_MOST_BYTES)
    fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    if not isinstance(fields, dict):
        message = "it is not an object with keys"
        raise TypeError(message)
    return fields


def _task(fields: Mapping[str, Any], folder: Path) -> Task:
    constraints = fields.get("constraints", [])
    if not _is_list_of_texts(constraints):
        message = "constraints must be a list of strings"
        raise TypeError(message)
    for name in ("candidate", "objective", "reference", "baseline"):
        if name in fields and not isinstance(fields[name], dict):
            message = f"{name} must be a table, not {fields[name]!r}"
            raise TypeError(message)
    space = _space(fields["parameters"], constraints, folder)
    reference = fields.get("reference")
    return Task(
        space=space,
        candidate=_candidate(dict(fields["candidate"])),
        objective=_made(Objective, "objective", fields.get("objective", {})),
        reference=None if reference is None else _made(Reference, "reference", reference),
        baseline=fields.get("baseline"),
        folder=folder,
        origin=fields["parameters"] if isinstance(fields["parameters"], str) else None,
    )


def _space(declared: Any, constraints: Sequence[str], folder: Path) -> Space:
    """Return the declared space, or the one in an input file of Kernel Tuner."""
    if isinstance(declared, dict):
        return Space.parse(declared, constraints)
    if not isinstance(declared, str):
        message = f"parameters must be a table or the name of a file, not {declared!r}"
        raise TypeError(message)
    found = read_t1(folder / declared)
    return Space(found.parameters, [*found.constraints, *constraints])


def _candidate(fields: dict[str, Any]) -> Command | Function:
    if "function" in fields:
        return _made(Function, "candidate", fields)
    for name in ("command", "build", "sources"):
        if _is_list_of_texts(fields.get(name)):
            fields[name] = tuple(fields[name])
    return _made(Command, "candidate", fields)


def _made(cls: Callable[..., Made], table: str, fields: Mapping[str, Any]) -> Made:
    names = signature(cls).parameters
    if unknown := sorted(fields.keys() - names.keys()):
        known = ", ".join(names)
        message = f"unknown key {unknown[0]!r} in {table}; known: {known}"
        raise ValueError(message)
    for name, value in fields.items():
        allowed = _TYPES.get(name, (str,))
        is_allowed = isinstance(value, allowed) and (bool in allowed or not isinstance(value, bool))
        if not is_allowed:
            text = " or ".join(_WORDS[each] for each in allowed if each in _WORDS)
            message = f"{name} in {table} must be {text}, not {value!r}"
            raise TypeError(message)
    return cls(**fields)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
