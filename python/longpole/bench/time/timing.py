"""What was measured of a function in one process, and when to stop measuring."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any

from longpole.bench.records.record import Measurement, Outcome, Record
from longpole.bench.run.conditions import is_disturbed_by
from longpole.bench.time.work import Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.statistics.samples import Summary

__all__ = ["Effort", "Stop", "Timing"]


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
        Samples dropped for the conditions that they were taken in, such as throttling.
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
    during
        What a guard's sampler read meanwhile, summed up; empty where there was none.
    work
        What one call does, as far as that was said.
    host_ns
        How long the host takes to launch a call on a device; None if the clock does not measure it.
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
    during: Mapping[str, Any] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    host_ns: float | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether more samples had to be dropped than a run can bear."""
        return is_disturbed_by(self.n_dropped, len(self.samples_ns))

    def summarise(self) -> Summary | None:
        """Say what the samples say together; None where there is none."""
        from longpole.statistics.samples import summarise

        return summarise(self.samples_ns) if self.samples_ns else None

    def rates(self) -> dict[str, float | None]:
        """Give bytes and operations a second, and their shares of the peaks of the device."""
        if not self.samples_ns:
            return dict.fromkeys(("bytes_per_s", "flops_per_s", "bandwidth_share", "flops_share"))
        return self.work.rates(median(self.samples_ns), self.device)

    def record(self) -> Record:
        """Give the record, as a file of measurements holds it."""
        sampling = {
            "clock": self.clock,
            "cache": self.cache,
            "step_ns": self.step_ns or None,
            "host_ns": self.host_ns,
            "n_calls": self.n_calls,
            "n_warm_up_calls": self.n_warm_up_calls,
            "n_dropped": self.n_dropped,
            "is_disturbed": self.is_disturbed,
            "is_settled": self.is_settled,
            "stopped_by": self.stopped_by,
            "cpu_pressure": self.cpu_pressure,
            "clock_mhz": self.during.get("clock_mhz"),
            "during": dict(self.during),
            **self.work.to_dict(),
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
