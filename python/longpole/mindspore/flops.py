"""How many operations the operators of an Ascend device computed: `flops_{rank}.txt`.

MindSpore's own summary divides a sum of rates by a sum of times. Here the rate of all is the sum of
the operations by the sum of the times, each time being operations by rate.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.text import Columns, number, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
    """What all operators of one file computed together.

    `operations` is their number and `operations_per_s` their rate while they ran; None where the
    header names no unit (`unit_not_named`), or where a rate is 0 for an operator that computed.
    """

    rank: int
    n_operators: int
    operations: float | None
    operations_per_s: float | None
    findings: Sequence[FileFinding] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the findings as plain values."""
        values = asdict(self)
        del values["findings"]
        return values


def read_flops(path: Path, rank: int) -> FlopsSummary:
    """Read the file of one rank.

    Raises
    ------
    ProfileError
        The file is empty, or a column is missing.
    OSError
        The file cannot be read.
    """
    findings = Findings()
    header, rows = table_of(path, findings)
    columns = Columns(path, header, _NEEDED, findings, known=_KNOWN)
    names = [name.strip() for name in header]
    scales = [_scale(names[columns.place(key)]) for key in ("operations", "rate")]
    if None in scales:
        findings.add("unit_not_named", path, 1, names[columns.place("operations")])
    count, operations, seconds = 0, 0.0, 0.0
    for line, row in columns.whole(rows):
        done = number(row[columns.place("operations")], path, line, findings)
        rate = number(row[columns.place("rate")], path, line, findings)
        if done is None or rate is None:
            continue
        if max(done, rate) > _MOST:
            findings.add("bad_number", path, line)
            continue
        count += 1
        operations += done * (scales[0] or 1)
        if done:
            seconds += done * (scales[0] or 1) / (rate * (scales[1] or 1)) if rate else float("nan")
    total = operations if None not in scales else None
    rate_of_all = operations / seconds if total and seconds > 0 else None
    return FlopsSummary(rank, count, total, rate_of_all, findings.all())


def _scale(name: str) -> float | None:
    """Read the unit that a column names: `MFLOPs(10^6)`, `FLOPs(M)`, `GFLOPS`, `FLOPS(G/s)`."""
    found = next((letter for letter in _SCALE if f"({letter}" in name or name[0] == letter), None)
    return None if found is None else _SCALE[found]
