"""Floating-point operations of an Ascend device's operators: `flops_{rank}.txt`.

MindSpore's own summary divides a sum of rates by a sum of times. Here the total rate is the sum of
operations divided by the sum of times, where each time is operations divided by rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.mindspore.text import CsvFile

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["FlopsSummary", "read_flops"]

_NEEDED: Final = {
    "operator": ("full_op_name", "full_kernel_name", "op_full_name"),
    "operations": ("FLOPs", "FLOPs(M)", "MFLOPs(10^6)", "MFLOPs", "MFLOPs(10^6 cube)"),
    "rate": ("FLOPS", "FLOPS(G/s)", "GFLOPS(10^9)", "GFLOPS", "GFLOPS(10^9 cube)"),
}
_KNOWN: Final = (
    "FLOPS utilization",
    "FLOPS utilization(%)",
    "MFLOPs utilization(%)",
    "MFLOPs(10^6 vector)",
    "GFLOPS(10^9 vector)",
)
_MOST: Final = 1e30
_SCALE: Final = {"M": 1e6, "G": 1e9}


@dataclass(frozen=True, slots=True)
class FlopsSummary:
    """Totals over all operators of one file.

    A value is None if the header has no unit (`unit_not_named`), or if the rate is 0 for an
    operator that computed.
    """

    rank: int
    n_operators: int
    operations: float | None
    """Floating-point operations of all operators."""
    operations_per_s: float | None
    """Their rate while the operators ran."""
    operations_as_written: float | None = None
    """Sum of the column, if its header has no unit."""


def read_flops(path: Path, rank: int, findings: Findings) -> FlopsSummary:
    """Read the file of one rank."""
    file = CsvFile(path, findings)
    file.find(_NEEDED, _KNOWN)
    unit, unit_of_rate = (_scale(file.name_of(key)) for key in ("operations", "rate"))
    if None in (unit, unit_of_rate):
        findings.add("unit_not_named", path, 1, file.name_of("operations"))
    count, operations, seconds = 0, 0.0, 0.0
    for row in file.rows():
        done, rate = file.number(row["operations"]), file.number(row["rate"])
        if done is None or rate is None:
            continue
        if max(done, rate) > _MOST:
            file.report("bad_number")
            continue
        count += 1
        operations += done * (unit or 1)
        if done:
            seconds += done * (unit or 1) / (rate * (unit_of_rate or 1)) if rate else float("nan")
    total = None if None in (unit, unit_of_rate) else operations
    rate_of_all = operations / seconds if total and seconds > 0 else None
    as_written = operations if unit is None else None
    return FlopsSummary(rank, count, total, rate_of_all, as_written)


def _scale(name: str) -> float | None:
    """Parse the unit of a column: `MFLOPs(10^6)`, `FLOPs(M)`, `GFLOPS`, `FLOPS(G/s)`."""
    found = next((letter for letter in _SCALE if f"({letter}" in name or name[0] == letter), None)
    return None if found is None else _SCALE[found]
