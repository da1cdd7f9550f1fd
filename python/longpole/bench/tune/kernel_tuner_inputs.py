"""Spaces of the input files of Kernel Tuner (T1)."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tune.space import Space
from longpole.opening import read_text

if TYPE_CHECKING:
    import os

    from longpole.bench.tune.space import Value

__all__ = ["read_t1"]

_RANGE: Final = re.compile(r"(?:list\()?range\(([-\d, ]+)\)\)?")


def read_t1(path: str | os.PathLike[str]) -> Space:
    """Read the parameters and conditions of an input file of Kernel Tuner (T1).

    Raises
    ------
    ValueError
        It declares values in a way that is not known. No code in it is run.
    """
    declared = json.loads(read_text(path))["ConfigurationSpace"]
    parameters = {each["Name"]: _values(each["Values"]) for each in declared["TuningParameters"]}
    conditions = [each["Expression"] for each in declared.get("Conditions", ())]
    return Space(parameters, conditions)


def _values(given: Any) -> list[Value]:
    """Read values that stand as a text of Python, without running it."""
    if isinstance(given, list):
        return given
    if match := _RANGE.fullmatch(given.strip()):
        return list(range(*(int(part) for part in match[1].split(","))))
    try:
        return list(ast.literal_eval(given))
    except (ValueError, SyntaxError, TypeError) as error:
        message = f"the values {given!r} are neither a list nor a range"
        raise ValueError(message) from error
