"""Messages of Protocol Buffers, as far as the writers of traces need them."""

from __future__ import annotations

import struct

__all__ = ["eight", "message", "number", "text"]


def number(field: int, value: int) -> bytes:
    """Write a number of variable length; negative ones take ten bytes."""
    return _variable(field << 3) + _variable(value & 0xFFFF_FFFF_FFFF_FFFF)


def eight(field: int, value: float) -> bytes:
    """Write an integer or a float of eight bytes."""
    packed = struct.pack("<d", value) if isinstance(value, float) else struct.pack("<Q", value)
    return _variable(field << 3 | 1) + packed


def message(field: int, *parts: bytes) -> bytes:
    """Write a message, or bytes, of a length."""
    whole = b"".join(parts)
    return _variable(field << 3 | 2) + _variable(len(whole)) + whole


def text(field: int, value: str) -> bytes:
    """Write a text."""
    return message(field, value.encode())


def _variable(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
