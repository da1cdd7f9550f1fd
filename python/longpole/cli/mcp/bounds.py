"""Keeps an answer short enough for the context of an agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bounded", "events_in", "visible"]

_MOST_BYTES: Final = 60_000
_LONGEST_TEXT: Final = 2_000
_EVENT_KEYS: Final = frozenset({"event", "events", "longest_event"})


def bounded(answer: dict[str, Any], most: int) -> dict[str, Any]:
    """Shorten the lists of an envelope to a length at which all of it is short enough.

    `truncated` says of each shortened list how many elements are shown, and how many there are.

    Examples
    --------
    >>> bounded({"data": {"rows": [1, 2, 3, 4]}, "truncated": None}, 3)
    {'data': {'rows': [1, 2, 3]}, 'truncated': {'rows': {'shown': 3, 'total': 4}}}
    """
    while True:
        shortened: dict[str, Any] = {}
        data = _short(answer["data"], most, "", shortened)
        found = {**answer, "data": data}
        found["truncated"] = {**(answer["truncated"] or {}), **shortened} or None
        if most <= 2 or len(json.dumps(found)) <= _MOST_BYTES:  # noqa: PLR2004 (pairs stay pairs)
            return found
        most = max(2, most // 2)


def _short(value: Any, most: int, where: str, shortened: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {
            key: _short(part, most, f"{where}.{key}" if where else key, shortened)
            for key, part in value.items()
        }
    if isinstance(value, list):
        if len(value) > most:
            shortened[where] = {"shown": most, "total": len(value)}
        return [_short(part, most, where, shortened) for part in value[:most]]
    return f"{value[:_LONGEST_TEXT]}…" if _is_long(value) else value


def visible(value: Any) -> Any:
    r"""Return a value with the characters that nobody sees written as escapes, in every text.

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


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST_TEXT


def events_in(value: Any, most: int) -> list[int]:
    """Find the events that an answer names, the first ones.

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
