"""The statistics that tables give of a column."""

from __future__ import annotations

import polars as pl

__all__ = ["spread"]


def spread(column: str, prefix: str = "") -> dict[str, pl.Expr]:
    """Describe the values of a column: mean, standard deviation, extremes and quartiles.

    The deviation is that of a sample (null for a single value); quartiles are interpolated
    linearly. A `prefix` goes before each name, which keeps the unit of the column.

    Examples
    --------
    >>> import polars as pl
    >>> pl.DataFrame({"wait_ns": [1, 2, 4]}).select(**spread("wait_ns")).to_dicts()[0]["median_ns"]
    2.0
    """
    values = pl.col(column)
    unit = "_ns" if column.endswith("_ns") else ""
    quartiles = {"p25": 0.25, "median": 0.5, "p75": 0.75}
    figures = {
        "mean": values.mean(),
        "std": values.std(),
        "min": values.min(),
        **{name: values.quantile(part, "linear") for name, part in quartiles.items()},
        "max": values.max(),
    }
    return {f"{prefix}{name}{unit}": figure for name, figure in figures.items()}
