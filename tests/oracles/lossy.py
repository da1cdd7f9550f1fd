"""Programs of which the profiler lost records, and what each remedy really gains in them.

The verdict on what is left gives an interval for each gain. The program runs again with the
remedy, and what it then gains should lie in the interval. What is lost is lost to the trace only:
the truth is that of runs that lose nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import longpole
from longpole.engine.critical_path.changes import RemoveWait

from .rerun import REMAINS, SIDES, varied_program
from .simulator import Losses, Machine, NoWait, Run, Scale, graphed
from .simulator.branching import branched_graph, joint_collectives, pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longpole.answer import Verdict

    from .simulator import Change

SLACK: Final = 0.02
"""A measured gain may lie so far outside of its interval."""

SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6)
"""How much is lost."""

_REMEDIES: Final[dict[str, list[Change]]] = {
    **{side: [Scale(kind, by=REMAINS) for kind in kinds] for side, kinds in SIDES.items()},
    "blocking_calls": [NoWait("sync_return")],
    "stream_waits": [NoWait("event_wait")],
}

_WHOLLY_MEASURED: Final = frozenset({"blocking_calls", "stream_waits"})

_OTHERS: Final[dict[str, Callable[[int], object]]] = {
    "graph on one stream": partial(graphed, steps=5),
    "graph over 4 streams": partial(branched_graph, streams=4, replays=8),
    "two devices": partial(pipeline, devices=2, steps=5),
    "two ranks": partial(joint_collectives, devices=2, steps=5),
}


@dataclass(frozen=True)
class Interval:
    """What a verdict says of one gain, and what was measured."""

    remedy: str
    low: float
    high: float
    measured: float

    @property
    def width(self) -> float:
        """How far the ends are apart."""
        return self.high - self.low

    @property
    def holds(self) -> bool:
        """Whether the measured gain lies in it, but for the slack.

        Where less work ends the steps before earlier than these, they have their recorded length.
        """
        low = self.low if self.remedy in _WHOLLY_MEASURED else (1 - REMAINS) * self.low
        return low - SLACK <= max(self.measured, 0.0) <= self.high + SLACK


@dataclass(frozen=True)
class Lossy:
    """A verdict on a trace with losses, with the true answer."""

    seed: int
    lost: str
    share: float
    program: str
    status: str
    sides: tuple[str, ...]
    intervals: tuple[Interval, ...]

    @property
    def truth(self) -> dict[str, float]:
        """What each side really gains."""
        return {it.remedy: it.measured for it in self.intervals if it.remedy in SIDES}

    @property
    def is_clear(self) -> bool:
        """Whether gains could be measured, and one side gains more than all others by 5 points."""
        first, second, *_ = *sorted(self.truth.values(), reverse=True), 0.0, 0.0
        return first - second >= 0.05

    @property
    def is_named(self) -> bool:
        """Whether the verdict names what holds the program up, or that nothing does alone."""
        return self.status in {"ok", "balanced"}

    @property
    def is_wrong(self) -> bool:
        """Whether the side that gains most is clear and not among the named ones."""
        best = max(self.truth, key=lambda side: self.truth[side], default=None)
        return self.is_named and self.is_clear and best not in self.sides


def lossy_program(seed: int) -> tuple[Run, str, float, str]:
    """Run a program and lose some of its records: what, how much, and of what program."""
    dice = random.Random(f"lossy {seed}")  # noqa: S311 - not a secret
    program = dice.choice(("varied", "varied", "varied", "varied", *_OTHERS))
    lost, share = dice.choice(("launches", "kernels", "blocks", "buffer")), dice.choice(SHARES)
    run = (
        varied_program(seed)
        if program == "varied"
        else Run(_OTHERS[program](seed), Machine(seed=seed))
    )
    is_graph = program.startswith("graph")
    if is_graph and lost == "kernels":
        lost = "graph_nodes"
    begin = dice.uniform(0.0, 1.0 - share)
    value = (begin, begin + share) if lost == "buffer" else share
    losses = replace(Losses(), **{lost: value})
    return (
        Run(run.program, run.machine, run.changes, losses=losses),
        lost,
        share,
        program,
    )


def judged_lossy(seed: int, folder: Path, *, sync_records: bool = True) -> Lossy:
    """Ask for the verdict on what is left of a run, and run it again with each remedy."""
    run, lost, share, program = lossy_program(seed)
    run.write(folder / f"{seed}.json", sync_records=sync_records)
    trace = longpole.read_trace(folder / f"{seed}.json", args="ids")
    verdict = trace.verdict(whole=not any(window.step for window in run.truth.windows))
    if verdict.window.unit not in {"step", "trace"}:
        verdict = trace.verdict(whole=True)
    complete = Run(run.program, run.machine, run.changes)
    before_ns = _length_ns(complete, verdict)
    asked = _asked(verdict, _waits_of(trace, verdict), run) if before_ns > 0 else []
    intervals = [
        Interval(remedy, *interval, 1 - _length_ns(complete.again(changed), verdict) / before_ns)
        for remedy, interval, changed in asked
    ]
    return Lossy(seed, lost, share, program, verdict.status, verdict.sides, tuple(intervals))


def _length_ns(run: Run, verdict: Verdict) -> int:
    """Return the total time of a verdict's windows in a run without losses.

    Steps follow each other: they last from when all before them were over until all of them are.
    That is 0 where an earlier one is over last, and then no gain can be measured.
    """
    windows = {window.name: window for window in run.truth.windows}
    if verdict.window.unit == "trace":
        return windows["trace"].duration_ns
    first, last = min(verdict.steps), max(verdict.steps)
    over_ns = {step: windows[f"step {step}"].end_ns for step in range(last + 1)}
    before = [end_ns for step, end_ns in over_ns.items() if step < first]
    begin_ns = max(before, default=windows[f"step {first}"].start_ns)
    return max(over_ns.values()) - begin_ns


def _waits_of(trace: longpole.Trace, verdict: Verdict) -> dict[str, tuple[float, float]]:
    """Return the gain of each remedy that removes all waits of a kind, whatever its places."""
    found: dict[str, tuple[float, float]] = {}
    for remedy in _WHOLLY_MEASURED:
        rows = [row for row in verdict.remedies if row.remedy == remedy]
        if len(rows) == 1:
            found[remedy] = (rows[0].gain.low, rows[0].gain.high)
        elif rows:
            # Calls that only wait and reads are two lines; a run without waits has neither.
            gain = trace.gain([RemoveWait()], whole=verdict.window.unit == "trace")
            found[remedy] = (gain.low, max(gain.high, *(row.gain.high for row in rows)))
    return found


def _asked(
    verdict: Verdict, waits: dict[str, tuple[float, float]], run: Run
) -> list[tuple[str, tuple[float, float], list[Change]]]:
    """Return the remedies that can be simulated, with their intervals."""
    said = {side: (gain.low, gain.high) for side, gain in verdict.gains.items()} | waits
    known = [name for name in _REMEDIES if name in said]
    return [(name, said[name], [*run.changes, *_REMEDIES[name]]) for name in known]
