"""Measured gains of remedies, with the gains predicted from an earlier trace.

`examples/remedies/measure.py` writes the file. Wrong predictions are kept.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from longpole.words.data import Row


class Measurement(Row):
    """A program that was timed without and with a fix, in turns, and recorded."""

    remedy: str
    program: str
    """A file of `examples/remedies`."""
    device: str
    torch: str
    date: str
    slow_ms: float
    """Time of a step without a profiler."""
    mended_ms: float
    gain: list[float]
    """Median gain as a fraction, the second smallest and the second largest."""
    predicted_first: list[float] | None
    """Lower and upper bound from the trace of the slow program, by the version of longpole that
    recorded it; null if the remedy was not found or its gain not computed."""
    predicted: list[float] | None
    """Bounds by the version of longpole that contains the file, which may have learned from it."""
    is_named_first: bool
    is_named: bool
    """Whether the verdict of the slow program reports the remedy, then and now."""
    is_named_after: bool
    """Whether the verdict of the fixed program still reports it."""


@cache
def _all() -> tuple[Measurement, ...]:
    text = files("longpole.remedies").joinpath("evidence.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def measured(remedy: str) -> list[Measurement]:
    """List the measured gains of a remedy; empty if it was not measured."""
    return [row for row in _all() if row["remedy"] == remedy]


def in_words(row: Measurement) -> str:
    """Return a measurement as a clause: the gain, the prediction, and the machine."""
    gain, least, most = row["gain"]
    after = "; still named when fixed" if row["is_named_after"] else ""
    return (
        f"{row['program']}: {row['slow_ms']:.2f} to {row['mended_ms']:.2f} ms, saves "
        f"{100 * gain:.0f} % ({100 * least:.0f} to {100 * most:.0f}){_predicted(row)}{after} "
        f"({row['device']}, torch {row['torch']}, {row['date']})"
    )


def _predicted(row: Measurement) -> str:
    """Return what a verdict that names the remedy predicts; empty if none does."""
    first = row["predicted_first"] if row["is_named_first"] else None
    now = row["predicted"] if row["is_named"] else None
    if now is None:
        return ""
    if first is None or first == now:
        return f"; predicted: {_interval(now)}"
    return f"; predicted when it was recorded: {_interval(first)}; now: {_interval(now)}"


def predictions(row: Measurement) -> tuple[str, str]:
    """Return the predictions at the time of the recording and now, as text."""
    first = _in_words(row["predicted_first"], is_named=row["is_named_first"])
    return first, _in_words(row["predicted"], is_named=row["is_named"])


def _in_words(predicted: list[float] | None, *, is_named: bool) -> str:
    if predicted is None:
        return "not computed" if is_named else "not named"
    told = _interval(predicted)
    return told if is_named else f"{told}, not named"


def _interval(predicted: list[float]) -> str:
    least, most = (f"{100 * gain:.0f}" for gain in predicted)
    return f"{least} %" if least == most else f"{least} to {most} %"
