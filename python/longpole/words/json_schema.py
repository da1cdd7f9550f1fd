"""Derives the JSON Schema of an answer from its declaration."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from longpole.words.data import computed, names_of

Schema = dict[str, Any]

_TYPES: Final = {
    NoneType: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    Path: "string",
}


def schema_of(declared: Any) -> Schema:
    """Derive the JSON Schema of the values that `plain` returns for a type.

    Raises
    ------
    TypeError
        Answers cannot contain the type.

    Examples
    --------
    >>> schema_of(tuple[int, ...] | None)
    {'type': ['array', 'null'], 'items': {'type': 'integer'}}
    """
    origin, parts = get_origin(declared), get_args(declared)
    if declared is Any:
        return {}
    if origin is Annotated:
        return _array(parts[1])
    if origin is NotRequired:
        return schema_of(parts[0])
    if origin in (Union, UnionType):
        return _any_of(parts)
    if origin is Literal:
        return _values(parts)
    return _of_class(origin or declared, parts)


def _of_class(cls: Any, parts: tuple[Any, ...]) -> Schema:
    if cls in _TYPES:
        return {"type": _TYPES[cls]}
    if hasattr(cls, "__data__"):
        declared = get_type_hints(cls.__data__, include_extras=True)["return"]
        return schema_of(declared[parts] if parts else declared)
    if is_dataclass(cls) or is_typeddict(cls):
        return _object(cls)
    if issubclass(cls, Enum) or hasattr(cls, "__values__"):
        found = cls.__values__() if hasattr(cls, "__values__") else [each.value for each in cls]
        return _values(found)
    if issubclass(cls, Mapping):
        return {"type": "object", "additionalProperties": schema_of(parts[1] if parts else Any)}
    if issubclass(cls, Sequence) and parts:
        return _tuple(parts) if cls is tuple and Ellipsis not in parts else _array(parts[0])
    message = f"no JSON Schema for {cls!r}"
    raise TypeError(message)


def _array(element: Any) -> Schema:
    return {"type": "array", "items": schema_of(element)}


def _tuple(parts: tuple[Any, ...]) -> Schema:
    length = len(parts)
    return {"type": "array", "items": _any_of(parts), "minItems": length, "maxItems": length}


def _values(values: Sequence[Any]) -> Schema:
    types = sorted({_TYPES[type(value)] for value in values})
    return {"type": types[0] if len(types) == 1 else types, "enum": list(values)}


def _object(cls: Any) -> Schema:
    types = types_of(cls)
    texts = _descriptions(cls)
    return {
        "type": "object",
        "properties": {
            name: schema_of(declared) | ({"description": texts[name]} if name in texts else {})
            for name, declared in types.items()
        },
        "required": [name for name, it in types.items() if get_origin(it) is not NotRequired],
        "additionalProperties": False,
    }


def _any_of(alternatives: Sequence[Any]) -> Schema:
    """Combine alternatives; plain types become one list, and a single other type may be null."""
    schemas: list[Schema] = []
    for schema in map(schema_of, alternatives):
        schemas += [schema] if schema not in schemas else []
    if len(schemas) == 1:
        return schemas[0]
    if all(set(each) == {"type"} for each in schemas):
        return {"type": sorted(each["type"] for each in schemas)}
    others = [each for each in schemas if each != {"type": "null"}]
    if len(others) > 1 or "anyOf" in others[0]:
        return {"anyOf": schemas}
    return _or_null(others[0])


def _or_null(schema: Schema) -> Schema:
    if not schema:
        return {}
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **values}


def types_of(cls: Any) -> dict[str, Any]:
    """Return the declared type of each key of an object, in order."""
    declared = get_type_hints(cls, include_extras=True)
    return {name: declared.get(name) or _type_of_computed(cls, name) for name in names_of(cls)}


def _type_of_computed(cls: type, name: str) -> Any:
    found = inspect.getattr_static(cls, name)
    assert isinstance(found, computed)  # noqa: S101 - `names_of` returns nothing else
    return get_type_hints(found.ask, include_extras=True)["return"]


def _descriptions(cls: type) -> dict[str, str]:
    """Read the docstrings of a class's fields, which Python does not keep."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        found |= _own_descriptions(base)
    return found


def _own_descriptions(cls: type) -> dict[str, str]:
    try:
        [node] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError):
        # A base class such as `dict` has no source.
        return {}
    assert isinstance(node, ast.ClassDef)  # noqa: S101 - the source of a class is a class definition
    found = {}
    for field, below in pairwise(node.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            found[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(below.value))
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    return found | {it.name: text for it in functions if (text := ast.get_docstring(it))}
