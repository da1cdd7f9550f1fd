"""Functions, timed until the answer is sure enough, or nothing more can be learnt.

Each function is called once and its result checked. It is then called until its time settles,
in batches where one call is too short for the clock. From there on the functions take turns,
one sample each, so that what slows the machine down slows all of them. Every sample is kept.
"""

from __future__ import annotations

import gc
import math
import platform
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.clocks import Clock, CpuClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.compare.stats import Summary

__all__ = ["Effort", "Stop", "Timing", "measure", "measure_in_turns"]

SCHEMA: Final = "longpole.bench.timing/1"

# A function is warm when two windows of samples, one after the other, agree so well.
_WINDOW: Final = 5
_SETTLED: Final = 0.02

# The interval shrinks with the root of the number of samples: to 0.7 when it doubles. Where it
# stays above 0.9, more samples buy nothing. Below 100 samples its width is chance.
_PLATEAU: Final = 0.9
_PLATEAU_FROM: Final = 100
_LOOKS_TO_DOUBLE: Final = 2
_LOOK_AGAIN_AT: Final = 2 ** (1 / _LOOKS_TO_DOUBLE)

# A batch grows no further, even where the clock still sees no time pass.
_MOST_CALLS: Final = 1 << 20


class Stop(StrEnum):
    """Why no more samples were taken."""

    PRECISION = "precision"
    PLATEAU = "plateau"
    BUDGET = "budget"
    SAMPLES = "samples"


@dataclass(frozen=True, slots=True)
class Effort:
    """When to stop.

    Parameters
    ----------
    precision
        Half the width of the interval of the median, as a share of it, that is good enough.
    confidence
        Of that interval.
    budget_s
        Time for all of it, warm-up included, of which warm-up takes a fifth at most.
    min_samples, max_samples
        Of each function. A spent budget stops below the minimum, too.

    Examples
    --------
    >>> Effort(budget_s=20).max_samples
    1000
    """

    precision: float = 0.005
    confidence: float = 0.95
    budget_s: float = 5.0
    min_samples: int = 50
    max_samples: int = 1000


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured of one function.

    Parameters
    ----------
    key
        What to compare it under.
    outcome
        `ok`; `raised`, where the function did; `wrong`, where its result failed the check;
        `no_time`, where the clock saw none pass.
    message
        Why it is not `ok`.
    samples_ns
        Time of one call, from each batch, in the order they were taken in. Empty where the
        outcome is not `ok`.
    n_calls
        Of each batch.
    n_warm_up_calls
        That came before, and are not among the samples.
    is_settled
        Whether the time had settled by then.
    stopped_by
        Why there are no more samples.
    clock, cache, device
        What took the time, how the caches were left, and what was timed.
    environment
        Where it was measured.
    """

    key: str
    outcome: str
    message: str
    samples_ns: tuple[float, ...]
    n_calls: int
    n_warm_up_calls: int
    is_settled: bool
    stopped_by: str | None
    clock: str
    cache: str | None
    device: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def summarise(self, *, confidence: float = 0.95) -> Summary | None:
        """Say what the samples say together; None where there is none."""
        from longpole.bench.compare.stats import summarise

        return summarise(self.samples_ns, confidence=confidence) if self.samples_ns else None

    def to_dict(self) -> dict[str, Any]:
        """Give a record, as a file of measurements holds them."""
        return {"schema": SCHEMA, **asdict(self)}


def measure(
    function: Callable[[], object],
    *,
    key: str | None = None,
    clock: Clock | None = None,
    check: Callable[[Any], object] | None = None,
    effort: Effort | None = None,
) -> Timing:
    """Time a function.

    Parameters
    ----------
    function
        Called without arguments.
    key
        What to compare it under; its own name if there is none.
    clock
        Wall time on the processor if there is none.
    check
        Gets the result of the first call and of one after the last. Where it says False, or
        raises, the function has no time.
    effort
        When to stop.

    Examples
    --------
    >>> from longpole.bench.time.clocks import FakeClock
    >>> clock = FakeClock(noise_share=0.01)
    >>> timing = measure(lambda: clock.work(50_000), key="work", clock=clock)
    >>> timing.outcome, round(timing.summarise().median_ns, -3)
    ('ok', 50000.0)
    """
    name = key if key is not None else getattr(function, "__qualname__", repr(function))
    timings = measure_in_turns({name: function}, clock=clock, check=check, effort=effort)
    return timings[name]


def measure_in_turns(
    functions: Mapping[str, Callable[[], object]],
    *,
    clock: Clock | None = None,
    check: Callable[[Any], object] | None = None,
    effort: Effort | None = None,
) -> dict[str, Timing]:
    """Time functions against one another.

    They take turns, and every other round goes backwards: drift of the machine then falls on
    all alike. All take equally many samples, until the least certain one is certain enough.

    Parameters
    ----------
    functions
        By key.
    clock, check, effort
        As of `measure`; all functions together share one budget.

    Examples
    --------
    >>> from longpole.bench import compare
    >>> from longpole.bench.time.clocks import FakeClock
    >>> clock = FakeClock(noise_share=0.01, drift_share_per_s=0.05)
    >>> timings = measure_in_turns(
    ...     {"old": lambda: clock.work(50_000), "new": lambda: clock.work(53_000)}, clock=clock
    ... )
    >>> old, new = timings["old"].samples_ns, timings["new"].samples_ns
    >>> compare({"work": old}, {"work": new}).verdict
    <Verdict.SLOWER: 'slower'>
    """
    clock = clock or CpuClock()
    effort = effort or Effort()
    subjects = [_Subject(key, function) for key, function in functions.items()]
    deadline_ns = clock.now_ns() + round(effort.budget_s * 1e9)
    warm_up_ns = round(effort.budget_s * 1e9 / 5 / max(1, len(subjects)))
    with _garbage_kept():
        for subject in subjects:
            with _failures_noted(subject):
                _check(subject, check)
        for subject in _alive(subjects):
            with _failures_noted(subject):
                _warm_up(subject, clock, warm_up_ns)
        stopped_by = _sample_in_turns(subjects, clock, effort, deadline_ns)
        for subject in _alive(subjects):
            with _failures_noted(subject):
                _check(subject, check)
    return {subject.key: subject.timing(clock, stopped_by) for subject in subjects}


@dataclass(slots=True)
class _Subject:
    """One function while it is being measured."""

    key: str
    function: Callable[[], object]
    outcome: str = "ok"
    message: str = ""
    samples_ns: list[float] = field(default_factory=list)
    n_calls: int = 1
    n_warm_up_calls: int = 0
    is_settled: bool = False

    def fail(self, outcome: str, error: BaseException | str) -> None:
        """Give up: what was measured so far counts no more."""
        self.outcome = outcome
        self.message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"

    def take_sample(self, clock: Clock) -> None:
        """Time one batch."""
        batch_ns = clock.time_ns(self.function, self.n_calls)
        if batch_ns > 0:
            self.samples_ns.append(batch_ns / self.n_calls)
        else:
            self.fail("no_time", f"the clock saw no time pass in {self.n_calls} calls")

    def timing(self, clock: Clock, stopped_by: Stop | None) -> Timing:
        """Say what was measured."""
        is_ok = self.outcome == "ok"
        return Timing(
            key=self.key,
            outcome=self.outcome,
            message=self.message,
            samples_ns=tuple(self.samples_ns) if is_ok else (),
            n_calls=self.n_calls,
            n_warm_up_calls=self.n_warm_up_calls,
            is_settled=self.is_settled,
            stopped_by=stopped_by if is_ok else None,
            clock=clock.name,
            cache=clock.cache,
            device=clock.device,
            environment={"machine": platform.machine(), "python": platform.python_version()},
        )


@contextmanager
def _failures_noted(subject: _Subject) -> Iterator[None]:
    """Make whatever a function raises its outcome, so that the others go on."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the function's own
        subject.fail("raised", error)


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Keep the garbage collector from falling into a sample."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _alive(subjects: Sequence[_Subject]) -> list[_Subject]:
    return [subject for subject in subjects if subject.outcome == "ok"]


def _check(subject: _Subject, check: Callable[[Any], object] | None) -> None:
    """Call once and look at the result. A check that returns nothing is content."""
    result = subject.function()
    if check is None:
        return
    try:
        if check(result) is False:
            subject.fail("wrong", "the check says that the result is wrong")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - `assert_close` and its like raise
        subject.fail("wrong", error)


def _warm_up(subject: _Subject, clock: Clock, limit_ns: int) -> None:
    """Call until the time settles or the limit is reached, and find the size of a batch."""
    deadline_ns = clock.now_ns() + limit_ns
    recent_ns: list[float] = []
    while not subject.is_settled:
        batch_ns = clock.time_ns(subject.function, subject.n_calls)
        subject.n_warm_up_calls += subject.n_calls
        if batch_ns < clock.shortest_sample_ns / 2 and subject.n_calls < _MOST_CALLS:
            subject.n_calls *= 2
            recent_ns.clear()
        else:
            recent_ns = [*recent_ns, batch_ns][-2 * _WINDOW :]
            subject.is_settled = _is_settled(recent_ns)
        if clock.now_ns() >= deadline_ns:
            break


def _is_settled(recent_ns: Sequence[float]) -> bool:
    if len(recent_ns) < 2 * _WINDOW:
        return False
    before, after = median(recent_ns[:_WINDOW]), median(recent_ns[_WINDOW:])
    return abs(after - before) <= _SETTLED * before


def _sample_in_turns(
    subjects: Sequence[_Subject], clock: Clock, effort: Effort, deadline_ns: int
) -> Stop | None:
    """Take samples until there is a reason to stop; None where nothing is left to measure."""
    precisions: list[float] = []
    next_look = effort.min_samples
    n_rounds = 0
    while alive := _alive(subjects):
        for subject in alive if n_rounds % 2 == 0 else reversed(alive):
            with _failures_noted(subject):
                subject.take_sample(clock)
        n_rounds += 1
        if n_rounds >= next_look:
            next_look = math.ceil(n_rounds * _LOOK_AGAIN_AT)
            precisions.append(_worst_precision(_alive(subjects), effort))
            if precisions[-1] <= effort.precision:
                return Stop.PRECISION
            if _is_plateau(precisions, n_rounds):
                return Stop.PLATEAU
        if n_rounds >= effort.max_samples:
            return Stop.SAMPLES
        if clock.now_ns() >= deadline_ns:
            return Stop.BUDGET
    return None


def _worst_precision(subjects: Sequence[_Subject], effort: Effort) -> float:
    from longpole.bench.compare.stats import summarise

    return max(
        (
            summarise(subject.samples_ns, confidence=effort.confidence).precision
            for subject in subjects
        ),
        default=math.inf,
    )


def _is_plateau(precisions: Sequence[float], n_samples: int) -> bool:
    """Ask whether the last doubling of the samples was in vain."""
    if n_samples < _PLATEAU_FROM or len(precisions) <= _LOOKS_TO_DOUBLE:
        return False
    return precisions[-1] > _PLATEAU * precisions[-1 - _LOOKS_TO_DOUBLE]
