"""Colours of kinds of time, by the names that the style sheet of a page gives them."""

from __future__ import annotations

from typing import Final

__all__ = ["LEGEND", "color_of"]

_COLORS: Final = {
    "kernel": "kernel",
    "communication": "communication",
    "communication, waiting included": "communication",
    "transfer": "communication",
    "copy": "copy",
    "memcpy or memset": "copy",
    "operator": "operator",
    "host gap": "operator",
    "waiting for launch": "operator",
    "runtime": "runtime",
    "driver": "runtime",
    "data loading": "data",
    "annotation": "annotation",
    "idle": "annotation",
    "frame": "operator",
}
_OTHER: Final = "wait"

LEGEND: Final = {
    "kernel": "kernels",
    "communication": "communication",
    "copy": "memcpy and memset",
    "operator": "host",
    "runtime": "runtime API calls",
    "data": "data loading",
    "annotation": "annotations, idle",
    "wait": "waiting and latency",
}
"""What the colours stand for, in the order of the legend."""


def color_of(kind: str) -> str:
    """Return the colour of a kind of time.

    Examples
    --------
    >>> color_of("host_gap"), color_of("unexplained")
    ('operator', 'wait')
    """
    return _COLORS.get(kind.replace("_", " "), _OTHER)
