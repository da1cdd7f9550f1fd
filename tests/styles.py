"""One value, written in the many ways that JSON allows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any


class Number(str):
    """A number, in the digits that shall stand in the file."""

    __slots__ = ()


@dataclass(frozen=True)
class Style:
    """How a writer lays out its text."""

    indent: str | None = None
    line_end: str = "\n"
    comma: str = ","
    colon: str = ":"
    ascii_only: bool = True
    mark: str = ""
    is_bare_list: bool = False
    key_order: int | None = None


COMPACT = Style()
STYLES = {
    "compact": COMPACT,
    "spaced": Style(comma=", ", colon=": "),
    "indented": Style(indent="  ", colon=": "),
    "indented with tabs and CRLF": Style(indent="\t", line_end="\r\n", colon=" : "),
    "with blanks in odd places": Style(indent="", line_end=" \n\t ", comma=" ,", colon="\n:\r"),
    "not only ASCII": Style(ascii_only=False),
    "with a byte order mark": Style(mark="\ufeff"),
    "a bare list": Style(is_bare_list=True, indent=" "),
    "keys in another order": Style(key_order=1),
    "keys in another order each": Style(key_order=2, indent=" "),
}


def document(events: list[Any], style: Style = COMPACT, **header: Any) -> bytes:
    """Write a trace of these events, with header fields before and after them."""
    first = dict(list(header.items())[::2])
    last = {key: value for key, value in header.items() if key not in first}
    whole = events if style.is_bare_list else {**first, "traceEvents": events, **last}
    return (style.mark + _Writer(style).value(whole, 0)).encode()


def spelled(value: Any) -> str:
    """Write one value in the plainest way."""
    return _Writer(COMPACT).value(value, 0)


class _Writer:
    def __init__(self, style: Style) -> None:
        self._style = style
        self._random = Random(style.key_order)  # noqa: S311

    def value(self, value: Any, depth: int) -> str:
        match value:
            case Number():
                return str(value)
            case dict():
                members = [self._member(*member, depth + 1) for member in self._ordered(value)]
                return self._bracketed("{", members, "}", depth)
            case list():
                items = [self.value(item, depth + 1) for item in value]
                return self._bracketed("[", items, "]", depth)
            case _:
                return json.dumps(value, ensure_ascii=self._style.ascii_only)

    def _member(self, key: str, value: Any, depth: int) -> str:
        name = json.dumps(key, ensure_ascii=self._style.ascii_only)
        return f"{name}{self._style.colon}{self.value(value, depth)}"

    def _ordered(self, members: dict[str, Any]) -> list[tuple[str, Any]]:
        """Shuffle the keys of events; the events themselves stay where they are."""
        ordered = list(members.items())
        if self._style.key_order is not None and "traceEvents" not in members:
            self._random.shuffle(ordered)
        return ordered

    def _bracketed(self, opening: str, parts: list[str], closing: str, depth: int) -> str:
        style = self._style
        if style.indent is None or not parts:
            return opening + style.comma.join(parts) + closing
        line = style.line_end + style.indent * (depth + 1)
        last_line = style.line_end + style.indent * depth
        return opening + line + (style.comma + line).join(parts) + last_line + closing
