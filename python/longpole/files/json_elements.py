"""Reads a JSON document one element at a time, so that memory is bounded by one element.

A gzip stream of 150 kB can hold 150 MB of brackets, which take gigabytes as Python objects. Only
the text of one element is held here, up to a limit.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, Final, cast

from longpole.files.opening import MAGIC, open_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

MAX_ELEMENT_CHARACTERS: Final = 8 << 20
"""Maximum length of one element; as Python objects it takes up to 30 times as many bytes."""
_CHUNK: Final = 1 << 16
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ENDS: Final = {"[": "]", "{": "}"}

Place = tuple[str | int, ...]


class JsonLimitError(ValueError):
    """A document with an element that is too long or too deeply nested."""


def json_elements(
    path: str | os.PathLike[str], depths: Mapping[str, int]
) -> Iterator[tuple[Place, Any]]:
    """Return the elements of a document, each with its place, in order.

    Parameters
    ----------
    path
        The file, plain or gzip.
    depths
        Number of levels below a member of the outermost object to split into elements: with
        `{"entries": 1}`, each member of `entries` is an element. Members that are not listed are
        elements themselves, and so are empty ones and each value of an outermost array.

    Raises
    ------
    JsonLimitError
        An element is longer than `MAX_ELEMENT_CHARACTERS`, or too deeply nested.
    ValueError
        The file is not JSON, not UTF-8, or a truncated or corrupt gzip stream.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write('{"a": [1, [2]], "b": {"c": 3}}')
    ...     file.flush()
    ...     list(json_elements(file.name, {"a": 1}))
    [(('a', 0), 1), (('a', 1), [2]), (('b',), {'c': 3})]
    """
    with ExitStack() as opened:
        file: IO[bytes] = opened.enter_context(open_file(path))
        if file.read(len(MAGIC)) == MAGIC:
            file.seek(0)
            file = cast("IO[bytes]", opened.enter_context(gzip.open(file)))
        else:
            file.seek(0)
        yield from _document(_Text(file), depths)


def _document(text: _Text, depths: Mapping[str, int]) -> Iterator[tuple[Place, Any]]:
    if text.peek() in _ENDS:
        yield from _inside(text, (), depths, 0)
    else:
        yield (), text.value()
    if text.peek(may_end=True):
        message = "text follows the end of the document"
        raise ValueError(message)


def _inside(
    text: _Text, place: Place, depths: Mapping[str, int], depth: int
) -> Iterator[tuple[Place, Any]]:
    """Return the elements of the next container, `depth` levels deep."""
    bracket = text.take()
    number = 0
    while text.peek() != _ENDS[bracket]:
        if number:
            text.expect(",")
        key = text.key() if bracket == "{" else number
        number += 1
        levels = depth - 1 if place else depths.get(str(key), 0)
        if levels > 0 and text.peek() in _ENDS:
            yield from _inside(text, (*place, key), depths, levels)
        else:
            yield (*place, key), text.value()
    text.take()
    if number == 0 and place:
        yield place, {} if bracket == "{" else []


def _with_whole_characters(value: Any) -> Any:
    """Replace unpaired surrogates by `?`, since they cannot be encoded as text."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_with_whole_characters(each) for each in value]
    if isinstance(value, dict):
        return {
            _with_whole_characters(key): _with_whole_characters(each) for key, each in value.items()
        }
    return value


class _Text:
    """The text of a document, read in chunks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._is_ended = False

    def peek(self, *, may_end: bool = False) -> str:
        """Return the next non-space character; an empty string at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr] # it matches nothing too
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                if may_end:
                    return ""
                message = "the document is cut"
                raise ValueError(message)

    def take(self) -> str:
        """Consume the next non-space character."""
        found = self.peek()
        self._at += 1
        return found

    def expect(self, character: str) -> None:
        """Consume the next character, which must be the expected one."""
        found = self.take()
        if found != character:
            message = f"{character!r} is missing before {found!r}"
            raise ValueError(message)

    def key(self) -> str:
        """Parse the key of a member, and its colon."""
        key = self.value()
        if not isinstance(key, str):
            message = "a key is not a text"
            raise ValueError(message)  # noqa: TRY004 - the document is wrong, not the caller
        self.expect(":")
        return key

    def value(self) -> Any:
        """Parse the whole next value."""
        self.peek()
        while True:
            value, end, fault = self._attempt()
            if end - self._at > MAX_ELEMENT_CHARACTERS:
                message = f"an element is longer than {MAX_ELEMENT_CHARACTERS:,} characters"
                raise JsonLimitError(message)
            # A number or a word at the end of the buffer may continue.
            if fault is None and (end < len(self._text) or self._is_ended):
                self._at = end
                return value
            if not self._more() and fault is not None:
                raise fault

    def _attempt(self) -> tuple[Any, int, ValueError | None]:
        """Return the next value, its end, and the error if the buffer has no complete value."""
        try:
            value, end = self._json.raw_decode(self._text, self._at)
            if _SURROGATE.search(self._text, self._at, end):
                value = _with_whole_characters(value)
        except RecursionError:
            message = "an element is nested too deep"
            raise JsonLimitError(message) from None
        except ValueError as error:
            return None, len(self._text), error
        return value, end, None

    def _more(self) -> bool:
        """Double the buffer; return False at the end."""
        if self._is_ended:
            return False
        rest = self._text[self._at :]
        try:
            read = self._file.read(max(_CHUNK, len(rest)))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = f"the gzip stream is cut or corrupt ({error})"
            raise ValueError(message) from error
        self._is_ended = not read
        self._text = rest + self._decoder.decode(read, final=self._is_ended)
        self._at = 0
        return not self._is_ended
