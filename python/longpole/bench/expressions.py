"""Evaluates expressions of numbers and names without running any code."""

from __future__ import annotations

import ast
import operator
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LARGEST_POWER: Final = 16
_LARGEST: Final = 1e300
_MOST_CHARACTERS: Final = 1_000
_NUMBERS: Final = (int, float)

Names: TypeAlias = "Mapping[str, Any]"
Meaning: TypeAlias = "Callable[[Names], Any]"
"""A parsed part of an expression: computes a value from the values of names."""


def _power(base: float, exponent: float) -> Any:
    if abs(exponent) > _LARGEST_POWER:
        message = f"a power of {exponent} is too large"
        raise ValueError(message)
    return base**exponent


_ARITHMETIC: Final[Mapping[type, Callable[..., Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
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


class ExpressionError(ValueError):
    """An expression is invalid or cannot be computed."""


def compute(text: str, names: Names) -> Any:
    """Evaluate an expression of constants, names, arithmetic, comparisons, `and`, `or` and `not`.

    `min`, `max` and `abs` can be called, and the right side of `in` is a list.

    Raises
    ------
    ExpressionError
        The text is not such an expression, contains an unknown name, or cannot be computed.

    Examples
    --------
    >>> compute("block * 4 <= 1024 and mode in ['a', 'b']", {"block": 64, "mode": "a"})
    True
    """
    _, meaning = _parsed(text)
    try:
        return meaning(names)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        message = f"{text!r} cannot be computed: {error}"
        raise ExpressionError(message) from error


def names_in(text: str) -> frozenset[str]:
    """Return the names that an expression uses.

    Raises
    ------
    ExpressionError
        The text is not such an expression.

    Examples
    --------
    >>> sorted(names_in("min(a, b) < 4"))
    ['a', 'b']
    """
    return _parsed(text)[0]


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[frozenset[str], Meaning]:
    """Return the names of an expression, and the function that evaluates it."""
    if len(text) > _MOST_CHARACTERS:
        message = f"an expression is longer than {_MOST_CHARACTERS:,} characters: {text[:60]!r}…"
        raise ExpressionError(message)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of comparisons such as `1 is 1`.
            node = ast.parse(text.strip(), mode="eval").body
        meaning = _meaning(node)
    except ExpressionError:
        raise
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        message = f"{text!r} is not an expression: {why}"
        raise ExpressionError(message) from error
    nodes = list(ast.walk(node))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = (node for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)
    return frozenset(node.id for node in names), meaning


def _meaning(node: ast.AST) -> Meaning:
    """Return the function that evaluates a part of an expression; raise if it is not allowed."""
    make: Callable[[Any], Meaning] = _MEANINGS.get(type(node), _refuse)
    return make(node)


def _refuse(node: ast.AST) -> NoReturn:
    message = f"{ast.unparse(node)!r} is not allowed in an expression"
    raise ExpressionError(message)


def _constant(node: ast.Constant) -> Meaning:
    value = node.value
    return (lambda _names: value) if isinstance(value, int | float | str) else _refuse(node)


def _named(node: ast.Name) -> Meaning:
    def meaning(names: Names) -> Any:
        if node.id in names:
            return names[node.id]
        message = f"there is no {node.id!r}; there are {', '.join(names) or 'no names'}"
        raise ValueError(message)

    return meaning


def _unary(node: ast.UnaryOp) -> Meaning:
    operand = _meaning(node.operand)
    if isinstance(node.op, ast.Not):
        return lambda names: not operand(names)
    return _computed(node, operand)


def _binary(node: ast.BinOp) -> Meaning:
    return _computed(node, _meaning(node.left), _meaning(node.right))


def _joined(node: ast.BoolOp) -> Meaning:
    join = all if isinstance(node.op, ast.And) else any
    parts = [_meaning(each) for each in node.values]
    return lambda names: join(part(names) for part in parts)


def _compared(node: ast.Compare) -> Meaning:
    if any(type(each) not in _COMPARISONS for each in node.ops):
        _refuse(node)
    first = _meaning(node.left)
    steps = [
        (_COMPARISONS[type(each)], _meaning(operand))
        for each, operand in zip(node.ops, node.comparators, strict=True)
    ]

    def meaning(names: Names) -> bool:
        left = first(names)
        for compare, operand in steps:
            right = operand(names)
            if not compare(left, right):
                return False
            left = right
        return True

    return meaning


def _listed(node: ast.List | ast.Tuple) -> Meaning:
    parts = [_meaning(part) for part in node.elts]
    return lambda names: [part(names) for part in parts]


def _called(node: ast.Call) -> Meaning:
    if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
        _refuse(node)
    function = _FUNCTIONS[ast.unparse(node.func)]
    arguments = [_meaning(each) for each in node.args]
    return lambda names: function(*(each(names) for each in arguments))


def _computed(node: ast.UnaryOp | ast.BinOp, *operands: Meaning) -> Meaning:
    """Return a function that computes with numbers only: a repeated string could fill memory."""
    if type(node.op) not in _ARITHMETIC:
        _refuse(node)
    operation = _ARITHMETIC[type(node.op)]

    def checked(result: complex) -> int | float:
        if not isinstance(result, complex) and -_LARGEST <= result <= _LARGEST:
            return result
        message = f"{ast.unparse(node)!r} is too large or not a real number"
        raise ValueError(message)

    def number(value: Any) -> int | float:
        if isinstance(value, _NUMBERS):
            return value
        message = f"{ast.unparse(node)!r} uses a value that is not a number"
        raise TypeError(message)

    if len(operands) == 1:
        return lambda names: checked(operation(number(operands[0](names))))
    first, second = operands
    return lambda names: checked(operation(number(first(names)), number(second(names))))


_MEANINGS: Final[Mapping[type, Callable[[Any], Meaning]]] = {
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
