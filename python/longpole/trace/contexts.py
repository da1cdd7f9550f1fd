"""Times of chains of frames: on their threads, and on devices through their launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from longpole._core import context_times as measure
from longpole.rows.frames import frame_of, row_bytes
from longpole.rows.selection import matching
from longpole.trace.sweeps import activities

if TYPE_CHECKING:
    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

Frame = Literal["annotation", "operator", "python", "module", "call", "other"]


@dataclass(frozen=True, slots=True)
class Rest:
    """GPU activities that no frame launched, and their time."""

    count: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class ContextTimes:
    """The calling context tree of a window.

    `tree` has a row for each chain of frames, after its parent: `context`, `parent`, `lane`,
    `first` (an event that is its innermost frame), `name`, `is_outermost` (no other frame of the
    chain has the name), `count` (of such events in the window), `own_ns` (time in which no nested
    event ran), `self_ns` (time in which no nested frame ran), `total_ns`, `n_self` and
    `device_self_ns` (the GPU activities whose innermost frame it is), `n_activities` and
    `device_ns` (including nested frames), `backward_self_ns` and `backward_ns` (the GPU activities
    of their backward pass).

    `events` has the `context` of each `event` of a thread.
    """

    tree: pl.DataFrame
    events: pl.DataFrame
    outside: Rest
    """GPU activities launched outside all frames."""
    unlinked: Rest
    """GPU activities whose launching call is not in the trace."""


def context_times(
    trace: Trace,
    window: Window,
    *frames: Frame,
    annotation_names: str | None = None,
    by_inputs: bool = False,
    where: pl.Expr | str | None = None,
) -> ContextTimes:
    """Measure the time of each chain of frames within a window.

    On threads, it is the time of the host work that belongs to the window, also outside of it.

    With `"operator"` among the frames, an activity of a backward pass counts for the operator that
    launched it, and also in `backward_self_ns` of the forward operator. Otherwise it counts once:
    for the frame that launched it, else for that of the forward operator.

    Parameters
    ----------
    frames
        Which events are frames.
    annotation_names
        A regular expression for the annotations that are frames.
    by_inputs
        Whether frames with different input shapes or types are distinct.
    where
        A condition on the columns of the table `activities`, to select those that count.

    Raises
    ------
    ValueError
        A pattern or condition is invalid.
    """
    chosen = None
    if where is not None:
        chosen = row_bytes(matching(activities(trace), where)["event"])
    tree, events, outside, unlinked = measure(
        trace.core,
        frames,
        window.span,
        host=window.on_host.span,
        annotation_names=annotation_names,
        by_inputs=by_inputs,
        chosen=chosen,
    )
    return ContextTimes(frame_of(tree), frame_of(events), Rest(*outside), Rest(*unlinked))
