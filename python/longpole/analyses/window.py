"""Which span of a trace an analysis is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

if TYPE_CHECKING:
    from longpole.trace import Trace

__all__ = ["Window", "choose_window", "is_step", "launching_calls"]

# A step in which more of the launches have lost their work is not complete: the
# profiler began or stopped within it.
_TOLERATED_LOSS = 0.01


@dataclass(frozen=True, slots=True)
class Window:
    """A span of a trace, and why it was chosen."""

    kind: Literal["step", "trace"]
    step: int | None
    start_ns: int
    end_ns: int
    reason: str

    @property
    def span_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns

    @property
    def noun(self) -> str:
        """What shares of it are shares of."""
        return "step" if self.kind == "step" else "trace"


def choose_window(trace: Trace, step: int | None = None) -> Window | None:
    """Choose the step with a number, else the longest complete one, else the whole trace.

    None where nothing in the trace has a duration.

    Raises
    ------
    ValueError
        There is no step with this number; the message names those there are.
    """
    steps = trace.steps
    if step is not None:
        return _longest(_numbered(steps, step), f"step {step}, as asked")
    if steps.is_empty():
        return _whole(trace)
    complete = _complete(trace)
    if complete.is_empty():
        return _longest(steps, f"the longest of {_count(steps)}, none of them complete")
    if steps.height == 1:
        return _longest(steps, "the only step")
    if complete.height == 1:
        return _longest(complete, f"the only complete one of {_count(steps)}")
    return _longest(complete, f"the longest of {_count(complete, 'complete ')}")


def launching_calls(trace: Trace) -> pl.Series:
    """List the calls that put kernels on a device; `cudaLaunchHostFunc` is none of them."""
    role = pl.col("role").cast(pl.String)
    return trace.api_roles.filter(role.is_in(["launch", "graph_launch"]))["event"]


def is_step(trace: Trace) -> pl.Expr:
    """Tell annotations of steps, which say when and not what, by `event`."""
    return pl.col("event").is_in(trace.steps["event"].implode())


def _numbered(steps: pl.DataFrame, number: int) -> pl.DataFrame:
    found = steps.filter(pl.col("step") == number)
    if found.is_empty():
        known = ", ".join(str(known) for known in steps["step"].unique().sort().head(20))
        there_are = f"it has {known}" if known else "it has no ProfilerStep annotations"
        message = f"the trace has no step {number}; {there_are}"
        raise ValueError(message)
    return found


def _longest(steps: pl.DataFrame, reason: str) -> Window:
    length = pl.col("window_end_ns") - pl.col("window_start_ns")
    row = steps.sort(length, "step", descending=[True, False], maintain_order=True).row(
        0, named=True
    )
    return Window("step", row["step"], row["window_start_ns"], row["window_end_ns"], reason)


def _whole(trace: Trace) -> Window | None:
    window = trace.window
    if window is None:
        return None
    return Window("trace", None, *window, "it marks no steps")


def _count(steps: pl.DataFrame, which: str = "") -> str:
    return f"{steps.height:,} {which}step{'s' if steps.height > 1 else ''}"


def _complete(trace: Trace) -> pl.DataFrame:
    """Take the steps of which the trace holds what they launched; all, where none has any."""
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
