"""Expressions of numbers and names, computed without running any code."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["compute", "names_in"]

_LARGEST_POWER: Final = 16
_LARGEST: Final = 1e300

_ARITHMETIC: Final[Mapping[type, Callable[..., Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARISONS: Final[Mapping[type, Callable[..., bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"min": min, "max": max, "abs": abs}


def compute(text: str, names: Mapping[str, Any]) -> Any:
    """Compute an expression of constants, names, arithmetic, comparisons, `and`, `or` and `not`.

    `min`, `max` and `abs` can be called, and the right side of `in` is a list.

    Raises
    ------
    ValueError
        It is none, or names something unknown.

    Examples
    --------
    >>> compute("block * 4 <= 1024 and mode in ['a', 'b']", {"block": 64, "mode": "a"})
    True
    """
    try:
        return _value(_parsed(text), names)
    except (TypeError, ZeroDivisionError, OverflowError, RecursionError) as error:
        message = f"{text!r} cannot be computed: {error}"
        raise ValueError(message) from error


def names_in(text: str) -> frozenset[str]:
    """Give the names that an expression uses.

    Raises
    ------
    ValueError
        It is none.

    Examples
    --------
    >>> sorted(names_in("min(a, b) < 4"))
    ['a', 'b']
    """
    nodes = list(ast.walk(_parsed(text)))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = (node for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)
    return frozenset(node.id for node in names)


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        message = f"{text!r} is no expression: {error}"
        raise ValueError(message) from error


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    meaning: Callable[[Any, Mapping[str, Any]], Any] = _MEANINGS.get(type(node), _refused)
    return meaning(node, names)


def _refused(node: ast.AST, _names: Mapping[str, Any]) -> Any:
    message = f"{ast.unparse(node)!r} is not allowed in an expression"
    raise ValueError(message)


def _constant(node: ast.Constant, names: Mapping[str, Any]) -> Any:
    return node.value if isinstance(node.value, int | float | str) else _refused(node, names)


def _named(node: ast.Name, names: Mapping[str, Any]) -> Any:
    if node.id in names:
        return names[node.id]
    message = f"there is no {node.id!r}; there are {', '.join(names) or 'no names'}"
    raise ValueError(message)


def _unary(node: ast.UnaryOp, names: Mapping[str, Any]) -> Any:
    if isinstance(node.op, ast.Not):
        return not _value(node.operand, names)
    return _computed(node, _value(node.operand, names))


def _binary(node: ast.BinOp, names: Mapping[str, Any]) -> Any:
    return _computed(node, _value(node.left, names), _value(node.right, names))


def _joined(node: ast.BoolOp, names: Mapping[str, Any]) -> bool:
    join = all if isinstance(node.op, ast.And) else any
    return join(_value(each, names) for each in node.values)


def _compared(node: ast.Compare, names: Mapping[str, Any]) -> bool:
    left = _value(node.left, names)
    for op, operand in zip(node.ops, node.comparators, strict=True):
        if type(op) not in _COMPARISONS:
            _refused(node, names)
        right = _value(operand, names)
        if not _COMPARISONS[type(op)](left, right):
            return False
        left = right
    return True


def _listed(node: ast.List | ast.Tuple, names: Mapping[str, Any]) -> list[Any]:
    return [_value(part, names) for part in node.elts]


def _called(node: ast.Call, names: Mapping[str, Any]) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
        _refused(node, names)
    return _FUNCTIONS[ast.unparse(node.func)](*(_value(each, names) for each in node.args))


def _computed(node: ast.UnaryOp | ast.BinOp, *values: Any) -> int | float:
    """Compute with numbers; a text times a number could fill the memory."""
    if type(node.op) not in _ARITHMETIC:
        _refused(node, {})
    if not all(isinstance(value, int | float) for value in values):
        message = f"{ast.unparse(node)!r} is about something that is not a number"
        raise TypeError(message)
    if isinstance(node.op, ast.Pow) and abs(values[1]) > _LARGEST_POWER:
        message = f"a power of {values[1]} is too large"
        raise ValueError(message)
    result: int | float = _ARITHMETIC[type(node.op)](*values)
    if isinstance(result, complex) or abs(result) > _LARGEST:
        message = f"{ast.unparse(node)!r} is too large or no real number"
        raise ValueError(message)
    return result


_MEANINGS: Final[Mapping[type, Callable[[Any, Mapping[str, Any]], Any]]] = {
    ast.Constant: _constant,
    ast.Name: _named,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _joined,
    ast.Compare: _compared,
    ast.List: _listed,
    ast.Tuple: _listed,
    ast.Call: _called,
}
