"""Evaluates a condition for each row of a frame.

Each operation takes columns and returns a column, computed at once: a literal is a column of one
row, which polars broadcasts. A null operand gives a null result, except in IS NULL, in `coalesce`,
and in AND and OR if the other operand decides. Integers are exact up to 128 bits and become floats
beyond that. Undefined results, such as x / 0, are null.
"""

from __future__ import annotations

import difflib
import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import polars as pl

from longpole._core import check_pattern
from longpole.rows.selection.grammar import ConditionError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.rows.selection.grammar import Node

Kind: TypeAlias = Literal["truth value", "number", "text", "list", "null"]
Arithmetic: TypeAlias = "Callable[[Any, Any], Any]"  # on columns or integers

_MOST_LISTED: Final = 60
_LARGEST_64: Final = 2**63 - 1
_LARGEST_128: Final = 2**127 - 1
_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
_WILDCARDS: Final[Mapping[str, str]] = {"%": ".*", "_": "."}


def holds(tree: Node, rows: pl.DataFrame) -> pl.Series:
    """Return whether a condition holds for each row; null if unknown.

    A condition without columns returns one value.

    Raises
    ------
    ConditionError
        A column or function does not exist, the types do not fit, or it is not a condition.

    Examples
    --------
    >>> from longpole.rows.selection.grammar import parse
    >>> rows = pl.DataFrame({"name": ["gemm", "add", None], "stream": [7, 7, 7]})
    >>> holds(parse("name LIKE 'g%' AND stream + 1 = 8"), rows).to_list()
    [True, False, None]
    """
    found = _Evaluation(rows).value(tree)
    if _kind(found) != "truth value":
        why = f"this is a {_kind(found)}, not a condition; compare it, as in stream = 7"
        raise ConditionError(tree.position, why)
    return found


class _Evaluation:
    """Computes operations on the rows of one frame."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._rows = rows
        self._columns: dict[str, pl.Series] = {}

    def value(self, node: Node) -> pl.Series:
        """Evaluate an operation, after its operands."""
        return _OPERATIONS[node.operation](self, node)

    def literal(self, node: Node) -> pl.Series:
        return _literals([node])

    def column(self, node: Node) -> pl.Series:
        if node.value not in self._columns:
            if node.value not in self._rows.columns:
                raise ConditionError(node.position, self._no_column(node.value))
            self._columns[node.value] = _plain(self._rows.get_column(node.value))
        return self._columns[node.value]

    def joined(self, node: Node) -> pl.Series:
        join = operator.and_ if node.operation == "AND" else operator.or_
        return reduce(join, [self._of_kind("truth value", each) for each in node.operands])

    def negated(self, node: Node) -> pl.Series:
        return ~self._of_kind("truth value", node.operands[0])

    def compared(self, node: Node) -> pl.Series:
        left, right = (self.value(each) for each in node.operands)
        return self._compare(
            node.operation, node, (node.operands[0], left), (node.operands[1], right)
        )

    def between(self, node: Node) -> pl.Series:
        value, low, high = ((each, self.value(each)) for each in node.operands)
        return self._compare(">=", node, value, low) & self._compare("<=", node, value, high)

    def is_null(self, node: Node) -> pl.Series:
        return self.value(node.operands[0]).is_null()

    def is_in(self, node: Node) -> pl.Series:
        value = self.value(node.operands[0])
        for each in node.value:
            self._fit(node, (node.operands[0], value), (each, _literals([each])))
        value, listed = _alike(value, _literals(node.value))
        return value.is_in(listed.implode())

    def like(self, node: Node) -> pl.Series:
        text = self._of_kind("text", node.operands[0])
        pattern = node.value
        if node.operation != "REGEXP":
            pattern = _like(pattern, ignore_case=node.operation == "ILIKE")
        try:
            check_pattern(pattern)
            why = None
        except ValueError as error:
            why = str(error)
        if why is not None:
            raise ConditionError(node.position, why)
        return text.str.contains(pattern)

    def arithmetic(self, node: Node) -> pl.Series:
        left, right = (self._of_kind("number", each) for each in node.operands)
        if node.operation == "%" and pl.Float64 in {left.dtype, right.dtype}:
            raise ConditionError(node.position, "% needs integers")
        if node.operation in "/%":
            right = right.set(right == 0, None)
        if node.operation == "/":
            return _float(left) / _float(right)
        return _computed(_ARITHMETIC[node.operation], left, right)

    def negative(self, node: Node) -> pl.Series:
        value = self._of_kind("number", node.operands[0])
        return _computed(operator.sub, pl.Series([0]), value)

    def positive(self, node: Node) -> pl.Series:
        return self._of_kind("number", node.operands[0])

    def call(self, node: Node) -> pl.Series:
        name = node.value.lower()
        if name == "coalesce" and node.operands:
            return self._coalesced(node)
        if name not in _FUNCTIONS:
            names = [*_FUNCTIONS, "coalesce"]
            near = _near(name, names)
            why = f"there is no function {quoted(node.value)}{near}; there are {', '.join(names)}"
            raise ConditionError(node.position, why)
        kinds, function = _FUNCTIONS[name]
        if len(node.operands) != len(kinds):
            takes = "1 argument" if len(kinds) == 1 else f"{len(kinds)} arguments"
            raise ConditionError(node.position, f"{name} takes {takes}, not {len(node.operands)}")
        values = [self._of_kind(*each) for each in zip(kinds, node.operands, strict=True)]
        for part in node.operands[1:]:
            if part.operation != "literal":
                why = f"the second argument of {name} is a text in single quotes"
                raise ConditionError(part.position, why)
        return function(*values)

    def _coalesced(self, node: Node) -> pl.Series:
        """Return the first operand that is not null."""
        parts = [(each, self.value(each)) for each in node.operands]
        for each in parts[1:]:
            self._fit(node, parts[0], each)
        found = parts[0][1]
        for _, other in parts[1:]:
            found, other = _alike(found, other)  # noqa: PLW2901 - cast to the common dtype
            found = pl.select(pl.coalesce(found.alias("found"), other.alias("other"))).to_series()
        return found

    def _of_kind(self, kind: Kind, node: Node) -> pl.Series:
        value = self.value(node)
        if _kind(value) == "null":
            return value.cast(_DTYPES[kind])
        if _kind(value) != kind:
            why = f"a {kind} is needed here, and {_described(node)} is a {_kind(value)}"
            raise ConditionError(node.position, why)
        return value

    def _compare(
        self, symbol: str, node: Node, left: tuple[Node, pl.Series], right: tuple[Node, pl.Series]
    ) -> pl.Series:
        kind = self._fit(node, left, right)
        if kind == "truth value" and symbol not in {"=", "!="}:
            raise ConditionError(
                node.position, f"truth values have no order; {symbol} needs numbers or texts"
            )
        return _COMPARISONS[symbol](*_alike(left[1], right[1]))

    def _fit(self, node: Node, *sides: tuple[Node, pl.Series]) -> Kind:
        """Return the common type of two operands; raise if they are lists or their types differ."""
        kinds = [_kind(value) for _, value in sides]
        texts = [
            f"{_described(side)} is a {kind}" for (side, _), kind in zip(sides, kinds, strict=True)
        ]
        if "list" in kinds:
            raise ConditionError(
                node.position,
                f"{texts[kinds.index('list')]}, which can only be compared with IS NULL",
            )
        if len({*kinds} - {"null"}) > 1:
            raise ConditionError(node.position, f"{' and '.join(texts)}: they cannot be compared")
        return next((kind for kind in kinds if kind != "null"), "null")

    def _no_column(self, name: str) -> str:
        names = self._rows.columns
        listed = ", ".join(names[:_MOST_LISTED]) + (" …" if len(names) > _MOST_LISTED else "")
        near = _near(name, names)
        return (
            f"there is no column {quoted(name)}{near}; the columns are {listed}; strings need"
            " quotes, as in kind = 'kernel'"
        )


_OPERATIONS: Final[Mapping[str, Callable[[_Evaluation, Node], pl.Series]]] = {
    "literal": _Evaluation.literal,
    "column": _Evaluation.column,
    "AND": _Evaluation.joined,
    "OR": _Evaluation.joined,
    "NOT": _Evaluation.negated,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), _Evaluation.compared),
    "BETWEEN": _Evaluation.between,
    "IS NULL": _Evaluation.is_null,
    "IN": _Evaluation.is_in,
    **dict.fromkeys(("LIKE", "ILIKE", "REGEXP"), _Evaluation.like),
    **dict.fromkeys("+-*/%", _Evaluation.arithmetic),
    "negative": _Evaluation.negative,
    "positive": _Evaluation.positive,
    "call": _Evaluation.call,
}
_COMPARISONS: Final[Mapping[str, Callable[[pl.Series, pl.Series], pl.Series]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[Mapping[str, Arithmetic]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": operator.mod,
}
_DTYPES: Final[Mapping[Kind, Any]] = {
    "truth value": pl.Boolean,
    "number": pl.Int64,
    "text": pl.String,
}


def _kind(values: pl.Series) -> Kind:
    dtype = values.dtype
    if dtype.is_numeric():
        return "number"
    kinds: dict[Any, Kind] = {pl.Boolean: "truth value", pl.String: "text", pl.Null: "null"}
    return kinds.get(dtype, "list")


def _plain(values: pl.Series) -> pl.Series:
    """Return a column as booleans, strings, integers or floats; other types are unchanged."""
    dtype = values.dtype
    if dtype in (pl.Categorical, pl.Enum):
        return values.cast(pl.String)
    if dtype.is_integer():
        largest = values.max()
        is_wide = isinstance(largest, int) and largest > _LARGEST_64
        return values.cast(pl.Int128 if is_wide or dtype == pl.Int128 else pl.Int64)
    return _float(values) if dtype.is_numeric() else values


def _float(values: pl.Series) -> pl.Series:
    return values.cast(pl.Float64).fill_nan(None)


def _literals(nodes: Sequence[Node]) -> pl.Series:
    """Return literals of one kind as a column."""
    values = [node.value for node in nodes]
    kinds = {_kind_of_literal(value) for value in values}
    if len(kinds) > 1:
        why = f"a list has values of one type, not {' and '.join(sorted(kinds))}s"
        raise ConditionError(nodes[0].position, why)
    if kinds != {"number"}:
        return pl.Series(values, dtype=_DTYPES[kinds.pop()])
    if any(isinstance(value, float) for value in values):
        return pl.Series(map(float, values), dtype=pl.Float64)
    is_wide = max(map(abs, values)) > _LARGEST_64
    return pl.Series(values, dtype=pl.Int128 if is_wide else pl.Int64)


def _kind_of_literal(value: object) -> Kind:
    if isinstance(value, bool):
        return "truth value"
    return "text" if isinstance(value, str) else "number"


def _alike(left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Convert two columns of one kind to one dtype; integers stay exact unless one is a float."""
    dtypes = {left.dtype, right.dtype} - {pl.Null}
    widest = [each for each in (pl.Float64, pl.Int128) if each in dtypes]
    common: Any = [*widest, *dtypes, pl.Boolean][0]
    return left.cast(common), right.cast(common)


def _computed(compute: Arithmetic, left: pl.Series, right: pl.Series) -> pl.Series:
    """Compute in the narrowest type in which no result can overflow."""
    left, right = _alike(left, right)
    dtype: Any = left.dtype
    if dtype != pl.Float64:
        largest = _largest(compute, left, right)
        if largest > _LARGEST_64:
            dtype = pl.Int128 if largest <= _LARGEST_128 else pl.Float64
    found: pl.Series = compute(left.cast(dtype), right.cast(dtype))
    return found.fill_nan(None) if dtype == pl.Float64 else found


def _largest(compute: Arithmetic, left: pl.Series, right: pl.Series) -> int:
    """Return a bound on the size of the results of an integer operation."""
    if compute is operator.mod:
        return 0  # smaller than the divisor
    ends = [[end for end in (side.min(), side.max()) if end is not None] for side in (left, right)]
    return max((abs(compute(a, b)) for a in ends[0] for b in ends[1]), default=0)


def _absolute(number: pl.Series) -> pl.Series:
    is_lowest = number.dtype == pl.Int64 and number.min() == -_LARGEST_64 - 1
    return (number.cast(pl.Int128) if is_lowest else number).abs()


def _like(pattern: str, *, ignore_case: bool) -> str:
    """Convert a LIKE pattern to a regular expression: % is any text, _ any character."""
    inner = pattern.strip("%")
    start = "" if pattern.startswith("%") else "^"
    end = "" if pattern.endswith("%") else "$"
    parts = [_WILDCARDS.get(each) or _META.sub(r"\\\g<0>", each) for each in inner]
    return f"(?{'i' * ignore_case}s){start}{''.join(parts)}{end}"


def _described(node: Node) -> str:
    if node.operation == "column":
        return str(node.value)
    if node.operation == "literal":
        return quoted(node.value) if isinstance(node.value, str) else str(node.value)
    return "the result of " + (node.value if node.operation == "call" else node.operation)


def _near(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    meant = difflib.get_close_matches(name[:100], [*known], n=1)
    return f" (did you mean {meant[0]}?)" if meant else ""


_FUNCTIONS: Final[Mapping[str, tuple[tuple[Kind, ...], Callable[..., pl.Series]]]] = {
    "lower": (("text",), lambda text: text.str.to_lowercase()),
    "upper": (("text",), lambda text: text.str.to_uppercase()),
    "length": (("text",), lambda text: text.str.len_chars().cast(pl.Int64)),
    "contains": (("text", "text"), lambda text, part: text.str.contains(part[0], literal=True)),
    "starts_with": (("text", "text"), lambda text, part: text.str.starts_with(part[0])),
    "ends_with": (("text", "text"), lambda text, part: text.str.ends_with(part[0])),
    "abs": (("number",), _absolute),
}
"""Parameter types of each function, and its implementation."""
