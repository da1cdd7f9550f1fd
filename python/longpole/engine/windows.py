"""Chooses the part of a trace that an answer covers, for every command and function."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from longpole.engine.question import Question
from longpole.errors import WindowError
from longpole.words.data import HIDDEN, computed

if TYPE_CHECKING:
    from typing import Unpack

    import polars as pl

    from longpole.engine.question import WindowParts

Unit = Literal["step", "repetition", "annotation", "time_range", "trace"]
"""The kind of a window."""


def noun_of(unit: str) -> str:
    """Return the noun for a unit in a sentence.

    Examples
    --------
    >>> noun_of("step"), noun_of("time_range")
    ('step', 'window')
    """
    return "window" if unit == "time_range" else unit


class Marked(Protocol):
    """The parts of a trace used to choose a window."""

    @property
    def steps(self) -> pl.DataFrame:
        """The steps of the program."""
        ...

    def scope(
        self, question: Question | None = None
    ) -> tuple[str, int | None, tuple[tuple[int, int], tuple[int, int]], tuple[str, str]]:
        """Return the unit of the window, its number, times, the reason, and how to show it.

        The times are those of the window, and those in which its host work begins.
        """
        ...

    def times_of(self, question: Question) -> tuple[int, int]:
        """Return the two times of a question, at the times of the trace."""
        ...

    @property
    def api_roles(self) -> pl.DataFrame:
        """Role of each runtime API call, by its name."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a trace, and why it was chosen."""

    kind: Unit
    step: int | None
    start_ns: int
    end_ns: int
    reason: str
    clause: str = field(default="", metadata=HIDDEN)
    """The part of the reason that affects the answer; usually empty."""
    asked: str = field(default="", metadata=HIDDEN)
    """The requested annotation or time range, as a phrase; empty without one."""
    host: tuple[int, int] | None = field(default=None, metadata=HIDDEN)
    """Start and end of the time in which the host work that belongs to it begins, if it is a step;
    otherwise it contains its host work."""

    @computed
    def duration_ns(self) -> int:
        """Length of the window."""
        return self.end_ns - self.start_ns

    @property
    def is_part(self) -> bool:
        """Whether it is not the whole trace."""
        return self.kind != "trace"

    @property
    def span(self) -> tuple[int, int]:
        """Start and end, in ns."""
        return self.start_ns, self.end_ns

    @property
    def on_host(self) -> Window:
        """The time in which the host work that belongs to it begins, as a window."""
        if self.host is None:
            return self
        start_ns, end_ns = self.host
        return replace(self, start_ns=start_ns, end_ns=end_ns)

    @property
    def noun(self) -> str:
        """Noun for the whole that shares of the window refer to."""
        return noun_of(self.kind)

    @property
    def name(self) -> str:
        """The window as a phrase."""
        names = {
            "trace": "whole trace",
            "step": f"step {self.step}",
            "time_range": _between(self.span),
        }
        return self.asked or names.get(self.kind, f"one {self.kind}")

    @property
    def title(self) -> str:
        """The window as a phrase, with the part of the reason that affects the answer."""
        return f"{self.name} ({self.clause})" if self.clause else self.name

    def times(self) -> dict[str, pl.Expr]:
        """Return `start_ns` and `end_ns` as columns."""
        import polars as pl

        return {name: pl.lit(getattr(self, name), pl.Int64) for name in ("start_ns", "end_ns")}

    def starting(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events that start in the window, by their column `start_ns`."""
        import polars as pl

        start_ns = pl.col("start_ns")
        return events.filter((start_ns >= self.start_ns) & (start_ns < self.end_ns))

    def clip(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events that overlap the window; `inside_ns` is their time in the window."""
        import polars as pl

        start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")
        inside_ns = pl.min_horizontal(end, self.end_ns) - pl.max_horizontal(start, self.start_ns)
        is_inside = (pl.col("duration_ns") >= 0) & (start < self.end_ns) & (end > self.start_ns)
        return events.filter(is_inside).with_columns(inside_ns=inside_ns)


def choose_window(
    trace: Marked, step: int | str | None = None, **question: Unpack[WindowParts]
) -> Window | None:
    """Choose the requested window, or the step of median length.

    The default is the step of median length in the longest run of complete steps that each follow
    another step. Without `ProfilerStep`, regular annotations mark the steps, else repetitions of
    GPU activities; without any of these it is the whole trace.

    Parameters
    ----------
    trace
        The trace.
    step, **question
        `step`, `annotation`, `instance`, `between`, `whole` and `step_name`, as for
        `longpole.Question`.

    Returns
    -------
    Window or None
        None if nothing in the trace has a duration.

    Raises
    ------
    WindowError
        The step or annotation does not exist (the message lists those that do), or `step_name`
        marks no iterations.
    ValueError
        `step` is not the number of a step, `between` ends before it starts, or more than one
        of `step`, `annotation`, `between` and `whole` is given.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().step(1, (0, 50)).step(2, (50, 150)).read()
    >>> choose_window(trace).step, choose_window(trace, "ProfilerStep#1").duration_ns
    (2, 50000)
    """
    return window_for(trace, Question(step=step, **question))


def window_for(trace: Marked, question: Question) -> Window | None:
    """Return the window of a question; None if nothing in the trace has a duration."""
    if question.between is not None:
        named = _between(question.between)
        return Window("time_range", None, *trace.times_of(question), "as asked", asked=named)
    try:
        unit, number, (span, host), why = trace.scope(question)
    except WindowError:
        if (question.step, question.annotation, question.step_name) != (None, None, None):
            raise
        return None
    kind: Any = unit
    shown = number if unit == "step" else None
    return Window(kind, shown, *span, *why, question.named, host)


def _between(times_ns: tuple[int, int]) -> str:
    start_ns, end_ns = times_ns
    return f"from {start_ns} to {end_ns} ns"


def window_of(trace: Marked, window: Window | None) -> Window | None:
    """Return the requested window, by default the one that `choose_window` chooses."""
    return choose_window(trace) if window is None else window


def is_step(trace: Marked) -> pl.Expr:
    """Whether an event is an annotation of a step, which marks time rather than work."""
    import polars as pl

    return pl.col("event").is_in(trace.steps["event"].implode())


def launching_calls(trace: Marked) -> pl.Series:
    """List the calls that launch kernels; `cudaLaunchHostFunc` is not one of them."""
    import polars as pl

    role = pl.col("role").cast(pl.String)
    return trace.api_roles.filter(role.is_in(["launch", "graph_launch"]))["event"]
