"""Keeps an answer short enough for the context of an agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES: Final = 60_000
"""Maximum length of an answer as JSON, in UTF-8 bytes."""

_LENGTHS: Final = (2_000, 300, 60)
"""Lengths to which strings are cut, tried in order until the answer is short enough."""

_SHORTENED: Final = ("data", "evidence", "warnings", "abstains_because", "inputs", "error")
_LEAST: Final = 2  # so that pairs are not split
_LONGEST_KEY: Final = 200
_EVENT_KEYS: Final = frozenset({"event", "events", "longest_event"})


def bounded(answer: dict[str, Any], most: int) -> dict[str, Any]:
    """Shorten the lists and strings of an envelope until it is short enough.

    `truncated` has the number of elements shown for each shortened list, and the number of cut
    strings. Lists of the answer are identified by their path in `data`, others by their path in the
    envelope.

    Examples
    --------
    >>> bounded({"data": {"rows": [1, 2, 3, 4]}, "truncated": None}, 3)
    {'data': {'rows': [1, 2, 3]}, 'truncated': {'rows': {'shown': 3, 'total': 4}}}
    """
    for longest in _LENGTHS:
        length = most
        while True:
            found = _shortened(answer, length, longest)
            if size_of(found) <= MOST_BYTES:
                return found
            if length <= _LEAST:
                break
            length = max(_LEAST, length // 2)
    return _without_data(answer)


def size_of(answer: dict[str, Any]) -> int:
    """Return the length of an answer as JSON, in UTF-8 bytes."""
    return len(json.dumps(answer, ensure_ascii=False).encode())


def _shortened(answer: dict[str, Any], most: int, longest: int) -> dict[str, Any]:
    cut = _Cut(most, longest)
    found = dict(answer)
    for key in (key for key in _SHORTENED if key in answer):
        found[key] = cut.value(answer[key], "" if key == "data" else key)
    if cut.n_texts:
        cut.lists["texts"] = {"cut": cut.n_texts, "characters": longest}
    found["truncated"] = {**(answer["truncated"] or {}), **cut.lists} or None
    return found


def _without_data(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an error instead of an answer that is still too long and must not be cut silently."""
    message = f"the answer is longer than {MOST_BYTES:,} bytes, even with its lists shortened"
    hint = "ask for one step, or for a table with `where` and `top`"
    error = {"code": "too_long", "message": message, "hint": hint, "path": None, "offset": None}
    empty: dict[str, Any] = {
        "warnings": [],
        "abstains_because": [],
        "inputs": [],
        "data": None,
        "scope": None,
    }
    emptied = {**answer, **empty, "truncated": None, "status": "error", "error": error}
    return {**emptied, "evidence": []} if "evidence" in answer else emptied


class _Cut:
    """Shortens values, and counts the shortened ones."""

    def __init__(self, most: int, longest: int) -> None:
        self._most = most
        self._longest = longest
        self.lists: dict[str, Any] = {}
        self.n_texts = 0

    def value(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            return {
                self._text(key, _LONGEST_KEY): self.value(part, f"{where}.{key}" if where else key)
                for key, part in value.items()
            }
        if isinstance(value, list):
            if len(value) > self._most:
                self.lists[where] = {"shown": self._most, "total": len(value)}
            return [self.value(part, where) for part in value[: self._most]]
        return self._text(value, self._longest) if isinstance(value, str) else value

    def _text(self, text: str, longest: int) -> str:
        """Cut a string that is too long; invalid Unicode, as in file names, becomes `?`."""
        sound = text.encode(errors="replace").decode()
        if len(sound) <= longest:
            return sound
        self.n_texts += 1
        return f"{sound[:longest]}…"


def visible(value: Any) -> Any:
    r"""Return a value with invisible characters escaped in every string.

    Examples
    --------
    >>> visible({"rows": [{"name": "gemm\U000e0041", "count": 2}]})
    {'rows': [{'name': 'gemm\\U000e0041', 'count': 2}]}
    """
    if isinstance(value, dict):
        return {visible(key): visible(part) for key, part in value.items()}
    if isinstance(value, list):
        return [visible(part) for part in value]
    if not isinstance(value, str):
        return value
    return "\n".join(map(escape, value.split("\n")))


def events_in(value: Any, most: int) -> list[int]:
    """Return the first events that an answer contains.

    Examples
    --------
    >>> events_in({"rows": [{"event": 7, "ns": 3}, {"events": [9, 8, 7]}]}, 2)
    [7, 9]
    """
    return list(dict.fromkeys(_events(value)))[:most]


def _events(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for part in value:
            yield from _events(part)
    if isinstance(value, dict):
        for key, part in value.items():
            if key in _EVENT_KEYS:
                named = part[:1] if isinstance(part, list) else [part]
                yield from (event for event in named if isinstance(event, int))
            else:
                yield from _events(part)
