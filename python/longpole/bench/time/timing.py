"""Functions, timed in this process: one run.

Each function is called once and its result checked. It is then called until its time settles,
in batches where one call is too short for the clock. From there on the functions take turns,
one sample each, in the order A B, B A: what slows the machine down then slows all of them.
Every sample is kept unless its conditions were read to be bad, and then the whole turn goes.

More samples of one process do not make a comparison surer; more processes do (`processes`).
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from longpole.bench.records.environment import fingerprint
from longpole.bench.records.record import Measurement, Outcome, Record, is_duration_ns
from longpole.bench.time.clocks import Clock, CpuClock
from longpole.bench.time.pressure import Pressure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.compare.stats import Summary

__all__ = ["Effort", "Stop", "Timing", "measure", "measure_in_turns"]

# A function is warm when two windows of samples, one after the other, agree so well.
_WINDOW: Final = 5
_SETTLED: Final = 0.02

# In shortest samples of the clock, which are 1 ms on the processor.
_SHORTEST_WARM_UP: Final = 30
_SHORTEST_SAMPLING: Final = 20

_ALONE: Final = 25
_IN_TURNS: Final = 100

# A batch grows no further, even where the clock still sees no time pass.
_MOST_CALLS: Final = 1 << 20

# Functions in turns have batches of one size, unless that makes a sample so much too long.
_LONGEST_SAMPLE: Final = 20

# So many turns are tried for each that is wanted, where some are dropped.
_MOST_TURNS: Final = 5

# A run with more turns dropped is disturbed.
_MOST_DROPPED: Final = 0.2


class Stop(StrEnum):
    """Why no more samples were taken."""

    SAMPLES = "samples"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Effort:
    """When to stop.

    Parameters
    ----------
    n_samples
        Of each function; None is 25, or 100 where several take turns, and as many as
        take 20 ms on the processor.
    budget_s
        Time for all of it, warm-up included, of which warm-up takes a fifth at most.

    Examples
    --------
    >>> Effort(budget_s=20).n_samples is None
    True
    """

    n_samples: int | None = None
    budget_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured of one function in one process.

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
    run, pair
        The process, and the turns that this function took part in; empty where it was alone.
    n_calls
        Of each batch.
    n_warm_up_calls
        That came before, and are not among the samples.
    n_dropped
        Samples dropped because the device was throttled while they were taken.
    is_settled
        Whether the time had settled by then.
    stopped_by
        Why there are no more samples.
    clock, cache, device, step_ns
        What took the time, how the caches were left, what was timed, and the step of the clock
        for one call.
    started_at
        When sampling began.
    cpu_pressure
        The share of the time of sampling in which something on the machine waited for a
        processor; None where the system does not count it.
    """

    key: str
    outcome: Outcome
    message: str
    samples_ns: tuple[float, ...]
    run: str
    pair: str
    n_calls: int
    n_warm_up_calls: int
    n_dropped: int
    is_settled: bool
    stopped_by: str | None
    clock: str
    cache: str | None
    device: str
    step_ns: float
    started_at: str
    notes: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    cpu_pressure: float | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether more samples had to be dropped than a run can bear."""
        return self.n_dropped > _MOST_DROPPED * (self.n_dropped + len(self.samples_ns))

    def summarise(self) -> Summary | None:
        """Say what the samples say together; None where there is none."""
        from longpole.bench.compare.stats import summarise

        return summarise(self.samples_ns) if self.samples_ns else None

    def record(self) -> Record:
        """Give the record, as a file of measurements holds it."""
        sampling = {
            "clock": self.clock,
            "cache": self.cache,
            "step_ns": self.step_ns or None,
            "n_calls": self.n_calls,
            "n_warm_up_calls": self.n_warm_up_calls,
            "n_dropped": self.n_dropped,
            "is_disturbed": self.is_disturbed,
            "is_settled": self.is_settled,
            "stopped_by": self.stopped_by,
            "cpu_pressure": self.cpu_pressure,
            "notes": list(self.notes),
        }
        best = Measurement(self.key, median(self.samples_ns)) if self.samples_ns else None
        return Record(
            id=f"{self.key} run {self.run}",
            key=self.key,
            outcome=self.outcome,
            message="; ".join(filter(None, [self.message, *self.notes])),
            device=self.device,
            best=best,
            started_at=self.started_at,
            environment=self.environment,
            run=self.run,
            pair=self.pair,
            samples_ns=self.samples_ns,
            sampling=sampling,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the fields of the record."""
        return self.record().to_dict()


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
    >>> timing.outcome.value, round(timing.summarise().median_ns, -3)
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
    all alike. All take equally many samples.

    Parameters
    ----------
    functions
        By key.
    clock, check, effort
        As of `measure`; all functions together share one budget.

    Examples
    --------
    >>> from longpole.bench.time.clocks import FakeClock
    >>> clock = FakeClock(noise_share=0.01, drift_share_per_s=0.05)
    >>> timings = measure_in_turns(
    ...     {"old": lambda: clock.work(50_000), "new": lambda: clock.work(53_000)}, clock=clock
    ... )
    >>> old, new = (timings[key].summarise().median_ns for key in ("old", "new"))
    >>> round(new / old, 2)
    1.06
    """
    clock = clock or CpuClock()
    effort = effort or Effort()
    subjects = [_Subject(key, function) for key, function in functions.items()]
    started_at = datetime.now(UTC).isoformat()
    deadline_ns = clock.now_ns() + round(effort.budget_s * 1e9)
    warm_up_ns = round(effort.budget_s * 1e9 / 5 / max(1, len(subjects)))
    with _garbage_kept():
        for subject in subjects:
            with _failures_noted(subject):
                _check(subject, check)
        for subject in _alive(subjects):
            with _failures_noted(subject):
                _warm_up(subject, clock, warm_up_ns)
        _make_batches_alike(_alive(subjects), clock)
        pressure = Pressure()
        stopped_by = _sample_in_turns(subjects, clock, effort, deadline_ns)
        share = pressure.share()
        for subject in _alive(subjects):
            with _failures_noted(subject):
                _check(subject, check)
    run = uuid4().hex[:12]
    pair = run if len(subjects) > 1 else ""
    told = (run, pair, started_at, stopped_by)
    return {
        subject.key: replace(subject.timing(clock, *told), cpu_pressure=share)
        for subject in subjects
    }


@dataclass(slots=True)
class _Subject:
    """One function while it is being measured."""

    key: str
    function: Callable[[], object]
    outcome: Outcome = Outcome.OK
    message: str = ""
    samples_ns: list[float] = field(default_factory=list)
    call_ns: float = 0.0
    n_calls: int = 1
    n_warm_up_calls: int = 0
    n_dropped: int = 0
    is_settled: bool = False

    def fail(self, outcome: Outcome, error: BaseException | str) -> None:
        """Give up: what was measured so far counts no more."""
        self.outcome = outcome
        self.message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"

    def take_sample(self, clock: Clock) -> float | None:
        """Time one batch, and give the time of one call."""
        call_ns = clock.time_ns(self.function, self.n_calls) / self.n_calls
        if is_duration_ns(call_ns):
            return call_ns
        self.fail(Outcome.NO_TIME, f"the clock saw no time pass in {self.n_calls} calls")
        return None

    def timing(
        self, clock: Clock, run: str, pair: str, started_at: str, stopped_by: Stop | None
    ) -> Timing:
        """Say what was measured."""
        is_ok = self.outcome is Outcome.OK
        return Timing(
            key=self.key,
            outcome=self.outcome,
            message=self.message,
            samples_ns=tuple(self.samples_ns) if is_ok else (),
            run=run,
            pair=pair,
            n_calls=self.n_calls,
            n_warm_up_calls=self.n_warm_up_calls,
            n_dropped=self.n_dropped,
            is_settled=self.is_settled,
            stopped_by=stopped_by if is_ok else None,
            clock=clock.name,
            cache=clock.cache,
            device=clock.device,
            step_ns=clock.step_ns / self.n_calls,
            started_at=started_at,
            notes=clock.notes(self.function),
            environment=fingerprint(),
        )


@contextmanager
def _failures_noted(subject: _Subject) -> Iterator[None]:
    """Make whatever a function raises its outcome, so that the others go on."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the function's own
        subject.fail(Outcome.RAISED, error)


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
    return [subject for subject in subjects if subject.outcome is Outcome.OK]


def _check(subject: _Subject, check: Callable[[Any], object] | None) -> None:
    """Call once and look at the result. A check that returns nothing is content."""
    result = subject.function()
    if check is None:
        return
    try:
        if check(result) is False:
            subject.fail(Outcome.WRONG, "the check says that the result is wrong")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - `assert_close` and its like raise
        subject.fail(Outcome.WRONG, error)


def _warm_up(subject: _Subject, clock: Clock, limit_ns: int) -> None:
    """Call until the time settles or the limit is reached, and find the size of a batch."""
    begin_ns = clock.now_ns()
    shortest_ns = _SHORTEST_WARM_UP * clock.shortest_sample_ns
    recent_ns: list[float] = []
    while True:
        batch_ns = clock.time_ns(subject.function, subject.n_calls)
        subject.n_warm_up_calls += subject.n_calls
        if batch_ns < clock.shortest_sample_ns / 2 and subject.n_calls < _MOST_CALLS:
            subject.n_calls *= 2
            recent_ns.clear()
        else:
            recent_ns = [*recent_ns, batch_ns][-2 * _WINDOW :]
            subject.call_ns = batch_ns / subject.n_calls
            subject.is_settled = _is_settled(recent_ns)
        passed_ns = clock.now_ns() - begin_ns
        is_warm = subject.is_settled and (passed_ns >= shortest_ns or batch_ns <= 0)
        if is_warm or passed_ns >= limit_ns:
            return


def _make_batches_alike(subjects: Sequence[_Subject], clock: Clock) -> None:
    """Give all functions batches of one size, unless one of them is very much slower."""
    n_calls = max((subject.n_calls for subject in subjects), default=1)
    longest_ns = _LONGEST_SAMPLE * clock.shortest_sample_ns
    if all(subject.call_ns * n_calls <= longest_ns for subject in subjects):
        for subject in subjects:
            subject.n_calls = n_calls


def _is_settled(recent_ns: Sequence[float]) -> bool:
    if len(recent_ns) < 2 * _WINDOW:
        return False
    before, after = median(recent_ns[:_WINDOW]), median(recent_ns[_WINDOW:])
    return abs(after - before) <= _SETTLED * before


def _sample_in_turns(
    subjects: Sequence[_Subject], clock: Clock, effort: Effort, deadline_ns: int
) -> Stop | None:
    """Take samples until there is a reason to stop; None where nothing is left to measure."""
    n_wanted = effort.n_samples or (_ALONE if len(subjects) == 1 else _IN_TURNS)
    begin_ns = clock.now_ns()
    shortest_ns = _SHORTEST_SAMPLING * clock.shortest_sample_ns
    n_turns = n_kept = 0
    while alive := _alive(subjects):
        n_kept += _take_turn(alive if n_turns % 2 == 0 else alive[::-1], clock)
        n_turns += 1
        now_ns = clock.now_ns()
        if n_kept >= n_wanted and now_ns - begin_ns >= shortest_ns:
            return Stop.SAMPLES
        if now_ns >= deadline_ns or n_turns >= _MOST_TURNS * n_wanted:
            return Stop.BUDGET
    return None


def _take_turn(subjects: Sequence[_Subject], clock: Clock) -> bool:
    """Take a sample of each; whether they are kept. One that is dropped takes all with it."""
    samples_ns: list[float | None] = []
    is_undisturbed = True
    for subject in subjects:
        sample_ns = None
        with _failures_noted(subject):
            sample_ns = subject.take_sample(clock)
        samples_ns.append(sample_ns)
        is_undisturbed &= clock.is_undisturbed()
    for subject, sample_ns in zip(subjects, samples_ns, strict=True):
        if is_undisturbed and sample_ns is not None:
            subject.samples_ns.append(sample_ns)
        subject.n_dropped += not is_undisturbed
    return is_undisturbed
