"""A callback that records some steps of a training that calls it before and after each step."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longpole.mindspore.profiler import Profiler

__all__ = ["step_callback"]


def step_callback(profiler: Profiler, start_step: int, stop_step: int) -> Any:
    """Make a callback for `mindspore.train.Model.train`, or for a loop of one's own.

    The object has `step_begin`, `step_end` and `end`, each taking a run context with
    `original_args().cur_step_num`. Where the program has imported MindSpore, it is one of its
    `Callback`.

    Parameters
    ----------
    profiler
        Made with `start_profile=False`.
    start_step, stop_step
        The first and the last step to record, from 1.

    Raises
    ------
    ValueError
        The last step comes before the first.
    """
    if stop_step < start_step:
        message = f"the last step, {stop_step}, comes before the first, {start_step}"
        raise ValueError(message)
    mindspore = sys.modules.get("mindspore")
    base: Any = mindspore.train.Callback if mindspore is not None else object

    class StepCallback(base):  # type: ignore[misc]
        """Starts before the first step and stops after the last."""

        def step_begin(self, run_context: Any) -> None:
            """Start before the first of the steps."""
            if run_context.original_args().cur_step_num == start_step:
                profiler.start()

        def step_end(self, run_context: Any) -> None:
            """Mark a step, and stop after the last."""
            number = run_context.original_args().cur_step_num
            if number == stop_step:
                profiler.stop()
            elif start_step <= number < stop_step:
                profiler.step()

        def end(self, run_context: Any) -> None:  # noqa: ARG002 (MindSpore's signature)
            """Analyse what was recorded."""
            profiler.analyse()

    return StepCallback()
