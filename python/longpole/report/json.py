"""Writes answers as JSON: one envelope each, with stable keys in a stable order."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.report.document import Document

_PLACE: Final = "<rows>"
_ROWS_AT_A_TIME: Final = 1_000


def json_text(documents: Sequence[Document]) -> str:
    """Write one answer as an object, several answers as an array of objects."""
    return "".join(json_chunks(documents))


def json_chunks(documents: Sequence[Document]) -> Iterator[str]:
    """Write as `json_text` does, in chunks."""
    if len(documents) == 1:
        yield from _chunks(documents[0], indent=2)
        yield "\n"
        return
    for place, document in enumerate(documents):
        yield ",\n" if place else "[\n"
        yield from _chunks(document, indent=2)
    yield "\n]\n" if documents else "[]\n"


def json_lines(document: Document) -> Iterator[str]:
    """Write an answer as one line, in chunks."""
    yield from _chunks(document)
    yield "\n"


def _chunks(document: Document, indent: int | None = None) -> Iterator[str]:
    """Write an answer in chunks; its rows are created while they are written."""
    separators = None if indent else (",", ":")

    def written(value: object) -> str:
        text = json.dumps(value, indent=indent, separators=separators, allow_nan=False)
        return text.replace("\x7f", "\\u007f")  # the only invisible ASCII character

    envelope = document.envelope()
    if document.json_rows is None:
        yield written(envelope)
        return
    envelope["data"] = {**(envelope["data"] or {}), "rows": _PLACE}
    # In a JSON string, quotation marks are escaped, so this text occurs only once.
    before, after = written(envelope).split(f'"rows":{" " * bool(indent)}"{_PLACE}"')
    yield f'{before}"rows": [' if indent else f'{before}"rows":['
    new_line = "\n      " if indent else ""
    rows, separator = iter(document.json_rows()), new_line
    while some := list(islice(rows, _ROWS_AT_A_TIME)):
        yield separator + f",{new_line}".join(some)
        separator = f",{new_line}"
    yield f"\n    ]{after}" if indent and separator != new_line else f"]{after}"
