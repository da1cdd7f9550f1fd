"""The tokens of a condition, with their positions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KEYWORDS", "ConditionError", "Token", "quoted", "tokens_of"]

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
    """A condition is invalid at a character, counted from 1."""

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
