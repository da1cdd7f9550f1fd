"""Peaks that apply to the devices of a trace, and to the types their kernels compute with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.devices.peaks import PRECISIONS, Peaks, peaks_of, precision_of
from longpole.words.data import Data

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

_BANDWIDTH: Final = "bandwidth"


@dataclass(frozen=True, slots=True)
class DevicePeaks(Data):
    """Peak performance of one device of a trace."""

    device: int | None
    name: str
    matrix_tflops: Mapping[str, float]
    vector_tflops: Mapping[str, float]
    bandwidth_gb_per_s: float | None
    source: str
    """Source of the figures."""


def listed_peaks(known: Mapping[int | None, Peaks]) -> tuple[DevicePeaks, ...]:
    """Combine devices with equal peaks."""
    return tuple(
        DevicePeaks(device, it.name, it.matrix, it.vector, it.bandwidth, it.source)
        for device, it in known.items()
    )


def device_peaks(
    trace: Trace,
    peaks: Peaks | None = None,
    *,
    peak: Mapping[str, float] | None = None,
) -> dict[int | None, Peaks]:
    """Return the peaks of each device of a trace, from the table or as given.

    Parameters
    ----------
    trace
        The trace.
    peaks
        Peaks of every device, instead of the table.
    peak
        Single peaks instead of those: TFLOP/s of tensor or matrix cores by type, and the memory
        `bandwidth` in GB/s, such as `{"bf16": 800, "bandwidth": 3350}`.

    Raises
    ------
    ValueError
        A type is not known, or a peak is not positive.
    """
    given = dict(peak or {})
    _check(given)
    bandwidth = given.pop(_BANDWIDTH, None)
    found = {}
    for device, name in trace.devices.select("device", "name").iter_rows():
        memory = trace.device_properties.get(device, {}).get("totalGlobalMem")
        known = peaks or peaks_of(name, memory if type(memory) is int else None)
        if known is None and given:
            known = Peaks(name or "as given", {}, {}, None, "as given")
        if known is not None:
            found[device] = known.overridden(given, bandwidth)
    return found


def _check(given: Mapping[str, float]) -> None:
    known = [*sorted({*PRECISIONS.values(), "tf32"}), _BANDWIDTH]
    for name, peak in given.items():
        if name not in known:
            message = f"no peak of {name!r}; there are {', '.join(known)}"
            raise ValueError(message)
        if peak <= 0:
            message = f"the peak of {name} must be positive, not {peak:g}"
            raise ValueError(message)


def peak_sentences(peaks: Mapping[int | None, Peaks]) -> list[str]:
    """Describe the peaks used, once for devices with equal peaks."""
    devices: dict[str, list[str]] = {}
    for device, known in peaks.items():
        devices.setdefault(_words(known), []).append("?" if device is None else str(device))
    return [
        f"Peaks of device{'s' * (len(names) > 1)} {', '.join(names)}: {words}"
        for words, names in devices.items()
    ]


def _words(peaks: Peaks) -> str:
    matrix = ", ".join(f"{dtype} {peak:g}" for dtype, peak in peaks.matrix.items())
    memory = "bandwidth not known" if peaks.bandwidth is None else f"{peaks.bandwidth:g} GB/s"
    source = peaks.source if peaks.name == peaks.source else f"{peaks.name}, {peaks.source}"
    return f"{matrix} TFLOP/s; {memory} ({source})."


def with_precision(work: pl.DataFrame) -> pl.DataFrame:
    """Add the type that each kernel computes with; null for types without a known peak."""
    keys = work.select("dtype", "kernel", "is_matrix").unique(maintain_order=True)
    found = [
        None if dtype is None else precision_of(dtype, kernel or "", is_matrix=bool(is_matrix))
        for dtype, kernel, is_matrix in keys.iter_rows()
    ]
    named = keys.with_columns(precision=pl.Series(found, dtype=pl.String))
    return work.join(named, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")


def with_roofs(work: pl.DataFrame, peaks: Mapping[int | None, Peaks]) -> pl.DataFrame:
    """Add which peak limits each row, and its least time; null if unknown."""
    keys = work.select("device", "flops", "n_bytes", "precision", "is_matrix")
    keys = keys.unique(maintain_order=True)
    roofs = []
    for device, flops, n_bytes, precision, is_matrix in keys.iter_rows():
        known = peaks.get(device)
        roof = known and known.roof_ns(flops, n_bytes, precision, is_matrix=is_matrix)
        roofs.append(roof or (None, None))
    schema = {"bound": pl.String, "roof_ns": pl.Float64}
    found = pl.concat([keys, pl.DataFrame(roofs, schema=schema, orient="row")], how="horizontal")
    return work.join(found, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")
