"""The input shapes of some work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longpole.analyses.diff.sides import Side

__all__ = ["shapes_of"]

_MOST: Final = 3


def shapes_of(side: Side, kind: str, events: NDArray[np.uint32]) -> tuple[str, ...]:
    """Return the shapes of the operators of some events, most frequent first."""
    import polars as pl

    rows = pl.Series("event", events, pl.UInt32).to_frame()
    if kind != "operator":
        known = side.trace.launches.select("event", "operator").drop_nulls()
        rows = rows.join(known, on="event").select(event="operator")
    texts = [
        rows.join(args.select("event", "Input Dims").drop_nulls(), on="event")["Input Dims"]
        for category in side.trace.categories
        if (args := side.trace.args(category)) is not None and "Input Dims" in args.columns
    ]
    if not texts:
        return ()
    counted = pl.concat([text.cast(str) for text in texts]).rename("shape").to_frame()
    shape = pl.col("shape").str.replace_all(r"\s", "")
    ranked = counted.group_by(shape).len("n").sort("n", "shape", descending=[True, False])
    return tuple(ranked["shape"].head(_MOST))
