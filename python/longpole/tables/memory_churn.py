"""Table `memory` by operator: number and size of allocations and frees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.tables.catalogue import view
from longpole.tables.memory_curve import memory_curve
from longpole.tables.needs import ALLOCATIONS
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.allocations import Allocations
    from longpole.trace.trace import Trace


class ChurnRow(Row):
    """Memory that one operator allocates and frees on a device."""

    device: str
    operator: str | None
    function: str | None
    category: str | None
    n_allocations: int
    allocated_bytes: int
    n_frees: int
    freed_bytes: int


@view(
    ChurnRow,
    needs_arguments=True,
    needs=(ALLOCATIONS,),
    empty="No memory was allocated or freed in it.",
    is_of_host=True,
)
def memory_churn(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
) -> pl.DataFrame:
    """Sum allocations and frees by device, operator, function and category.

    Parameters
    ----------
    window
        Only changes in this window; by default the whole recording.
    where
        Changes to count: a polars expression or an SQL condition on the columns of the table
        by time.

    Returns
    -------
    DataFrame
        Rows of `ChurnRow`, most allocated bytes first. Operator and function are null for changes
        outside any.

    Raises
    ------
    ValueError
        The condition is invalid.
    """
    changes = memory_curve(recording, window, where=where)
    changes = changes.filter(pl.col("change").is_in(["allocated", "freed"]))
    n_bytes = pl.col("n_bytes")
    key = ["device", "operator", "function", "category"]
    return (
        changes.group_by(key)
        .agg(
            n_allocations=(n_bytes > 0).sum().cast(pl.Int64),
            allocated_bytes=n_bytes.filter(n_bytes > 0).sum(),
            n_frees=(n_bytes < 0).sum().cast(pl.Int64),
            freed_bytes=-n_bytes.filter(n_bytes < 0).sum(),
        )
        .sort("allocated_bytes", "freed_bytes", *key, descending=[True, True] + [False] * len(key))
    )
