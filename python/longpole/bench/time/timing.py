"""The measurement of a function in one process, and when to stop measuring."""

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
    """Why sampling ended."""

    SAMPLES = "samples"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of a measurement.

    Parameters
    ----------
    n_samples
        Samples per function; None for 25, or 100 if several take turns, and as many as take 20 ms
        on the processor.
    budget_s
        Total time including warm-up, which takes at most a fifth of it.

    Examples
    --------
    >>> Effort(budget_s=20).n_samples is None
    True
    """

    n_samples: int | None = None
    budget_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Timing:
    """The measurement of one function in one process.

    Parameters
    ----------
    key
        Key for comparisons.
    outcome
        `ok`; `raised`: the function raised; `wrong`: its result failed the check; `no_time`: no
        time passed on the clock.
    message
        Reason for another outcome than `ok`.
    samples_ns
        Time of one call for each batch, in the order of sampling. Empty unless the outcome is `ok`.
    run, pair
        The process, and the turns of this function; empty if it was alone.
    n_calls
        Calls per batch.
    n_warm_up_calls
        Calls before the first sample.
    n_dropped
        Samples dropped for the conditions in which they were taken, such as throttling.
    is_settled
        Whether the time had settled before sampling.
    stopped_by
        Why sampling ended.
    clock, cache, device, step_ns
        The clock, the cache state, the timed hardware, and the clock's resolution per call.
    started_at
        Start of sampling.
    cpu_pressure
        Fraction of the sampling time in which something waited for a processor; None if the system
        does not count it.
    during
        Summary of the readings of a guard's sampler; empty without one.
    work
        Work of one call, as far as given.
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
        """Whether too many samples were dropped."""
        return is_disturbed_by(self.n_dropped, len(self.samples_ns))

    def summarise(self) -> Summary | None:
        """Return the statistics of the samples; None without samples."""
        from longpole.statistics.samples import summarise

        return summarise(self.samples_ns) if self.samples_ns else None

    def rates(self) -> dict[str, float | None]:
        """Return bytes and operations per second, and their fractions of the device's peaks."""
        if not self.samples_ns:
            return dict.fromkeys(("bytes_per_s", "flops_per_s", "bandwidth_share", "flops_share"))
        return self.work.rates(median(self.samples_ns), self.device)

    def record(self) -> Record:
        """Return the record, in the form of a file of measurements."""
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
        """Return the fields of the record."""
        return self.record().to_dict()
