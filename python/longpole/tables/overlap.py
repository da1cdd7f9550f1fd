"""Table `overlap`: how much communication and copying is hidden behind kernels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

from longpole.engine.windows import window_of
from longpole.report.blocks import Column, Sentence, Value, tabulated
from longpole.tables.activities import chosen
from longpole.tables.catalogue import table
from longpole.trace import sweeps
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

__all__ = ["Overlap", "OverlapRow", "overlap"]

_COLUMNS: Final[dict[Column, Value]] = {
    Column("device", "number"): "device",
    Column("activity"): "activity",
    Column("time", "duration"): "duration_ns",
    Column("exposed", "duration"): "exposed_ns",
    Column("hidden", "share"): "hidden_share",
    Column("exposed, of window", "share"): "share",
}


@dataclass(frozen=True, slots=True)
class OverlapRow:
    """One type of GPU activities of a device in a window."""

    device: int | None
    activity: Literal["communication", "copy"]
    duration_ns: int
    """Time in which an activity of this type ran."""
    exposed_ns: int
    """Part in which no compute kernel ran and, for copies, no communication either."""
    hidden_share: float | None
    """Hidden part as a fraction of `duration_ns`; null if that is 0."""
    share: float | None
    """`exposed_ns` as a fraction of the window, an upper bound of the gain of hiding it."""


@dataclass(frozen=True, slots=True)
class Overlap(Data):
    """The overlap of each device in a window."""

    rows: tuple[OverlapRow, ...]

    def records(self) -> list[Record]:
        """Return a row for each device and type."""
        return [asdict(row) for row in self.rows]

    def blocks(self) -> list[Block]:
        """Show the rows with any time."""
        rows = [row for row in self.rows if row.duration_ns]
        if not rows:
            return [Sentence("No device communicates or copies in it.")]
        return [tabulated(rows, _COLUMNS)]


@table(Overlap)
def overlap(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> Overlap:
    """Measure how much communication and copying of each device is hidden behind kernels.

    Parameters
    ----------
    where
        A condition on the columns of `activities`; other activities do not hide anything.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30))
    >>> trace = builder.launch("ncclAllReduce", call=(1, 2), work=(20, 60), stream=9).read()
    >>> communication, copies = overlap(trace).rows
    >>> communication.duration_ns, communication.exposed_ns, communication.hidden_share
    (40000, 30000, 0.25)
    """
    window = window_of(trace, window)
    if window is None:
        return Overlap(())
    span_ns = window.duration_ns
    busy = sweeps.busy(trace, window, chosen(trace, window, where))
    rows: list[OverlapRow] = []
    for row in busy.filter(busy["stream"].is_null()).iter_rows(named=True):
        rows += [_row(row, "communication", span_ns), _row(row, "copy", span_ns)]
    return Overlap(tuple(rows))


def _row(
    row: Mapping[str, int], activity: Literal["communication", "copy"], span_ns: int
) -> OverlapRow:
    duration_ns, exposed_ns = row[f"{activity}_total_ns"], row[f"{activity}_ns"]
    hidden = 1 - exposed_ns / duration_ns if duration_ns else None
    share = exposed_ns / span_ns if span_ns else None
    return OverlapRow(row["device"], activity, duration_ns, exposed_ns, hidden, share)
