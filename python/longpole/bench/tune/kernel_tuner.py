"""Reads spaces declared for Kernel Tuner, in its input files (T1), without the package."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tune.space import Space
from longpole.files.opening import short_text

if TYPE_CHECKING:
    import os

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
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        text = str(error) if isinstance(error, ValueError) else repr(error)
        text = "it is nested too deeply" if isinstance(error, RecursionError) else text
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
