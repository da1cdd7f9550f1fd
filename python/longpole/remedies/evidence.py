"""What remedies were measured to save, beside what was predicted from a trace before.

`examples/remedies/measure.py` writes the file. What turned out wrong stays in.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from longpole.data import Row

__all__ = ["Measurement", "in_words", "measured", "predicted_in_words"]


class Measurement(Row):
    """A program that was timed slow and mended, in turns, and recorded."""

    remedy: str
    program: str
    """A file of `examples/remedies`."""
    device: str
    torch: str
    date: str
    slow_ms: float
    """A step without a profiler."""
    mended_ms: float
    gain: list[float]
    """The median of the shares that are saved, the second least and the second greatest."""
    predicted: list[float] | None
    """The least and the most, from the trace of the slow program; null if not found or computed."""
    is_named: bool
    """Whether the verdict of the slow program names the remedy."""
    is_named_after: bool
    """Whether that of the mended program still does."""


@cache
def _all() -> tuple[Measurement, ...]:
    text = files("longpole.remedies").joinpath("evidence.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def measured(remedy: str) -> list[Measurement]:
    """List what a remedy was measured to save; nothing where it was not measured."""
    return [row for row in _all() if row["remedy"] == remedy]


def in_words(row: Measurement) -> str:
    """Return a measurement as a clause: the gain, what was predicted, and where."""
    gain, least, most = row["gain"]
    if not row["is_named"]:
        named = "not named"
    elif row["is_named_after"]:
        named = "named, and still named afterwards"
    else:
        named = "named, and not afterwards"
    return (
        f"{row['program']}: {row['slow_ms']:.2f} to {row['mended_ms']:.2f} ms, saves "
        f"{100 * gain:.0f} % ({100 * least:.0f} to {100 * most:.0f}), predicted "
        f"{predicted_in_words(row)}; {named} ({row['device']}, torch {row['torch']}, {row['date']})"
    )


def predicted_in_words(row: Measurement) -> str:
    """Return what was predicted from the trace of the slow program."""
    if row["predicted"] is None:
        return "not computed" if row["is_named"] else "not found"
    least, most = (f"{100 * gain:.0f}" for gain in row["predicted"])
    return f"{least} %" if least == most else f"{least} to {most} %"
