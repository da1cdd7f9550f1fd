"""The work of a call, in bytes and operations, as rates and fractions of a peak.

Peaks are those of `longpole.devices.peaks`, which the roofline uses too.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from longpole.bench.expressions import compute, names_in

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Work", "WorkPlan", "evaluate"]

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
        raise ValueError(message)  # noqa: TRY004 - what was asked for is wrong
    if not 0 < value < math.inf:
        message = f"{text!r} is {value:g}, not a positive number"
        raise ValueError(message)
    return float(value)
