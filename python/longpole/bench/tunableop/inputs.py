"""The arguments of an operator, as recorded in a trace or an execution trace."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

__all__ = ["Argument", "recorded"]


class Argument(NamedTuple):
    """An argument of an operator.

    Parameters
    ----------
    shape
        The sizes; None if the argument is not a tensor.
    strides
        None if not recorded.
    dtype
        The type in torch's names, such as `c10::Half`; empty for None.
    value
        A number, flag or list as a string: `15`, `True`, `[0, 0]`; None if not recorded.
    """

    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    dtype: str
    value: str | None = None


def recorded(
    shapes: str | None, strides: str | None, types: str | None, values: str | None = None
) -> list[Argument]:
    """Parse arguments from the JSON lists of a profiler; empty if not recorded.

    Examples
    --------
    >>> recorded("[[2, 3], []]", "[[3, 1], []]", '["c10::Half", "Scalar"]', '["", "15"]')[0]
    Argument(shape=(2, 3), strides=(3, 1), dtype='c10::Half', value='')
    """
    sizes, dtypes = _list(shapes), _list(types)
    if len(sizes) != len(dtypes):
        return []
    steps, texts = (_padded(_list(text), len(sizes)) for text in (strides, values))
    return [
        Argument(_sizes(size), _strides(size, step), _dtype(str(dtype)), _text(text))
        for size, step, dtype, text in zip(sizes, steps, dtypes, texts, strict=True)
    ]


def _list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _padded(values: list[Any], length: int) -> list[Any]:
    """Return the values, or a list of None if the length differs."""
    return values if len(values) == length else [None] * length


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(size, int) for size in value)


def _sizes(value: Any) -> tuple[int, ...] | None:
    return tuple(value) if _is_sizes(value) else None


def _strides(shape: Any, value: Any) -> tuple[int, ...] | None:
    is_known = _is_sizes(shape) and _is_sizes(value) and len(value) == len(shape)
    return tuple(value) if is_known else None


def _dtype(name: str) -> str:
    """Parse the type of a tensor in the form of execution traces, `Tensor(float)`."""
    if name in {"None", "Tensor(nullptr (uninitialized))"}:
        return ""
    return name.removeprefix("Tensor(").removesuffix(")") if name.startswith("Tensor(") else name


def _text(value: Any) -> str | None:
    """Format a value of an execution trace as a string, the form that profilers record."""
    if value is None or isinstance(value, str):
        return "" if value == "<None>" else value
    return str(value)
