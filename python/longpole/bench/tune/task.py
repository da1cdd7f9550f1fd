"""What to tune: a space, how a candidate is run, what makes it good, and what is right."""

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
from longpole.bench.tune.kernel_tuner_inputs import read_t1
from longpole.bench.tune.objective import Objective
from longpole.bench.tune.space import Space, label_of
from longpole.bench.tune.triton_source import read_triton
from longpole.opening import read_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.tune.space import Point, Value

__all__ = ["Command", "Function", "Task", "filled", "read_task"]

Made = TypeVar("Made")

_HOLE: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_RESERVED: Final = frozenset({"program", "output"})
_KEYS: Final = frozenset(
    {"parameters", "constraints", "baseline", "candidate", "objective", "reference"}
)


@dataclass(frozen=True, slots=True)
class Command:
    """Candidates that are commands, with `{name}` for the value of a parameter.

    Parameters
    ----------
    command
        What to run: a text, split as a shell would after values are put in, or a list of words.
        `{program}` is the file that `build` makes, `{output}` a file to write results to.
    build
        What makes `{program}`. The file is kept for as long as neither the command, nor the
        sources, nor the compiler change.
    sources
        Files that decide what is built and run.
    timeout_s
        For one run, and for a build; by default the limit of all jobs.
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
        As `MODULE:FUNC`.
    factory
        Whether it makes the function to time.
    clock, cache
        As of `longpole bench time`.
    configs
        An autotuned Triton kernel, as `MODULE:KERNEL`: points are its configurations, and the
        function, which launches it, gets no arguments.
    timeout_s
        For one candidate; by default the limit of all jobs.
    """

    function: str
    factory: bool = False
    clock: str = "cpu"
    cache: str | None = None
    configs: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """All that is to be known to tune.

    Parameters
    ----------
    space
        What can be chosen.
    candidate
        How a point of it is run.
    objective
        What makes it good.
    reference
        What is right; without it, all that ends well is.
    baseline
        The point to compare with; the first of the space by default.
    folder
        Where commands are started, and where files are found.
    origin
        The file that the parameters came from; None where they were declared.
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
        """List the files that the task names: sources, the right numbers, parameters."""
        names = [*(self.candidate.sources if isinstance(self.candidate, Command) else ())]
        if self.origin is not None:
            names += [self.origin, self.origin.partition(":")[0]]
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
    """Put values into a command.

    Examples
    --------
    >>> filled("gcc {flags} -DN={n} {{x}}", {"flags": "-O3 -g", "n": 4})
    ('gcc', '-O3', '-g', '-DN=4', '{{x}}')
    """

    def put(text: str) -> str:
        return _HOLE.sub(lambda hole: str(values.get(hole[1], hole[0])), text)

    if isinstance(template, str):
        return parse_argv(put(template))
    return parse_argv([put(word) for word in template])


def read_task(path: str | os.PathLike[str]) -> Task:
    """Read what to tune from a TOML or JSON file.

    Raises
    ------
    ValueError
        It declares something else. The message names what is wrong.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    try:
        fields = _fields(path)
        if unknown := sorted(fields.keys() - _KEYS):
            message = f"unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
            raise ValueError(message)  # noqa: TRY301 - one place names the file
        return _task(fields, path.parent)
    except (ValueError, TypeError, KeyError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        message = f"{path}: {said}"
        raise ValueError(message) from error


def _fields(path: Path) -> dict[str, Any]:
    text = read_text(path)
    fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    if not isinstance(fields, dict):
        message = "it holds no object"
        raise TypeError(message)
    return fields


def _task(fields: Mapping[str, Any], folder: Path) -> Task:
    space = _space(fields["parameters"], fields.get("constraints", ()), folder)
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
    """Take the parameters as they are declared, or from a file of Kernel Tuner or Triton."""
    if not isinstance(declared, str):
        return Space.parse(declared, constraints)
    name, _, kernel = declared.partition(":")
    if kernel or name.endswith(".py"):
        return read_triton(folder / name, kernel or None)
    found = read_t1(folder / declared)
    return Space(found.parameters, [*found.constraints, *constraints])


def _candidate(fields: dict[str, Any]) -> Command | Function:
    if "function" in fields:
        return _made(Function, "candidate", fields)
    for name in ("command", "build", "sources"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    return _made(Command, "candidate", fields)


def _made(cls: Callable[..., Made], table: str, fields: Mapping[str, Any]) -> Made:
    names = signature(cls).parameters
    if unknown := sorted(fields.keys() - names.keys()):
        known = ", ".join(names)
        message = f"unknown key {unknown[0]!r} in {table}; known: {known}"
        raise ValueError(message)
    return cls(**fields)
