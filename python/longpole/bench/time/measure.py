"""Times functions in this process: one run.

Each function is called once and its result checked. It is then called until its time settles, in
batches if one call is too short for the clock. After that the functions take turns.

More samples of one process do not make a comparison more certain; more processes do (`processes`).
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from longpole.bench.time.clocks import Clock, CpuClock
from longpole.bench.time.counters import Pressure
from longpole.bench.time.timing import Effort, Timing
from longpole.bench.time.turns import (
    Subject,
    alive,
    check_result,
    failures_noted,
    make_batches_alike,
    sample_in_turns,
    warm_up,
)
from longpole.bench.time.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.run.conditions import Conditions

__all__ = ["measure", "measure_in_turns"]


def measure(
    function: Callable[[], object],
    *,
    key: str | None = None,
    clock: Clock | None = None,
    check: Callable[[Any], object] | None = None,
    effort: Effort | None = None,
    bytes: float | None = None,  # noqa: A002 - what everybody calls it
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
        The clock; by default wall time on the processor.
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

    Every other round goes backwards, so that drift of the machine affects all alike. All have
    equally many samples.

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
    told = (run, pair, started_at, stopped_by)
    during = {} if conditions is None else conditions.summary(begin_ns, end_ns)
    return {
        subject.key: replace(subject.timing(clock, *told), cpu_pressure=share, during=during)
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
