"""The measurement of a function in one process, and the work of a call, as rates.

Rates are also given as fractions of the device's published peaks.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Self

from longpole.bench.expressions import compute, names_in
from longpole.bench.records.record import Measurement, Outcome, Record
from longpole.bench.run.conditions import is_disturbed_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.rows.statistics.samples import Summary

_GIGA: Final = 1e9
_TERA: Final = 1e12
_NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one call.

    Parameters
    ----------
    bytes
        Bytes that it reads and writes.
    flops
        Floating-point or integer operations.
    dtype
        Type of the operations, as in the table of peaks: `fp64`, `fp32`, `tf32`, `bf16`,
        `fp16`, `fp8`, `int8`.
    """

    bytes: float | None = None
    flops: float | None = None
    dtype: str | None = None

    @classmethod
    def of(cls, sampling: Mapping[str, Any]) -> Self:
        """Read it from the sampling fields of a run."""
        return cls(sampling.get("bytes"), sampling.get("flops"), sampling.get("dtype"))

    def to_dict(self) -> dict[str, Any]:
        """Return the known values by name, for a record."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def rates(
        self, time_ns: float, device: str | None = None, memory_bytes: int | None = None
    ) -> dict[str, float | None]:
        """Return the rates of a call that took `time_ns`, and fractions of the device's peaks.

        Parameters
        ----------
        time_ns
            Time of one call.
        device, memory_bytes
            The model, and its memory, in which models may differ.

        Returns
        -------
        dict
            `bytes_per_s`, `flops_per_s`, `bandwidth_share` and `flops_share`; None if unknown.

        Examples
        --------
        >>> found = Work(bytes=3_350_000, flops=2 * 989.4e6, dtype="bf16").rates(
        ...     2_000, "NVIDIA H100 80GB HBM3"
        ... )
        >>> found["bandwidth_share"], round(found["flops_share"], 6)
        (0.5, 1.0)
        """
        from longpole.devices.peaks import peaks_of

        peaks = peaks_of(device, memory_bytes)
        bandwidth = None if peaks is None else peaks.bandwidth
        tflops = None if peaks is None or self.dtype is None else peaks.matrix.get(self.dtype)
        moved = None if self.bytes is None else self.bytes / time_ns * _NS_PER_S
        done = None if self.flops is None else self.flops / time_ns * _NS_PER_S
        return {
            "bytes_per_s": moved,
            "flops_per_s": done,
            "bandwidth_share": moved and bandwidth and moved / (bandwidth * _GIGA),
            "flops_share": done and tflops and done / (tflops * _TERA),
        }


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """The work of a call at any point of the axes, as expressions of axis names."""

    bytes: str | None = None
    flops: str | None = None
    dtype: str | None = None

    def at(self, point: Mapping[str, int | float | str]) -> Work:
        """Return the work at a point.

        Raises
        ------
        ValueError
            An expression is invalid, or uses an unknown axis.

        Examples
        --------
        >>> WorkPlan(flops="2*n**3", dtype="bf16").at({"n": 100})
        Work(bytes=None, flops=2000000.0, dtype='bf16')
        """
        moved = None if self.bytes is None else evaluate(self.bytes, point)
        done = None if self.flops is None else evaluate(self.flops, point)
        return Work(moved, done, self.dtype)


def evaluate(text: str, names: Mapping[str, int | float | str]) -> float:
    """Evaluate an expression of numbers and axes, as `expressions.compute` does.

    Raises
    ------
    ValueError
        It is invalid, or its value is not a positive number.

    Examples
    --------
    >>> evaluate("3 * n * n * 2", {"n": 10})
    600.0
    """
    numbers = {name: value for name, value in names.items() if isinstance(value, int | float)}
    if unknown := sorted(names_in(text) - numbers.keys()):
        message = f"{unknown[0]!r} is not an axis of numbers"
        raise ValueError(message)
    value = compute(text, numbers)
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{text!r} is not a number"
        raise ValueError(message)  # noqa: TRY004 - the value is wrong, not its type
    if not 0 < value < math.inf:
        message = f"{text!r} is {value:g}, not a positive number"
        raise ValueError(message)
    return float(value)


class Stop(StrEnum):
    """Reason why sampling ended."""

    SAMPLES = "samples"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of a measurement.

    Parameters
    ----------
    n_samples
        Samples per function; None for 25, or 100 if several take turns, and as many as take 20 ms
        on the CPU.
    budget_s
        Total time including warm-up, which takes at most a fifth of it.

    Examples
    --------
    >>> Effort(budget_s=20).n_samples is None
    True
    """

    n_samples: int | None = None
    budget_s: float = 5.0


@dataclass(frozen=True, slots=True, repr=False)
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
        Fraction of the sampling time in which something waited for a CPU; None if the system
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

    def __repr__(self) -> str:
        """Return the key, and the median or why there is none."""
        from longpole.words.wording import count, duration

        if not self.samples_ns:
            return f"Timing({self.key!r}, {self.outcome}: {self.message})"
        told = f"{duration(median(self.samples_ns))}, {count(len(self.samples_ns), 'sample')}"
        return f"Timing({self.key!r}, {told})"

    @property
    def is_disturbed(self) -> bool:
        """Whether too many samples were dropped."""
        return is_disturbed_by(self.n_dropped, len(self.samples_ns))

    def summarise(self) -> Summary | None:
        """Return the statistics of the samples; None without samples."""
        from longpole.rows.statistics.samples import summarise

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
