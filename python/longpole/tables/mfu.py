"""Table `roofline` by type: model FLOPs utilisation of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.devices.peaks import Peaks
from longpole.engine.windows import window_of
from longpole.report.blocks import Column, Sentence, Value, tabulated
from longpole.tables.catalogue import view
from longpole.tables.device_peaks import (
    DevicePeaks,
    device_peaks,
    listed_peaks,
    peak_sentences,
    with_precision,
)
from longpole.tables.operator_work import shapes_hint, whole_sum, work_in_window
from longpole.words.data import HIDDEN, Data, computed
from longpole.words.wording import share

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_TERA: Final = 1e12
_NS: Final = 1e9
_COLUMNS: Final[dict[Column, Value]] = {
    Column("device", "number"): "device",
    Column("type"): "precision",
    Column("model TFLOP", "number"): lambda row: row.flops / _TERA,
    Column("recomputed TFLOP", "number"): lambda row: row.recomputed_flops / _TERA,
    Column("kernel time", "duration"): "kernel_ns",
    Column("peak TFLOP/s", "number"): "peak_tflops",
    Column("MFU", "share"): "mfu",
    Column("HFU", "share"): "hfu",
}


@dataclass(frozen=True, slots=True)
class MfuRow:
    """Products, convolutions and attention of one type on one device."""

    device: int | None
    precision: str | None
    flops: int
    """FLOPs of the model, excluding recomputation in the backward pass."""
    recomputed_flops: int
    """FLOPs of forward operators that a backward pass recomputed (activation checkpointing)."""
    kernel_ns: int
    peak_tflops: float | None
    mfu: float | None
    """Share of the peak over the window; null if the peak is unknown."""
    hfu: float | None
    """MFU including recomputed FLOPs."""


@dataclass(frozen=True, slots=True)
class Mfu(Data):
    """The utilisation of each device in a window, one row for each data type."""

    rows: tuple[MfuRow, ...]
    known_peaks: Mapping[int | None, Peaks] = field(metadata=HIDDEN)
    unknown_ns: int
    """Time of kernels of products, convolutions and attention with unknown shapes."""
    without_formula_ns: int
    """Time of kernels whose operator has no known formula; they may include products."""
    kernel_ns: int
    """Time of all compute kernels."""
    hint: str | None = field(default=None, metadata=HIDDEN)
    """What to record if shapes are missing."""

    @computed
    def mfu(self) -> float | None:
        """Fraction of the peak of all devices that computed; None if a part is not known."""
        return self._total("mfu")

    @computed
    def peaks(self) -> tuple[DevicePeaks, ...]:
        """Peaks of the devices that computed."""
        return listed_peaks(self.known_peaks)

    @computed
    def hfu(self) -> float | None:
        """MFU including recomputed FLOPs."""
        return self._total("hfu")

    def records(self) -> list[Record]:
        """Return a row for each device and type."""
        return [asdict(row) for row in self.rows]

    def blocks(self) -> list[Block]:
        """Show the utilisation and what it is based on."""
        if not self.rows:
            none = "No product, convolution or attention with known shapes ran in it."
            return [Sentence(none), *(Sentence(hint) for hint in [self.hint] if hint)]
        return [Sentence(self._sentence()), tabulated(self.rows, _COLUMNS), *self._notes()]

    def _sentence(self) -> str:
        if self.mfu is None:
            return (
                "The peak of a device or type is unknown, and so is the utilisation: give --peak."
            )
        return f"MFU {share(self.mfu)}: the FLOPs of the model over those that the peak allows."

    def _notes(self) -> list[Block]:
        notes: list[Block] = [*map(Sentence, peak_sentences(self.known_peaks))]
        if self.kernel_ns and self.unknown_ns + self.without_formula_ns:
            missing = (self.unknown_ns + self.without_formula_ns) / self.kernel_ns
            notes.append(
                Sentence(
                    f"The operations of {share(missing)} of the kernel time are not known: the "
                    "utilisation may be higher."
                )
            )
        return notes

    def _total(self, name: str) -> float | None:
        parts: list[float | None] = [getattr(row, name) for row in self.rows]
        known = [part for part in parts if part is not None]
        if not parts or len(known) < len(parts):
            return None
        return sum(known) / len({row.device for row in self.rows})


@view(Mfu, needs_arguments=True)
def mfu(
    trace: Trace,
    window: Window | None = None,
    *,
    peaks: Peaks | None = None,
    peak: Mapping[str, float] | None = None,
    where: pl.Expr | str | None = None,
) -> Mfu:
    """Compute the model FLOPs utilisation of a window.

    Products, convolutions and attention count, by their formulas; each type has its own peak. The
    window is that of the step, including idle time. FLOPs that a backward pass spends on
    recomputing forward operators count for the hardware (`hfu`), not for the model (`mfu`). With a
    causal mask, half of the FLOPs count.

    Parameters
    ----------
    peaks
        Peaks of the devices, instead of the table in `longpole.devices.peaks`.
    peak
        Single peaks instead of those, by type, such as `{"bf16": 800}`.

    Raises
    ------
    ValueError
        The condition is invalid, or a peak is of an unknown type or not positive.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> inputs = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"]}
    >>> builder = TraceBuilder().operator("aten::mm", (0, 9), **inputs)
    >>> trace = builder.launch("gemm", call=(1, 2), work=(2, 26.8435456)).read()
    >>> round(mfu(trace, peak={"fp32": 20}).mfu, 3)
    0.5
    """
    window = window_of(trace, window)
    known = device_peaks(trace, peaks, peak=peak)
    if window is None:
        return Mfu((), known, 0, 0, 0)
    work, _ = work_in_window(trace, window, where)
    is_matrix = pl.col("is_matrix").fill_null(value=False)
    has_flops = pl.col("flops").is_not_null()
    sums = _sums(work.filter(is_matrix & has_flops))
    rows = tuple(_row(row, known, window.duration_ns) for row in sums.iter_rows())
    unknown = work.filter(pl.col("name").is_not_null() & ~has_flops)
    other = work.filter(pl.col("name").is_null())
    times = (int(part["kernel_ns"].sum()) for part in (unknown, other, work))
    used = {row.device: known[row.device] for row in rows if row.device in known}
    unknown_ns, without_formula_ns, kernel_ns = times
    hint = None if rows else shapes_hint(trace)
    return Mfu(rows, used, unknown_ns, without_formula_ns, kernel_ns, hint)


def _sums(counted: pl.DataFrame) -> pl.DataFrame:
    """Sum FLOPs and kernel time by device and type."""
    is_again = pl.col("is_recomputed")
    return (
        with_precision(counted)
        .group_by("device", "precision")
        .agg(
            flops=whole_sum(pl.col("flops").filter(~is_again)),
            recomputed_flops=whole_sum(pl.col("flops").filter(is_again)),
            kernel_ns=pl.col("kernel_ns").sum(),
        )
        .sort("device", "precision")
    )


def _row(row: tuple[Any, ...], peaks: Mapping[int | None, Peaks], window_ns: int) -> MfuRow:
    device, precision, flops, recomputed_flops, kernel_ns = row
    peak = peaks[device].matrix.get(precision or "") if device in peaks else None
    most = None if peak is None else peak * _TERA * window_ns / _NS
    return MfuRow(
        device,
        precision,
        flops,
        recomputed_flops,
        kernel_ns,
        peak,
        mfu=flops / most if most else None,
        hfu=(flops + recomputed_flops) / most if most else None,
    )
