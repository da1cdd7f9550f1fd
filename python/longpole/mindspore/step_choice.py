"""The time span of selected steps, to cut the step trace and timeline of a profile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from longpole.mindspore.errors import ProfileError
from longpole.mindspore.executions import read_executions
from longpole.mindspore.findings import Findings
from longpole.mindspore.step_trace import StepPoints
from longpole.mindspore.steps import Step, inferred_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.mindspore.layouts import RankFiles
    from longpole.mindspore.step_trace import StepTrace

__all__ = ["cut_to_steps"]

S = TypeVar("S", Step, StepPoints)


def cut_to_steps(
    files: RankFiles, trace: StepTrace | None, numbers: Sequence[int]
) -> tuple[StepTrace | None, tuple[int, int] | None]:
    """Keep some steps of a step trace; return their first start and last end in ns.

    Without a step trace, the steps are inferred from the timeline of the CPU.

    Raises
    ------
    ProfileError
        None of the steps exists (`no_such_step`).
    """
    path = files.get("cpu_op_execute_timestamp")
    if trace is not None:
        trace = replace(trace, steps=_chosen(trace.path, trace.steps, numbers))
        spans = trace.spans()
    elif path is not None:
        runs = read_executions(path, Findings())
        spans = _chosen(path, inferred_steps(runs, runs.by_start()), numbers)
    else:
        return None, None
    return trace, (spans[0].start_ns, max(step.end_ns for step in spans))


def _chosen(path: Path, steps: Sequence[S], numbers: Sequence[int]) -> list[S]:
    chosen = [step for step in steps if step.number in set(numbers)]
    if not chosen:
        message = f"none of the steps {numbers[0]} to {numbers[-1]} is there"
        known = f"the profile has the steps 1 to {len(steps)}"
        hint = known if steps else "the profile marks no steps"
        raise ProfileError(path, "no_such_step", message, hint=hint)
    return chosen
