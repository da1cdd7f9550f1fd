"""Times functions in this process: one run.

Each function is called once and its result checked. It is then called until its time settles, in
batches if one call is too short for the clock. After that the functions take one sample per turn,
in the order A B, B A, so that a slowdown of the machine affects all of them. Every sample is kept
unless the conditions were bad, in which case the whole turn is dropped.

More samples of one process do not make a comparison more certain; more processes do (`processes`).
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from longpole.bench.records.environment import fingerprint
from longpole.bench.records.record import Outcome, is_duration_ns
from longpole.bench.time.clocks import Clock, CpuClock, Pressure
from longpole.bench.time.timing import Effort, Stop, Timing, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.run.conditions import Conditions


def measure(
    function: Callable[[], object],
    *,
    key: str | None = None,
    clock: Clock | None = None,
    check: Callable[[Any], object] | None = None,
    effort: Effort | None = None,
    bytes: float | None = None,  # noqa: A002 - the usual name in benchmark tools
    flops: float | None = None,
    dtype: str | None = None,
) -> Timing:
    """Time a function.

    Parameters
    ----------
    function
        Called without arguments.
    key
        Key for comparisons; by default its own name.
    clock
        The clock; by default wall time on the CPU.
    check
        Receives the result of the first call and of one after the last. If it returns False or
        raises, the function has no time.
    effort
        Limits on samples and time.
    bytes, flops, dtype
        Bytes moved and operations computed by one call, and their type (`bf16`, `fp32`, ...), for
        `Timing.rates`, which returns fractions of the device's published peaks.

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
    return replace(timings[name], work=Work(bytes, flops, dtype))


def measure_in_turns(
    functions: Mapping[str, Callable[[], object]],
    *,
    clock: Clock | None = None,
    check: Callable[[Any], object] | None = None,
    effort: Effort | None = None,
    conditions: Conditions | None = None,
) -> dict[str, Timing]:
    """Time several functions in turns.

    The order is reversed in every second round, so that drift of the machine affects all functions
    alike. All have the same number of samples.

    Parameters
    ----------
    functions
        The functions by key.
    clock, check, effort
        As for `measure`; all functions share one budget.
    conditions
        Readings of a guard's sampler, by which samples are dropped.

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
    subjects = [Subject(key, function) for key, function in functions.items()]
    started_at = datetime.now(UTC).isoformat()
    deadline_ns = clock.now_ns() + round(effort.budget_s * 1e9)
    warm_up_ns = round(effort.budget_s * 1e9 / 5 / max(1, len(subjects)))
    with _garbage_kept():
        _with_each(subjects, check_result, check)
        _with_each(alive(subjects), warm_up, clock, warm_up_ns)
        make_batches_alike(alive(subjects), clock)
        pressure, begin_ns = Pressure(), clock.now_ns()
        stopped_by = sample_in_turns(subjects, clock, effort, deadline_ns, conditions)
        share, end_ns = pressure.share(), clock.now_ns()
        _with_each(alive(subjects), check_result, check)
    run = uuid4().hex[:12]
    pair = run if len(subjects) > 1 else ""
    fields = (run, pair, started_at, stopped_by)
    during = {} if conditions is None else conditions.summary(begin_ns, end_ns)
    return {
        subject.key: replace(subject.timing(clock, *fields), cpu_pressure=share, during=during)
        for subject in subjects
    }


def _with_each(subjects: Sequence[Subject], step: Callable[..., object], *given: object) -> None:
    """Run a step with each subject; one that fails is no longer measured."""
    for subject in subjects:
        with failures_noted(subject):
            step(subject, *given)


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Disable the garbage collector within the context."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# A function is warm when the medians of two consecutive windows of samples agree.
_WINDOW: Final = 5
_SETTLED: Final = 0.02

# In units of the clock's shortest sample, which is 1 ms on the CPU.
_SHORTEST_WARM_UP: Final = 30
_SHORTEST_SAMPLING: Final = 20

_ALONE: Final = 25
_IN_TURNS: Final = 100

# Maximum size of a batch, even if no time passes on the clock.
_MOST_CALLS: Final = 1 << 20

# Functions in turns have the same batch size, unless that makes a sample this much too long.
_LONGEST_SAMPLE: Final = 20

# Maximum number of turns per requested turn, if some are dropped.
_MOST_TURNS: Final = 5

# A throttled device gets time to cool down, as in NVBench.
_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 0.5


@dataclass(slots=True)
class Subject:
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
        """Mark as failed and discard the measurements."""
        self.outcome = outcome
        self.message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"

    def take_sample(self, clock: Clock) -> float | None:
        """Time one batch, and return the time of one call."""
        call_ns = clock.time_ns(self.function, self.n_calls) / self.n_calls
        if is_duration_ns(call_ns):
            return call_ns
        self.fail(Outcome.NO_TIME, f"the clock measured no time for {self.n_calls} calls")
        return None

    def timing(
        self, clock: Clock, run: str, pair: str, started_at: str, stopped_by: Stop | None
    ) -> Timing:
        """Return the measurement."""
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
            host_ns=clock.host_ns(self.function),
            environment=fingerprint(),
        )


@contextmanager
def failures_noted(subject: Subject) -> Iterator[None]:
    """Turn exceptions of a function into its outcome, so that the others continue."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - functions of users can raise anything
        subject.fail(Outcome.RAISED, error)


def alive(subjects: Sequence[Subject]) -> list[Subject]:
    """Return the functions that have not failed."""
    return [subject for subject in subjects if subject.outcome is Outcome.OK]


def check_result(subject: Subject, check: Callable[[Any], object] | None) -> None:
    """Call once and check the result. A check that returns None passes."""
    result = subject.function()
    if check is None:
        return
    try:
        if check(result) is False:
            subject.fail(Outcome.WRONG, "the check says that the result is wrong")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - `assert_close` and similar checks raise
        subject.fail(Outcome.WRONG, error)


def warm_up(subject: Subject, clock: Clock, limit_ns: int) -> None:
    """Call until the time settles or the limit is reached, and determine the batch size."""
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


def make_batches_alike(subjects: Sequence[Subject], clock: Clock) -> None:
    """Set the same batch size for all functions, unless one of them is much slower."""
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


def sample_in_turns(
    subjects: Sequence[Subject],
    clock: Clock,
    effort: Effort,
    deadline_ns: int,
    conditions: Conditions | None = None,
) -> Stop | None:
    """Sample until there is a reason to stop; None if no function is left.

    When there are enough, those taken in bad conditions are dropped and replaced.
    """
    n_wanted = effort.n_samples or (_ALONE if len(subjects) == 1 else _IN_TURNS)
    begin_ns = clock.now_ns()
    shortest_ns = _SHORTEST_SAMPLING * clock.shortest_sample_ns
    windows: list[tuple[int, int]] = []
    n_turns, pause_s = 0, _SHORTEST_PAUSE_S
    while left := alive(subjects):
        turn_ns = clock.now_ns()
        if _take_turn(left if n_turns % 2 == 0 else left[::-1], clock):
            windows.append((turn_ns, clock.now_ns()))
        n_turns += 1
        now_ns = clock.now_ns()
        is_over = now_ns >= deadline_ns or n_turns >= _MOST_TURNS * n_wanted
        is_enough = len(windows) >= n_wanted and now_ns - begin_ns >= shortest_ns
        if not (is_over or is_enough):
            continue
        if conditions is not None:
            n_taken = len(windows)
            windows = _drop_disturbed(left, windows, conditions)
            if len(windows) < n_taken and not is_over:
                time.sleep(pause_s)
                pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
        if is_over or len(windows) >= n_wanted:
            return Stop.BUDGET if len(windows) < n_wanted else Stop.SAMPLES
    return None


def _drop_disturbed(
    subjects: Sequence[Subject], windows: list[tuple[int, int]], conditions: Conditions
) -> list[tuple[int, int]]:
    """Drop the turns taken in bad conditions, and return the windows of the others."""
    drops = conditions.disturbed(windows, heeds_pressure=len(subjects) == 1)
    for subject in subjects:
        if len(subject.samples_ns) == len(windows):
            pairs = zip(subject.samples_ns, drops, strict=True)
            subject.samples_ns = [sample_ns for sample_ns, is_dropped in pairs if not is_dropped]
            subject.n_dropped += sum(drops)
    return [window for window, is_dropped in zip(windows, drops, strict=True) if not is_dropped]


def _take_turn(subjects: Sequence[Subject], clock: Clock) -> bool:
    """Sample each function once; return whether the samples are kept.

    One dropped sample drops the whole turn.
    """
    samples_ns: list[float | None] = []
    is_undisturbed = True
    for subject in subjects:
        sample_ns = None
        with failures_noted(subject):
            sample_ns = subject.take_sample(clock)
        samples_ns.append(sample_ns)
        is_undisturbed &= clock.is_undisturbed()
    for subject, sample_ns in zip(subjects, samples_ns, strict=True):
        if is_undisturbed and sample_ns is not None:
            subject.samples_ns.append(sample_ns)
        subject.n_dropped += not is_undisturbed
    return is_undisturbed
