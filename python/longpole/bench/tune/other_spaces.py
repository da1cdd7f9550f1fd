"""Reads spaces declared for other tuners: inputs of Kernel Tuner (T1), and `triton.autotune`.

Neither package is needed: sources are parsed, not run. Configurations of Triton can also be
written.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.targets import LAUNCH_OPTIONS
from longpole.bench.tune.space import Space
from longpole.files.opening import short_text
from longpole.files.writing import new_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from longpole.bench.tune.space import Point

__all__ = ["read_t1", "read_triton", "triton_label", "write_triton"]

_MOST_BYTES_OF_T1: Final = 10_000_000
_SHOWN_CHARACTERS: Final = 100
_RANGE: Final = re.compile(r"(?:list\()?range\(([-\d, ]+)\)\)?")


def read_t1(path: str | os.PathLike[str]) -> Space:
    """Read the parameters and conditions of an input file of Kernel Tuner (T1).

    Raises
    ------
    ValueError
        It is not such a file, or declares values in an unknown form. No code in it is run.
    """
    try:
        declared = json.loads(short_text(path, most_bytes=_MOST_BYTES_OF_T1))["ConfigurationSpace"]
        named = declared["TuningParameters"]
        parameters = {each["Name"]: _values(each["Values"]) for each in named}
        conditions = [each["Expression"] for each in declared.get("Conditions", ())]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        text = "it is nested too deeply" if isinstance(error, RecursionError) else repr(error)
        message = f"{path} is not an input file of Kernel Tuner (T1): {text}"
        raise ValueError(message) from error
    wrong = [each for each in (*parameters, *conditions) if not isinstance(each, str)]
    if wrong:
        message = f"{path}: a name or a condition is not a text: {str(wrong[0])[:40]!r}"
        raise ValueError(message)
    return Space.parse(parameters, conditions)


def _values(given: Any) -> Any:
    """Parse values written as Python literals, without running any code."""
    if not isinstance(given, str):
        return given
    if match := _RANGE.fullmatch(given.strip()):
        return _range(*(int(part) for part in match[1].split(",")))
    try:
        return list(ast.literal_eval(given))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        shown = given if len(given) <= _SHOWN_CHARACTERS else f"{given[:_SHOWN_CHARACTERS]}…"
        message = f"the values {shown!r} are neither a list nor a range"
        raise ValueError(message) from error


def _range(start: int, stop: int | None = None, step: int = 1) -> dict[str, list[int]]:
    """Convert a Python range, which excludes its end, to the form of a task."""
    first, end = (0, start) if stop is None else (start, stop)
    return {"range": [first, end - (1 if step > 0 else -1), step]}


_INDENT: Final = 4
_MOST_BYTES: Final = 1_000_000


def triton_label(point: Point) -> str:
    """Return the name of a configuration, as in `longpole bench time --configs`.

    Examples
    --------
    >>> triton_label({"BLOCK": 128, "num_warps": 4})
    'BLOCK=128,num_warps=4'
    """
    return ",".join(f"{name}={value}" for name, value in point.items())


def read_triton(path: str | os.PathLike[str], kernel: str | None = None) -> Space:
    """Read the configurations of a kernel from its source, or from a JSON list of them.

    Parameters
    ----------
    path
        A Python file, or a `.json` file with `[{"kwargs": {...}, "num_warps": 4}, ...]`.
    kernel
        The name of the kernel in a Python file; the only autotuned one by default.

    Raises
    ------
    ValueError
        The kernel does not exist, or its configurations are not a literal list.
    """
    text = short_text(path, most_bytes=_MOST_BYTES)
    try:
        if Path(path).suffix == ".json":
            return Space.of_points(_point(each["kwargs"], each) for each in json.loads(text))
        listed = _configs(text, kernel)
        return Space.of_points(_parsed(each) for each in listed.elts)
    except (KeyError, TypeError, AttributeError) as error:
        message = f"{path} holds no configurations of Triton: {error!r}"
        raise ValueError(message) from error
    except (SyntaxError, RecursionError, MemoryError) as error:
        message = f"{path} cannot be parsed: {str(error) or 'it takes too much memory'}"
        raise ValueError(message) from error


def write_triton(
    path: str | os.PathLike[str],
    points: Iterable[Point],
    *,
    source: str | os.PathLike[str] | None = None,
    kernel: str | None = None,
    force: bool = False,
) -> None:
    """Write configurations: into the list of the source, or as JSON without a source.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, or it is the source.
    ValueError
        As for `read_triton`.
    """
    if source is None:
        text = json.dumps([_plain(point) for point in points], indent=1) + "\n"
    else:
        text = _replaced(short_text(source, most_bytes=_MOST_BYTES), kernel, points)
    inputs = [] if source is None else [Path(source)]
    with new_file(Path(path), force=force, inputs=inputs) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _configs(text: str, kernel: str | None) -> ast.List:
    """Return the list of configurations of a kernel."""
    found = [
        (function.name, call)
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef) and kernel in {None, function.name}
        for call in function.decorator_list
        if isinstance(call, ast.Call) and _name_of(call) == "autotune"
    ]
    if len(found) != 1:
        names = ", ".join(name for name, _ in found) or "none"
        message = f"one kernel under triton.autotune is needed; found: {names}"
        raise ValueError(message)
    call = found[0][1]
    given = {each.arg: each.value for each in call.keywords}
    listed = given.get("configs", call.args[0] if call.args else None)
    if not isinstance(listed, ast.List) or not listed.elts:
        message = f"the configurations of {found[0][0]} are not a literal list in the source"
        raise ValueError(message)
    return listed


def _parsed(config: ast.expr) -> Point:
    if not isinstance(config, ast.Call) or _name_of(config) != "Config":
        message = f"{ast.unparse(config)!r} is not a triton.Config"
        raise ValueError(message)
    named = {each.arg: each.value for each in config.keywords if each.arg}
    kwargs = named.pop("kwargs", config.args[0] if config.args else ast.Dict([], []))
    try:
        options: dict[str, Any] = {
            name: ast.literal_eval(named[name]) for name in LAUNCH_OPTIONS if name in named
        }
        return _point(ast.literal_eval(kwargs), options)
    except ValueError as error:
        message = f"{ast.unparse(config)!r} is not made of plain values"
        raise ValueError(message) from error


def _point(kwargs: Mapping[str, Any], options: Mapping[str, Any]) -> Point:
    values = {name: options[name] for name in LAUNCH_OPTIONS if options.get(name) is not None}
    return {**kwargs, **values}


def _plain(point: Point) -> dict[str, Any]:
    kwargs = {name: value for name, value in point.items() if name not in LAUNCH_OPTIONS}
    return {
        "kwargs": kwargs,
        **{name: point[name] for name in LAUNCH_OPTIONS if name in point},
    }


def _replaced(text: str, kernel: str | None, points: Iterable[Point]) -> str:
    """Replace the list by other configurations."""
    listed = _configs(text, kernel)
    first = listed.elts[0]
    made_by = ast.unparse(first.func) if isinstance(first, ast.Call) else "triton.Config"
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: listed.lineno - 1])) + listed.col_offset
    end = sum(map(len, lines[: (listed.end_lineno or 0) - 1])) + (listed.end_col_offset or 0)
    margin = " " * (len(lines[listed.lineno - 1]) - len(lines[listed.lineno - 1].lstrip()))
    rows = "".join(f"{margin}{' ' * _INDENT}{row},\n" for row in _rows(made_by, points))
    content = text.encode()
    return (content[:start] + f"[\n{rows}{margin}]".encode() + content[end:]).decode()


def _rows(made_by: str, points: Iterable[Point]) -> Iterator[str]:
    for point in points:
        plain = _plain(point)
        kwargs = plain.pop("kwargs")
        options = "".join(f", {name}={value!r}" for name, value in plain.items())
        yield f"{made_by}({kwargs!r}{options})"


def _name_of(call: ast.Call) -> str:
    """Return the last part of a called function's name."""
    return ast.unparse(call.func).rpartition(".")[2]
