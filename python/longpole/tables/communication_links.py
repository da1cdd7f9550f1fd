"""Table `communication_links`: data that collectives moved between ranks, and the bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import argument, frame_schema
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_NO_PEER: Final = 0xFFFFFFFF
_ARGUMENTS: Final = ("src rank", "dst rank", "size(Byte)", "link type")


class CommunicationLinkRow(Row):
    """Data sent from one rank to another."""

    source_rank: int
    """Index within the group."""
    target_rank: int
    """The source rank itself if the data stays on the device."""
    link: str
    """`HCCS`, `PCIE`, `ROCE`, `ON_CHIP`, ..."""
    count: int
    bytes: int
    duration_ns: int
    """Sum of the durations of the tasks."""
    bandwidth_gb_per_s: float | None
    """Bandwidth in 10^9 bytes per second."""


@table(
    CommunicationLinkRow,
    needs_arguments=True,
    empty="Only profiles of Ascend devices record the tasks of collectives.",
    ignores_window=True,
)
def communication_links(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Sum the data moved by the tasks of collectives, for each pair of ranks.

    Profiles of Ascend devices contain these tasks; for others the frame is empty. The sums
    correspond to `communication_matrix.json`, over all collectives.

    Parameters
    ----------
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        A row for each pair and kind of link.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("ncclAllReduce", call=(0, 1), work=(2, 4)).read()
    >>> communication_links(trace).height
    0
    """
    tasks = trace.events.filter(pl.col("kind") == "device_task")
    arguments = None if tasks.is_empty() else trace.args(None)
    if arguments is None or not set(_ARGUMENTS) <= set(arguments.columns):
        return matching(pl.DataFrame(schema=frame_schema(CommunicationLinkRow)), where)
    numbers = [argument(arguments, key, pl.Int64) for key in _ARGUMENTS[:3]]
    known = arguments.select("event", *numbers, *_ARGUMENTS[3:])
    moved = tasks.join(known, on="event")
    chosen = window_of(trace, window)
    return matching(_sums(moved if chosen is None else chosen.starting(moved)), where)


def _sums(moved: pl.DataFrame) -> pl.DataFrame:
    """Sum the tasks that moved data, by pair of ranks and kind of link."""
    source, peer = pl.col("src rank"), pl.col("dst rank")
    return (
        moved.filter(pl.col("size(Byte)") > 0)
        .group_by(
            source_rank=source,
            target_rank=pl.when(peer < _NO_PEER).then(peer).otherwise(source),
            link=pl.col("link type").cast(pl.String),
        )
        .agg(
            count=pl.len().cast(pl.Int64),
            bytes=pl.col("size(Byte)").sum(),
            duration_ns=pl.col("duration_ns").sum(),
        )
        .with_columns(
            bandwidth_gb_per_s=pl.when(pl.col("duration_ns") > 0).then(
                pl.col("bytes") / pl.col("duration_ns")
            )
        )
        .sort("source_rank", "target_rank", "link")
    )
