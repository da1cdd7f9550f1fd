"""Draws two runs as swim lanes: a step of each side as recorded, one picture below the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from longpole.plot.lanes import add_lanes, left_out
from longpole.plot.layout import Layout, longest, path_spans
from longpole.words.wording import duration

if TYPE_CHECKING:
    from longpole.answer.answer import Answer
    from longpole.diffs import Diff, DiffSide
    from longpole.engine.windows import Window
    from longpole.report.lanes import Lanes
    from longpole.trace.trace import Trace

_MOST_EVENTS: Final = 2_000
_MOST_ROWS: Final = 16

# If one step is more than this many times as long as the other, each has its own axis.
_MOST_SHARED: Final = 4


def diff_lanes(found: Diff) -> list[Lanes]:
    """Lay out the step of each side that the verdict is about, as one picture for each side.

    Both have the same axis, unless one of them would be too small to see. Empty if a side has no
    such step.
    """
    sides = {"base": found.base, "new": found.new}
    answers = {name: _drawn(side) for name, side in sides.items()}
    drawn = {name: answer.as_recorded for name, answer in answers.items() if answer is not None}
    lengths_ns = [_window(answer).duration_ns for answer in drawn.values()]
    if len(lengths_ns) < len(sides):
        return []
    is_shared = max(lengths_ns) <= _MOST_SHARED * min(lengths_ns)
    return [
        _lanes(
            name,
            answer,
            axis_ns=max(lengths_ns) if is_shared else _window(answer).duration_ns,
            is_shared=is_shared,
        )
        for name, answer in drawn.items()
    ]


def _drawn(side: DiffSide) -> Answer | None:
    """Return the answer about the step of a side that is drawn; None if nothing is timed."""
    answer, span = side.answer, side.verdict.window
    if answer is None or answer.window is None or not answer.window.duration_ns:
        return None
    if span.unit != "step" or span.number in {None, answer.window.step}:
        return answer
    trace = cast("Trace", answer.trace)
    of_step: Answer = trace.answer_as_timed(answer.question.about(span.number))
    return of_step


def _window(answer: Answer) -> Window:
    assert answer.window is not None  # noqa: S101 (only such answers are drawn)
    return answer.window


def _lanes(name: str, answer: Answer, *, axis_ns: int, is_shared: bool) -> Lanes:
    """Lay out one side: its critical path, then its streams and threads."""
    layout, window, trace = Layout(), _window(answer), cast("Trace", answer.trace)
    segments = answer.path.segments
    kept = longest(segments, _MOST_EVENTS)
    layout.add("critical path", path_spans(kept, window))
    n_left_out = segments.height - kept.height
    n_left_out += add_lanes(layout, trace, window, most=_MOST_EVENTS, most_rows=_MOST_ROWS)
    title = "Base" if name == "base" else "New side"
    axis = "the same axis as the other side" if is_shared else "an axis of its own"
    took = f"{duration(window.duration_ns)} as recorded"
    return layout.lanes(
        f"{title}: what ran in {window.name}, {took}, on {axis}.",
        axis_ns,
        paths=[("", window.duration_ns)],
        notes=left_out(n_left_out),
    )
