"""The grammar of conditions: parses a string into a tree of operations.

    condition  = term { OR term }             term     = factor { AND factor }
    factor     = { NOT } predicate            sum      = product { (+ | -) product }
    predicate  = sum [ (= | != | < | <= | > | >=) sum
                     | IS [NOT] NULL
                     | [NOT] IN ( literal, ... )
                     | [NOT] BETWEEN sum AND sum
                     | [NOT] (LIKE | ILIKE | REGEXP) text ]
    product    = signed { (* | / | %) signed }
    signed     = { - | + } primary
    primary    = number | text | TRUE | FALSE | column | function ( condition, ... ) | ( condition )

The tree does not depend on the columns; `evaluation` looks them up and checks the types.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Kind: TypeAlias = Literal["number", "text", "column", "word", "keyword", "symbol", "end"]

KEYWORDS: Final = frozenset(
    ["AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "REGEXP", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"]
)

_MOST_CHARACTERS: Final = 20_000
_LONGEST_NUMBER: Final = 40
_LARGEST_INTEGER: Final = 2**64
_SHOWN_CHARACTERS: Final = 60
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BLANKS: Final = re.compile(r"\s*")
_TOKEN: Final = re.compile(
    r"""
    (?P<number> (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<text> '(?:[^']|'')*')
    | (?P<column> "(?:[^"]|"")*")
    | (?P<word> [^\W\d]\w*)
    | (?P<symbol> <=|>=|<>|!=|==|[-+*/%=<>(),])
    """,
    re.VERBOSE,
)


class ConditionError(ValueError):
    """A condition is invalid at a position, counted in characters from 1."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a condition.

    `value` is the number, the string without quotes, the name of a column (`column` if quoted,
    `word` if not), the keyword in capitals, or the symbol.
    """

    kind: Kind
    position: int
    value: int | float | str

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else quoted(str(self.value))


def quoted(text: str) -> str:
    """Return a string in quotes, shortened, with control characters escaped."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…")


def tokens_of(text: str) -> Iterator[Token]:
    """Split a condition into tokens; the last one marks the end.

    Raises
    ------
    ConditionError
        It is too long, or contains an invalid character or number.

    Examples
    --------
    >>> [token.value for token in tokens_of("name like 'g%' and stream>7")]
    ['name', 'LIKE', 'g%', 'AND', 'stream', '>', 7, '']
    """
    if len(text) > _MOST_CHARACTERS:
        why = f"it is longer than {_MOST_CHARACTERS:,} characters"
        raise ConditionError(_MOST_CHARACTERS + 1, why)
    if found := _SURROGATE.search(text):
        raise ConditionError(found.start() + 1, "it is not valid Unicode")
    place = _after_blanks(text, 0)
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ConditionError(place + 1, _unknown(text[place]))
        yield _token(found, place + 1)
        place = _after_blanks(text, found.end())
    yield Token("end", len(text) + 1, "")


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _token(found: re.Match[str], position: int) -> Token:
    written = found[0]
    match found.lastgroup:
        case "number":
            return Token("number", position, _number(written, position))
        case "text":
            return Token("text", position, written[1:-1].replace("''", "'"))
        case "column":
            return Token("column", position, written[1:-1].replace('""', '"'))
        case "word" if written.upper() in KEYWORDS:
            return Token("keyword", position, written.upper())
        case "word":
            return Token("word", position, written)
        case _:
            return Token("symbol", position, {"<>": "!=", "==": "="}.get(written, written))


def _number(written: str, position: int) -> int | float:
    if len(written) <= _LONGEST_NUMBER:
        number = int(written) if written.isdigit() else float(written)
        if math.isfinite(number) and (isinstance(number, float) or number < _LARGEST_INTEGER):
            return number
    raise ConditionError(position, f"the number {quoted(written)} is too large")


def _unknown(character: str) -> str:
    if character == "'":
        return "a text has no closing quote"
    if character == '"':
        return "the name of a column has no closing quote"
    return f"{character!r} has no meaning in a condition"


_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_PATTERNS: Final = ("LIKE", "ILIKE", "REGEXP")
_MOST_OPERATIONS: Final = 200
_PATTERN_COST: Final = 4
_DEEPEST_NESTING: Final = 25
_DEEPEST_TREE: Final = 60


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with its operands, or a leaf: a literal, a list of them, or a column."""

    operation: str
    position: int
    operands: tuple[Node, ...] = ()
    value: Any = None
    depth: int = 1


def parse(text: str) -> Node:
    """Parse a condition.

    Raises
    ------
    ConditionError
        It does not follow the grammar, is nested too deeply or has too many operations.

    Examples
    --------
    >>> tree = parse("stream = 7 AND NOT name LIKE 'g%'")
    >>> tree.operation, [each.operation for each in tree.operands]
    ('AND', ['=', 'NOT'])
    """
    parser = _Parser([*tokens_of(text)])
    tree = parser.condition()
    parser.end()
    return tree


class _Parser:
    """Reads the tokens of a condition from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._nesting = 0
        self._n_operations = 0

    def condition(self) -> Node:
        return self._joined("OR", lambda: self._joined("AND", self._factor))

    def end(self) -> None:
        if self._next.kind != "end":
            self._refuse("AND, OR or the end")

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _accept(self, kind: str, *values: str) -> Token | None:
        """Consume the next token if it is of this kind, with one of the values if any are given."""
        token = self._next
        if token.kind != kind or (values and token.value not in values):
            return None
        self._place += 1
        return token

    def _expect(self, kind: str, value: str = "", *, what: str = "") -> Token:
        found = self._accept(kind, *filter(None, [value]))
        if found is None:
            self._refuse(what or value)
        return found

    def _refuse(self, expected: str) -> NoReturn:
        raise ConditionError(self._next.position, f"expected {expected}, found {self._next}")

    def _node(self, operation: str, at: Token, *operands: Node, value: Any = None) -> Node:
        """Create an operation; raise if there are too many, or the nesting is too deep."""
        self._n_operations += _PATTERN_COST if operation in _PATTERNS else 1
        if self._n_operations > _MOST_OPERATIONS:
            why = f"it has more than {_MOST_OPERATIONS} operations; shorten it, e.g. with IN (...)"
            raise ConditionError(at.position, why)
        depth = 1 + max((each.depth for each in operands), default=0)
        if depth > _DEEPEST_TREE:
            why = "the operations are nested too deeply"
            raise ConditionError(at.position, why)
        return Node(operation, at.position, operands, value, depth)

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        """Parse operands joined by AND or OR into one operation."""
        parts = [part()]
        first = self._next
        while self._accept("keyword", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else self._node(word, first, *parts)

    def _factor(self) -> Node:
        negations = []
        while token := self._accept("keyword", "NOT"):
            negations.append(token)
        found = self._predicate()
        return self._node("NOT", negations[0], found) if len(negations) % 2 else found

    def _predicate(self) -> Node:
        left = self._sum()
        if token := self._accept("symbol", *_COMPARISONS):
            return self._node(str(token.value), token, left, self._sum())
        if token := self._accept("keyword", "IS"):
            is_not = self._accept("keyword", "NOT")
            self._expect("keyword", "NULL")
            return self._negated(self._node("IS NULL", token, left), is_not)
        is_not = self._accept("keyword", "NOT")
        token = self._next
        if self._accept("keyword", "IN"):
            return self._negated(self._node("IN", token, left, value=self._literals()), is_not)
        if self._accept("keyword", "BETWEEN"):
            low = self._sum()
            self._expect("keyword", "AND")
            return self._negated(self._node("BETWEEN", token, left, low, self._sum()), is_not)
        if self._accept("keyword", *_PATTERNS):
            pattern = self._expect("text", what="a pattern in single quotes")
            return self._negated(
                self._node(str(token.value), token, left, value=pattern.value), is_not
            )
        if is_not:
            self._refuse("IN, BETWEEN, LIKE, ILIKE or REGEXP")
        return left

    def _negated(self, found: Node, is_not: Token | None) -> Node:
        return found if is_not is None else self._node("NOT", is_not, found)

    def _literals(self) -> tuple[Node, ...]:
        """Parse the list of values of IN."""
        self._expect("symbol", "(")
        found = [self._literal()]
        while self._accept("symbol", ","):
            found.append(self._literal())
        self._expect("symbol", ")", what="',' or ')'")
        return tuple(found)

    def _literal(self) -> Node:
        token = self._next
        sign = self._accept("symbol", "-", "+")
        if number := self._accept("number"):
            is_negative = sign is not None and sign.value == "-"
            return Node("literal", token.position, value=(-1 if is_negative else 1) * number.value)
        found = None if sign else self._constant()
        if found is None:
            self._refuse("a number, a text in single quotes, TRUE or FALSE")
        return found

    def _constant(self) -> Node | None:
        """Parse an unsigned literal, if one follows."""
        if token := self._accept("number") or self._accept("text"):
            return Node("literal", token.position, value=token.value)
        if token := self._accept("keyword", "TRUE", "FALSE"):
            return Node("literal", token.position, value=token.value == "TRUE")
        return None

    def _sum(self) -> Node:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "%"), self._signed))

    def _chain(self, symbols: tuple[str, ...], part: Callable[[], Node]) -> Node:
        """Parse left-associative operations of one precedence."""
        found = part()
        while token := self._accept("symbol", *symbols):
            found = self._node(str(token.value), token, found, part())
        return found

    def _signed(self) -> Node:
        signs = []
        while token := self._accept("symbol", "-", "+"):
            signs.append(token)
        found = self._primary()
        is_negative = sum(token.value == "-" for token in signs) % 2
        if is_negative:
            return self._node("negative", signs[0], found)
        return self._node("positive", signs[0], found) if signs else found

    def _primary(self) -> Node:
        if found := self._constant():
            return found
        if token := self._accept("column"):
            return Node("column", token.position, value=token.value)
        if token := self._accept("word"):
            if self._accept("symbol", "("):
                return self._node("call", token, *self._arguments(token), value=token.value)
            return Node("column", token.position, value=token.value)
        if token := self._accept("symbol", "("):
            found = self._nested(token, self.condition)
            self._expect("symbol", ")", what="')'")
            return found
        return self._refuse("a column, a number, a text in single quotes or '('")

    def _arguments(self, function: Token) -> tuple[Node, ...]:
        if self._accept("symbol", ")"):
            return ()
        found = [self._nested(function, self.condition)]
        while self._accept("symbol", ","):
            found.append(self._nested(function, self.condition))
        self._expect("symbol", ")", what="',' or ')'")
        return tuple(found)

    def _nested(self, at: Token, part: Callable[[], Node]) -> Node:
        self._nesting += 1
        if self._nesting > _DEEPEST_NESTING:
            why = f"parentheses are nested more than {_DEEPEST_NESTING} deep"
            raise ConditionError(at.position, why)
        found = part()
        self._nesting -= 1
        return found
