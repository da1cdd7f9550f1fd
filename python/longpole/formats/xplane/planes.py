"""The planes of an `xplane.pb`: their names, and the values of their events.

Numbers of fields are those of `xplane.proto` of OpenXLA.
"""

from __future__ import annotations

import gzip
import mmap
from typing import TYPE_CHECKING, Final

from longpole.files.opening import MAGIC, open_file
from longpole.formats.xplane.wire import Message, fields, integer, message_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLANES: Final = 1
_NAME: Final = 2
_LINES: Final = 3
_EVENT_NAMES: Final = 4
_STAT_NAMES: Final = 5
_KEY: Final = 1
_VALUE: Final = 2


def planes(path: Path) -> Iterator[tuple[str, memoryview]]:
    """Return the name and the content of each plane of a file."""
    with open_file(path) as file:
        if file.read(len(MAGIC)) == MAGIC:
            file.seek(0)
            with gzip.open(file) as whole:
                return _named(memoryview(whole.read()))
        return _named(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def _named(file: memoryview) -> Iterator[tuple[str, memoryview]]:
    for number, plane in fields(file):
        if number == _PLANES and not isinstance(plane, int):
            yield _name(plane), plane


def _name(plane: memoryview) -> str:
    for number, value in fields(plane):
        if number == _NAME and not isinstance(value, int):
            return bytes(value).decode("utf-8", "replace")
    return ""


def lines(plane: memoryview) -> Iterator[memoryview]:
    """Yield the lines of a plane."""
    for number, line in fields(plane):
        if number == _LINES and not isinstance(line, int):
            yield line


def event_types(plane: memoryview) -> dict[int, Message]:
    """Return the types of events by their number; field 2 is the name, 5 are values of all."""
    return _table(plane, _EVENT_NAMES)


def stat_names(plane: memoryview) -> dict[int, str]:
    """Return the names of values by their number. Texts among the values are numbers of names."""
    return {number: text(entry, _NAME) for number, entry in _table(plane, _STAT_NAMES).items()}


def _table(plane: memoryview, field: int) -> dict[int, Message]:
    found = {}
    for number, value in fields(plane):
        if number == field and not isinstance(value, int):
            entry = message_of(value)
            content = entry.get(_VALUE, [0])[-1]
            if not isinstance(content, int):
                found[integer(entry, _KEY)] = message_of(content)
    return found
