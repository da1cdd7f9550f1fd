"""Events grouped by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from longpole.frames import typed

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NameTime", "Ranking", "by_name"]

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Row]):
    """The first rows of a list, and how many it has."""

    rows: tuple[Row, ...]
    n_total: int


@dataclass(frozen=True, slots=True)
class NameTime:
    """All events of one name, and the longest of them. Concurrent events count twice."""

    name: str | None
    count: int
    duration_ns: int
    longest_ns: int
    longest_event: int


def by_name(events: pl.DataFrame, time: str) -> pl.DataFrame:
    """Group by name: `count`, `duration_ns`, `longest_ns`, `longest_event`, the longest first.

    `time` is the column that is summed. Ties go by name, between events by row.

    Examples
    --------
    >>> import polars as pl
    >>> events = pl.DataFrame({"event": [0, 1], "name": ["gemm", "gemm"], "inside_ns": [5, 7]})
    >>> by_name(events, "inside_ns").row(0)
    ('gemm', 2, 12, 7, 1)
    """
    import polars as pl

    grouped = (
        events.sort(time, "event", descending=[True, False])
        .group_by("name", maintain_order=True)
        .agg(
            count=pl.len().cast(pl.Int64),
            duration_ns=pl.col(time).sum(),
            longest_ns=pl.col(time).first(),
            longest_event=pl.col("event").first(),
        )
        .with_columns(pl.col("name").cast(pl.String))
        .sort("duration_ns", "name", descending=[True, False])
    )
    return typed(grouped)
