"""Checks the arguments of a call: their types, and that files are in the folders of the user."""

from __future__ import annotations

import errno
import math
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.files.opening import names_in, open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.words.json_schema import Schema

_LONGEST: Final = 10_000
_TYPES: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "a list",
}


def check_arguments(tool: str, arguments: Mapping[str, Any], schema: Schema) -> None:
    """Raise if arguments do not match the schema of a tool.

    Raises
    ------
    click.UsageError
        An argument is unknown, missing, or of the wrong type; the message is one sentence.

    Examples
    --------
    >>> schema = {"properties": {"top": {"type": "integer"}}, "required": []}
    >>> check_arguments("summary", {"top": 3}, schema)
    >>> check_arguments("summary", {"top": "3"}, schema)
    Traceback (most recent call last):
    click.exceptions.UsageError: 'top' must be an integer, not "3"
    """
    declared = schema["properties"]
    unknown = [name for name in arguments if name not in declared]
    missing = [name for name in schema["required"] if name not in arguments]
    if unknown or missing:
        what = f"unknown argument {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        takes = f"takes {', '.join(declared)}" if declared else "takes no arguments"
        message = f"{what}; {tool} {takes}"
        raise click.UsageError(message)
    for name, value in arguments.items():
        problem = _problem(value, declared[name])
        if problem:
            message = f"{name!r} must be {problem}, not {_shown(value)}"
            raise click.UsageError(message)


def _problem(value: Any, schema: Schema) -> str | None:
    """Return what a value must be, or None if it is valid."""
    types = _types(schema)
    if not any(_is_of(value, each) for each in types):
        return _expected(schema, types)
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"shorter than {_LONGEST:,} characters"
    if isinstance(value, str) and "\0" in value:
        return "a string without NUL characters"
    if "enum" in schema and value not in schema["enum"]:
        return f"one of {', '.join(schema['enum'])}"
    if isinstance(value, list):
        return _problem_of_list(value, schema)
    return _problem_of_number(value, schema) if isinstance(value, int | float) else None


def _problem_of_number(value: float, schema: Schema) -> str | None:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if not math.isfinite(value):
        return "a finite number"
    if least <= value <= most:
        return None
    return f"from {least} to {most}" if most < math.inf else f"at least {least}"


def _problem_of_list(value: list[Any], schema: Schema) -> str | None:
    if not schema.get("minItems", 0) <= len(value) <= schema["maxItems"]:
        return _expected(schema, ["array"])
    found = next(filter(None, (_problem(each, schema["items"]) for each in value)), None)
    return found and f"a list in which each element is {found}"


def _expected(schema: Schema, types: list[str]) -> str:
    if types != ["array"]:
        return " or ".join(_TYPES[each] for each in types)
    least, most = schema.get("minItems", 0), schema["maxItems"]
    of = " or ".join(_TYPES[each] for each in _types(schema["items"]))
    count = f"{most}" if least == most else f"at most {most}"
    return f"a list of {count} elements, each {of}"


def _types(schema: Schema) -> list[str]:
    return schema["type"] if isinstance(schema["type"], list) else [schema["type"]]


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "number": (int, float),
        "integer": (int,),
        "boolean": (),
        "array": (list,),
    }
    return isinstance(value, kinds[kind])


def _shown(value: Any) -> str:
    """Return the beginning of a value as JSON."""
    import json

    most = 60
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else f"{text[:most]}…"


def checked(path: str, folders: Sequence[Path]) -> str:
    """Return the real path of a file or folder.

    A relative path is searched in each folder.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    PermissionError
        The file is outside the folders, or a link below it leads outside.
    """
    roots = [_real(folder) for folder in folders]
    named = [_real(root / path) for root in roots]
    inside = [one for one in named if _is_in(one, roots)]
    if not inside:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    found = next((one for one in inside if one.exists()), None)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if found.is_dir() and not all(_is_in(_real(one), roots) for one in _below(found, roots)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return str(found)


def traces_in(folders: Sequence[Path], most: int) -> tuple[list[dict[str, Any]], int]:
    """List the regular files of the folders, largest first, and return their total number."""
    roots = [_real(folder) for folder in folders]
    found = {_real(path) for root in roots for path in _below(root, roots)}
    sized = [(size, str(path)) for path in found if (size := _size(path)) is not None]
    rows = [{"path": path, "bytes": size} for size, path in sorted(sized, reverse=True)[:most]]
    return rows, len(sized)


def _below(folder: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield all paths in a folder, following links that stay within the roots."""
    seen, waiting = {folder}, [folder]
    while waiting:
        parent = waiting.pop()
        for name in _names(parent):
            path = parent / name
            yield path
            real = _real(path)
            if real not in seen and _is_in(real, roots) and real.is_dir():
                seen.add(real)
                waiting.append(real)


def _real(path: Path) -> Path:
    """Resolve a path; unlike `Path.resolve`, also one with a link to itself."""
    return Path(os.path.realpath(path))


def _names(folder: Path) -> list[str]:
    try:
        return names_in(folder)
    except OSError:  # no permission, or replaced since
        return []


def _size(path: Path) -> int | None:
    """Return the size of a regular file; None for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with open_file(path, is_named=False) as file:
            return os.fstat(file.fileno()).st_size
    except OSError:
        return None


def _is_in(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
