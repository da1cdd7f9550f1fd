"""Published peaks of devices: what a roofline is drawn from.

Figures are those of the makers for one device, without structured sparsity, in TFLOP/s and GB/s.
The device of a trace may be slower: clocks are limited by power, and partitions have a part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PEAKS", "Peaks", "peaks_of"]

_LARGE_A100: Final = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Peaks:
    """What one device can do at most.

    `matrix` and `vector` are TFLOP/s by type (`fp64`, `fp32`, `tf32`, `bf16`, `fp16`, `fp8`,
    `int8`) on tensor or matrix cores and on the others, `bandwidth` is that of its memory in GB/s;
    None where it is not known.
    """

    name: str
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    bandwidth: float | None
    source: str

    def overridden(self, tflops: Mapping[str, float], bandwidth: float | None = None) -> Peaks:
        """Replace some peaks of the matrix cores, and the bandwidth where given."""
        given = self.bandwidth if bandwidth is None else bandwidth
        source = "as given" if tflops or bandwidth else self.source
        return replace(self, matrix={**self.matrix, **tflops}, bandwidth=given, source=source)


def _peaks(  # noqa: PLR0917 - the columns of a data sheet
    name: str,
    vector: tuple[float, float],
    fp64: float,
    fp32: float,
    tf32: float | None,
    half: float,
    fp8: float | None,
    int8: float | None,
    bandwidth: float,
    source: str,
    *,
    bf16: bool = True,
) -> Peaks:
    figures = {
        "fp64": fp64,
        "fp32": fp32,
        "tf32": tf32,
        "fp16": half,
        "bf16": half if bf16 else None,
        "fp8": fp8,
        "int8": int8,
    }
    matrix = {dtype: peak for dtype, peak in figures.items() if peak is not None}
    others = {"fp64": vector[0], "fp32": vector[1]}
    return Peaks(name, MappingProxyType(matrix), MappingProxyType(others), bandwidth, source)


_V100: Final = "NVIDIA V100 data sheet (2020)"
_A100: Final = "NVIDIA A100 data sheet (2022)"
_H100: Final = "NVIDIA H100 data sheet; half of the figures with sparsity"
_H200: Final = "NVIDIA H200 data sheet; half of the figures with sparsity"
_B200: Final = "NVIDIA HGX B200 data sheet, an eighth; half of the figures with sparsity"
_MI200: Final = "AMD Instinct MI200 series data sheet"
_MI300: Final = "AMD Instinct {} data sheet"

PEAKS: Final = (
    _peaks("V100 PCIe", (7.0, 14.0), 7.0, 14.0, None, 112, None, None, 900, _V100, bf16=False),
    _peaks("V100S", (8.2, 16.4), 8.2, 16.4, None, 130, None, None, 1134, _V100, bf16=False),
    _peaks("V100 SXM2", (7.8, 15.7), 7.8, 15.7, None, 125, None, None, 900, _V100, bf16=False),
    _peaks("A100 PCIe 80GB", (9.7, 19.5), 19.5, 19.5, 156, 312, None, 624, 1935, _A100),
    _peaks("A100 40GB", (9.7, 19.5), 19.5, 19.5, 156, 312, None, 624, 1555, _A100),
    _peaks("A100 SXM 80GB", (9.7, 19.5), 19.5, 19.5, 156, 312, None, 624, 2039, _A100),
    _peaks("H100 PCIe", (26, 51), 51, 51, 378, 756.5, 1513, 1513, 2000, _H100),
    _peaks("H100 NVL", (30, 60), 60, 60, 417.5, 835.5, 1670.5, 1670.5, 3900, _H100),
    _peaks("H100 SXM", (34, 67), 67, 67, 494.7, 989.4, 1978.9, 1978.9, 3350, _H100),
    _peaks("H200 NVL", (30, 60), 60, 60, 417.5, 835.5, 1670.5, 1670.5, 4800, _H200),
    _peaks("H200", (34, 67), 67, 67, 494.7, 989.4, 1978.9, 1978.9, 4800, _H200),
    _peaks("B200", (37, 75), 37, 75, 1125, 2250, 4500, 4500, 7700, _B200),
    _peaks("MI210", (22.6, 22.6), 45.3, 45.3, None, 181, None, 181, 1638.4, _MI200),
    _peaks(
        "MI250X",
        (23.95, 23.95),
        47.85,
        47.85,
        None,
        191.5,
        None,
        191.5,
        1638.4,
        f"{_MI200}, half: each of its two dies is a device",
    ),
    _peaks(
        "MI300X",
        (81.7, 163.4),
        163.4,
        163.4,
        653.7,
        1307.4,
        2614.9,
        2614.9,
        5300,
        _MI300.format("MI300X"),
    ),
    _peaks(
        "MI325X",
        (81.7, 163.4),
        163.4,
        163.4,
        653.7,
        1307.4,
        2614.9,
        2614.9,
        6000,
        _MI300.format("MI325X"),
    ),
    _peaks(
        "MI355X",
        (78.6, 157.3),
        78.6,
        157.3,
        None,
        2516.6,
        5033.2,
        5033.2,
        8000,
        _MI300.format("MI355X"),
    ),
)
"""Every device that is known."""

_PATTERNS: Final = {
    "V100 PCIe": r"V100-PCIE",
    "V100S": r"V100S",
    "V100 SXM2": r"V100",
    "A100 PCIe 80GB": r"A100.*PCIe",
    "A100 SXM 80GB": r"A100",
    "H100 PCIe": r"H100 PCIe",
    "H100 NVL": r"H100 NVL",
    "H100 SXM": r"H100",
    "H200 NVL": r"H200 NVL",
    "H200": r"(?<!G)H200",
    "B200": r"(?<!G)B200",
    "MI210": r"MI210",
    "MI250X": r"MI250X",
    "MI300X": r"MI300X",
    "MI325X": r"MI325X",
    "MI355X": r"MI355X",
}


def peaks_of(name: str | None, memory_bytes: int | None = None) -> Peaks | None:
    """Find the peaks of a device by the name that its driver gives it.

    Parameters
    ----------
    name
        As in the device properties of a trace.
    memory_bytes
        How much memory it has, which tells two kinds of A100 apart.

    Returns
    -------
    Peaks or None
        None for a device that is not in the table.

    Examples
    --------
    >>> peaks_of("NVIDIA H100 80GB HBM3").matrix["bf16"]
    989.4
    >>> peaks_of("NVIDIA A100-SXM4-40GB", 42_505_273_344).bandwidth
    1555
    """
    for key, pattern in _PATTERNS.items():
        if name is not None and re.search(pattern, name, re.IGNORECASE):
            is_small = memory_bytes is not None and memory_bytes < _LARGE_A100
            if key.startswith("A100") and (is_small or "40GB" in name):
                key = "A100 40GB"  # noqa: PLW2901 - the same device with less memory
            return next(peaks for peaks in PEAKS if peaks.name == key)
    return None
