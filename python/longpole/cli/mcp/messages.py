"""Makes messages readable that the parser of the protocol would drop without an answer.

It stops at lists that are nested deep and at halves of surrogate pairs, and Python stops at
integers of thousands of digits. What it could not read is replaced by words, so that the question
gets an answer with a code.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_DEEPEST: Final = 60
_MOST_DIGITS: Final = 40
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_DIGITS: Final = re.compile(rf"\d{{{_MOST_DIGITS + 1}}}")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_DEEP: Final = f'"(nested more than {_DEEPEST} deep)"'


def readable(line: str) -> str:
    r"""Return a message as one that can be read; one that is not JSON stays as it is.

    Examples
    --------
    >>> readable('{"step": ' + "9" * 5_000 + "}")
    '{"step": "(an integer of 5,000 digits)"}'
    >>> readable('{"where": "a\\ud800b", "top": 3}')
    '{"where": "a?b", "top": 3}'
    >>> readable('{"top": ' + "[" * 3_000 + "]" * 3_000 + "}").count("[")
    59
    """
    shallow = _shallow(line)
    if shallow is line and not _DIGITS.search(line) and not _SURROGATE.search(line):
        return line
    try:
        return json.dumps(_sound(json.loads(shallow, parse_int=_integer)))
    except (ValueError, RecursionError):
        return line


def _shallow(line: str) -> str:
    """Replace what is nested too deep."""
    parts: list[str] = []
    depth = begin = 0
    for token in _TOKEN.finditer(line):
        if token[0] in "[{":
            depth += 1
            if depth == _DEEPEST + 1:
                parts.append(line[begin : token.start()])
        elif token[0] in "]}":
            if depth == _DEEPEST + 1:
                parts.append(_TOO_DEEP)
                begin = token.end()
            depth -= 1
    return "".join([*parts, line[begin:]]) if parts and depth == 0 else line


def _integer(digits: str) -> int | str:
    n_digits = len(digits.lstrip("-"))
    return int(digits) if n_digits <= _MOST_DIGITS else f"(an integer of {n_digits:,} digits)"


def _sound(value: Any) -> Any:
    """Replace halves of surrogate pairs in all strings."""
    if isinstance(value, dict):
        return {_sound(key): _sound(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_sound(part) for part in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
