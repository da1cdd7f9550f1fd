"""Which part of a trace an answer is about. Every command and function asks here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from longpole.errors import WindowError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Marked", "Window", "choose_window", "is_step", "launching_calls", "step_number"]

# A step in which more of the launches have lost their work is not complete: the
# profiler began or stopped within it.
_TOLERATED_LOSS = 0.01

_LARGEST = 2**63


class Marked(Protocol):
    """What is asked of a trace to choose a window in it."""

    @property
    def steps(self) -> pl.DataFrame:
        """The steps of the profiler."""
        ...

    @property
    def events(self) -> pl.DataFrame:
        """All events."""
        ...

    @property
    def launches(self) -> pl.DataFrame:
        """The GPU activities and what launched them."""
        ...

    @property
    def api_roles(self) -> pl.DataFrame:
        """What each runtime API call does, by its name."""
        ...

    @property
    def window(self) -> tuple[int, int] | None:
        """From the first to the last work."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a trace, and why it was chosen."""

    kind: Literal["step", "trace"]
    step: int | None
    start_ns: int
    end_ns: int
    reason: str

    @property
    def duration_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns

    @property
    def noun(self) -> str:
        """What shares of it are shares of."""
        return "step" if self.kind == "step" else "trace"

    @property
    def name(self) -> str:
        """The window in words."""
        return "whole trace" if self.step is None else f"step {self.step}"

    def times(self) -> dict[str, pl.Expr]:
        """Give `start_ns` and `end_ns` as columns."""
        import polars as pl

        return {name: pl.lit(getattr(self, name), pl.Int64) for name in ("start_ns", "end_ns")}

    def clip(self, events: pl.DataFrame) -> pl.DataFrame:
        """Take the events that ran in the window, with their time in it as `inside_ns`."""
        import polars as pl

        start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")
        inside_ns = pl.min_horizontal(end, self.end_ns) - pl.max_horizontal(start, self.start_ns)
        is_inside = (pl.col("duration_ns") >= 0) & (start < self.end_ns) & (end > self.start_ns)
        return events.filter(is_inside).with_columns(inside_ns=inside_ns)


def choose_window(
    trace: Marked, step: int | str | None = None, *, whole: bool = False
) -> Window | None:
    """Choose the step that was asked for, else the longest complete one, else the whole trace.

    Parameters
    ----------
    trace
        The trace.
    step
        The number of a step, as `3`, `"3"` or `"ProfilerStep#3"`.
    whole
        Take the whole trace, from the first to the last work of a main thread or device.

    Returns
    -------
    Window or None
        None where nothing in the trace has a duration.

    Raises
    ------
    WindowError
        There is no such step; the message names those there are.
    ValueError
        `step` is not the number of a step, or `whole` is given beside it.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().step(1, (0, 50)).step(2, (50, 150)).read()
    >>> choose_window(trace).step, choose_window(trace, "ProfilerStep#1").duration_ns
    (2, 50000)
    """
    if whole and step is not None:
        message = "step and whole exclude each other"
        raise ValueError(message)
    if whole:
        return _whole(trace, "as asked")
    if step is not None:
        return _longest(_numbered(trace.steps, step_number(step)), "as asked")
    if trace.steps.is_empty():
        return _whole(trace, "it marks no steps")
    return _default_step(trace)


def _default_step(trace: Marked) -> Window:
    """Choose a step of a trace that has some. This is the default of every answer."""
    steps, complete = trace.steps, _complete(trace)
    if complete.is_empty():
        return _longest(steps, f"the longest of {_count(steps)}, none of them complete")
    if steps.height == 1:
        return _longest(steps, "the only step")
    if complete.height == 1:
        return _longest(complete, f"the only complete one of {_count(steps)}")
    return _longest(complete, f"the longest of {_count(complete, 'complete ')}")


def is_step(trace: Marked) -> pl.Expr:
    """Tell annotations of steps, which say when and not what, by `event`."""
    import polars as pl

    return pl.col("event").is_in(trace.steps["event"].implode())


def step_number(step: int | str) -> int:
    """Read the number of a step, given as `6`, `"6"` or `"ProfilerStep#6"`.

    Examples
    --------
    >>> step_number("ProfilerStep#6")
    6
    """
    number = re.fullmatch(r"(?:ProfilerStep\s*#\s*)?(-?\d+)", str(step).strip())
    if number is None:
        message = f"a step is a number or ProfilerStep#N, not {step!r}"
        raise ValueError(message)
    return int(number[1])


def _numbered(steps: pl.DataFrame, number: int) -> pl.DataFrame:
    found = steps.filter(steps["step"] == number) if abs(number) < _LARGEST else steps.head(0)
    if found.is_empty():
        known = ", ".join(str(known) for known in steps["step"].unique().sort().head(20))
        there_are = f"it has {known}" if known else "it has no ProfilerStep annotations"
        message = f"the trace has no step {number}; {there_are}"
        raise WindowError(message)
    return found


def _longest(steps: pl.DataFrame, reason: str) -> Window:
    import polars as pl

    length = pl.col("window_end_ns") - pl.col("window_start_ns")
    row = steps.sort(length, "step", descending=[True, False], maintain_order=True).row(
        0, named=True
    )
    return Window("step", row["step"], row["window_start_ns"], row["window_end_ns"], reason)


def _whole(trace: Marked, reason: str) -> Window | None:
    window = trace.window
    return None if window is None else Window("trace", None, *window, reason)


def _count(steps: pl.DataFrame, which: str = "") -> str:
    return f"{steps.height:,} {which}step{'s' if steps.height > 1 else ''}"


def launching_calls(trace: Marked) -> pl.Series:
    """List the calls that put kernels on a device; `cudaLaunchHostFunc` is none of them."""
    import polars as pl

    role = pl.col("role").cast(pl.String)
    return trace.api_roles.filter(role.is_in(["launch", "graph_launch"]))["event"]


def _complete(trace: Marked) -> pl.DataFrame:
    """Take the steps of which the trace holds what they launched; all, where none has any."""
    import polars as pl

    steps = trace.steps.join(trace.events.select("event", "process"), on="event")
    launching = (
        trace.events.lazy()
        .filter(pl.col("event").is_in(launching_calls(trace).implode()))
        .select(
            "process", "start_ns", has_work=pl.col("event").is_in(trace.launches["call"].implode())
        )
        .sort("start_ns")
    )
    begun = steps.lazy().select(
        "process", "start_ns", "event", end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    lost = (
        launching.join_asof(
            begun.sort("start_ns"), on="start_ns", by="process", check_sortedness=False
        )
        .filter(pl.col("start_ns") < pl.col("end_ns"))
        .group_by("event")
        .agg(lost=(~pl.col("has_work")).mean())
        .filter(pl.col("lost") > _TOLERATED_LOSS)
        .collect()
    )
    if not trace.launches["call"].count():
        return trace.steps
    return trace.steps.join(lost, on="event", how="anti")
