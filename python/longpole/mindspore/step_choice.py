"""Which stretch of a profile some steps are, to cut its timeline to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longpole.mindspore.errors import ProfileError
from longpole.mindspore.executions import read_executions
from longpole.mindspore.findings import Findings
from longpole.mindspore.steps import Step, inferred_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.mindspore.layouts import RankFiles
    from longpole.mindspore.step_trace import StepTrace

__all__ = ["chosen_steps", "window_of"]


def chosen_steps(trace: StepTrace, numbers: Sequence[int]) -> StepTrace:
    """Keep some steps of a step trace.

    Raises
    ------
    ProfileError
        None of them is there (`no_such_step`).
    """
    wanted = set(numbers)
    chosen = [step for step in trace.steps if step.number in wanted]
    if not chosen:
        raise _absent(trace.path, numbers, len(trace.steps))
    return replace(trace, steps=chosen)


def window_of(
    files: RankFiles, trace: StepTrace | None, numbers: Sequence[int]
) -> tuple[int, int] | None:
    """Give the first start and the last end of some steps in ns; None where nothing has a time.

    Without a step trace, the steps are those that the timeline of the CPU infers.
    """
    if trace is not None:
        spans = chosen_steps(trace, numbers).spans()
    else:
        path = files.get("cpu_op_execute_timestamp")
        if path is None:
            return None
        runs = read_executions(path, Findings())
        spans = _among(path, inferred_steps(runs, runs.by_start()), numbers)
    return spans[0].start_ns, max(step.end_ns for step in spans)


def _among(path: Path, steps: Sequence[Step], numbers: Sequence[int]) -> list[Step]:
    chosen = [step for step in steps if step.number in set(numbers)]
    if not chosen:
        raise _absent(path, numbers, len(steps))
    return chosen


def _absent(path: Path, numbers: Sequence[int], count: int) -> ProfileError:
    message = f"none of the steps {numbers[0]} to {numbers[-1]} is there"
    hint = f"the profile has the steps 1 to {count}" if count else "the profile marks no steps"
    return ProfileError(path, "no_such_step", message, hint=hint)
