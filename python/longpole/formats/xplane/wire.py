"""Messages of protocol buffers, as fields with their numbers.

Limits: groups, which no profiler writes, and damaged messages end a message.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

Value = int | memoryview
Message = dict[int, list[Value]]

_VARINT: Final = 0
_FIXED_64: Final = 1
_BYTES: Final = 2
_FIXED_32: Final = 5
_FIXED: Final = {_FIXED_64: 8, _FIXED_32: 4}
_LONGEST: Final = 63
_SIGN: Final = 1 << 63


def fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of each field, up to the end or to damage.

    Examples
    --------
    >>> [(number, bytes(v) if isinstance(v, memoryview) else v) for number, v in
    ...  fields(memoryview(bytes([8, 150, 1, 18, 2, 104, 105])))]
    [(1, 150), (2, b'hi')]
    """
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            number, place = _varint(message, place)
            if place <= end:
                yield key >> 3, number
            continue
        if kind == _BYTES:
            size, place = _varint(message, place)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            return
        if place + size > end:
            return
        yield key >> 3, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return a number and the place after it; a place beyond the end if it is cut off."""
    number = shift = 0
    while place < len(message) and shift <= _LONGEST:
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            return number, place
        shift += 7
    return number, len(message) + 1


def message_of(message: memoryview) -> Message:
    """Return all values of each field."""
    found: Message = {}
    for number, value in fields(message):
        found.setdefault(number, []).append(value)
    return found


def text(message: Message, number: int) -> str:
    """Return a field as text; empty without it."""
    value = message.get(number, [b""])[-1]
    return "" if isinstance(value, int) else bytes(value).decode("utf-8", "replace")


def integer(message: Message, number: int, default: int = 0) -> int:
    """Return a signed number, or the default without it."""
    value = message.get(number, [default])[-1]
    return _signed(value) if isinstance(value, int) else default


def integers(message: Message, number: int) -> list[int]:
    """Return a repeated number, whether packed or not."""
    found: list[int] = []
    for value in message.get(number, []):
        if isinstance(value, int):
            found.append(_signed(value))
            continue
        place = 0
        while place < len(value):
            one, place = _varint(value, place)
            if place <= len(value):
                found.append(_signed(one))
    return found


def messages(message: Message, number: int) -> list[Message]:
    """Return the messages of a repeated field."""
    return [message_of(it) for it in message.get(number, []) if not isinstance(it, int)]


def double(value: Value) -> float | None:
    """Return a floating-point number; None for another value."""
    if isinstance(value, int) or len(value) != _FIXED[_FIXED_64]:
        return None
    number: float = struct.unpack("<d", value)[0]
    return number


def _signed(number: int) -> int:
    return number - (_SIGN << 1) if number >= _SIGN else number
