"""Which rank of a job became late, or no longer is, by the joint graphs of both sides.

All ranks wait in a collective for the last one, so the steps of all change alike, and the wait is
not the cause: what made the late rank late is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.diffs.values import LateRank
from longpole.errors import LongpoleError
from longpole.jobs.joining import join_traces

if TYPE_CHECKING:
    from longpole.diffs.runs import Runs
    from longpole.jobs.late_ranks import RankRemedy

    Gains = dict[tuple[int, str, str | None], float]

# A smaller difference of what the steps wait for a rank, as a share of the step, does not count.
_LEAST: Final = 0.01


def late_rank(sides: list[Runs], step_name: str | None) -> LateRank | None:
    """Return the rank whose lateness changed the step most; None if that of no rank did."""
    if any(len(side.usual) == 1 for side in sides):
        return None
    base, new = (_gains(side, step_name) for side in sides)
    if base is None or new is None:
        return None
    base_ns, new_ns = (max(side.means_ns[0], 1.0) for side in sides)
    change_ns = new_ns - base_ns
    each = [
        LateRank(*key, base.get(key, 0.0), new.get(key, 0.0))
        for key in sorted({**base, **new}, key=str)
    ]
    found = [
        it for it in each if it.change_ns * change_ns > 0 and abs(it.change_ns) >= _LEAST * base_ns
    ]
    largest = max(found, key=lambda it: abs(it.change_ns), default=None)
    return None if largest is None else largest.at_most(change_ns)


def _gains(side: Runs, step_name: str | None) -> Gains | None:
    """Return how much shorter a step would be without each cause that makes a rank late."""
    named = [(f"rank {it.recorded.rank}", it.recorded) for it in side.usual]
    try:
        joined = join_traces(named, step_name=step_name)
        remedies: tuple[RankRemedy, ...] = joined.late_ranks()
    except LongpoleError:
        return None
    n_steps = max(len(joined.steps), 1)
    gains: Gains = {}
    for it in remedies:
        key = (it.rank, it.cause, it.name)
        gains[key] = max(gains.get(key, 0.0), it.gain_ns / n_steps)
    return gains
