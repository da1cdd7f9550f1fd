"""How quantities and names are put into words for people. Programs get the plain values."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["count", "duration", "escape", "share", "short_name"]

_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))

# What moves the cursor, colours the screen or turns the direction of the text.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_CPP_NOISE: Final = re.compile(r"^void |\(anonymous namespace\)::|at::native::|<unnamed>::")
_PLACE_OF_FRAME: Final = re.compile(r"^(?P<path>.*[/\\])(?P<file>[^/\\]+\(\d+\): .*)$", re.DOTALL)


def duration(nanoseconds: int) -> str:
    """Write a time with three digits and the unit that fits.

    Examples
    --------
    >>> duration(1_214_000_000), duration(46_830), duration(980), duration(0)
    ('1.21 s', '46.8 µs', '980 ns', '0 s')
    """
    size = abs(nanoseconds)
    if size == 0:
        return "0 s"
    # What would round up to 1000 of a unit is written as 1 of the next.
    unit_ns, unit = next(
        ((unit_ns, unit) for unit_ns, unit in _UNITS if size >= 0.9995 * unit_ns), _UNITS[-1]
    )
    value = nanoseconds / unit_ns
    if unit == "ns":
        return f"{nanoseconds} ns"
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{decimals}f} {unit}"


def share(part: float) -> str:
    """Write a share in percent; the denominator must stand beside it.

    Examples
    --------
    >>> share(0.4683), share(0.00001), share(0), share(1), share(0.9999)
    ('46.8 %', '<0.1 %', '0 %', '100 %', '>99.9 %')
    """
    percent = 100 * part
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:,.1f} %"


def count(number: int, noun: str = "", plural: str | None = None) -> str:
    """Write how many there are, with their noun.

    Examples
    --------
    >>> count(1, "step"), count(12_000, "step"), count(2, "copy", "copies")
    ('1 step', '12,000 steps', '2 copies')
    """
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def escape(text: str) -> str:
    r"""Show what a terminal would act upon, and text that would turn around, as escapes.

    Examples
    --------
    >>> escape("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def short_name(name: str | None, width: int = 60) -> str:
    """Shorten a name to a width: C++ without its noise, Python frames to file and function.

    Examples
    --------
    >>> short_name("void at::native::(anonymous namespace)::gemm<float, 4>(float*, int)")
    'gemm<float, 4>(float*, int)'
    >>> short_name("/usr/lib/python3/site-packages/torch/nn/linear.py(114): forward", 30)
    '…/nn/linear.py(114): forward'
    """
    if name is None:
        return "(no name)"
    frame = _PLACE_OF_FRAME.match(name)
    if frame:
        return _short_frame(frame["path"], frame["file"], width)
    short = escape(_CPP_NOISE.sub("", name)) or "(empty name)"
    return short if len(short) <= width else short[: width - 1] + "…"


def _short_frame(path: str, file: str, width: int) -> str:
    """Keep as many of the last folders as there is room for."""
    short = escape(file)
    folders = [folder for folder in re.split(r"[/\\]", path) if folder]
    for folder in reversed(folders):
        longer = f"{escape(folder)}/{short}"
        if len(longer) + 2 > width:
            break
        short = longer
    if short != escape("/".join([*folders, file])):
        short = f"…/{short}"
    return short if len(short) <= width else short[: width - 1] + "…"
