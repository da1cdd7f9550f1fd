"""Infers the steps of a run from its operators if the files do not contain them.

A step is assumed to begin with the first operator that runs as often as most operators, and to end
with the last run that starts before the next step. The result is marked as inferred.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.formats.mindspore.executions import Executions

_DIGITS: Final = 100_000
"""Worst relative precision of durations: one part in this number."""


class Step(NamedTuple):
    """A step: its number (from 1), start and end in nanoseconds."""

    number: int
    start_ns: int
    end_ns: int


def inferred_steps(runs: Executions, order: Sequence[int]) -> list[Step]:
    """Infer the steps; empty if no operator runs as often as most do, or only once.

    `order` has the rows of the runs sorted by start.
    """
    counts = Counter(runs.operator)
    if not counts:
        return []
    usual = Counter(counts.values()).most_common(1)[0][0]
    if usual < 2:  # noqa: PLR2004 - a single run shows no repetition
        return []
    opener = next(runs.operator[row] for row in order if counts[runs.operator[row]] == usual)
    steps: list[Step] = []
    start_ns: int | None = None
    end_ns = 0
    # What ran before the first step, such as the queue of the data set, belongs to no step.
    for row in order:
        if runs.operator[row] == opener:
            if start_ns is not None:
                steps.append(Step(len(steps) + 1, start_ns, end_ns))
            start_ns, end_ns = runs.start_ns[row], 0
        end_ns = max(end_ns, runs.start_ns[row] + runs.duration_ns[row])
    return steps if start_ns is None else [*steps, Step(len(steps) + 1, start_ns, end_ns)]


def enclosing_steps(
    steps: Sequence[Step], runs: Executions, order: Sequence[int]
) -> list[Step] | None:
    """Move the ends of steps by the rounding error, so that they enclose their runs.

    Durations have six digits, so a run may seem to end after its step. None if a run crosses the
    end of a step by more than that: then steps and runs are on different threads.
    """
    found, place = [], 0
    before_ns = -(2**63)
    for step in sorted(steps, key=lambda step: step.start_ns):
        end_ns = step.end_ns
        while place < len(order) and runs.start_ns[order[place]] < step.end_ns:
            row = order[place]
            ends_ns = runs.start_ns[row] + runs.duration_ns[row]
            is_inside = runs.start_ns[row] >= step.start_ns
            border_ns = step.end_ns if is_inside else step.start_ns
            if ends_ns > border_ns + 2 + runs.duration_ns[row] // _DIGITS:
                return None
            end_ns = max(end_ns, ends_ns)
            place += 1
        if step.start_ns < before_ns:
            return None
        before_ns = end_ns
        found.append(step._replace(end_ns=end_ns))
    return found
