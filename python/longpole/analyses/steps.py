"""Table `steps`: the steps of the program, with their windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.analyses.catalogue import table
from longpole.selection import matching

if TYPE_CHECKING:
    import polars as pl

    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["steps"]


@table()
def steps(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the steps of a window, or of the whole trace.

    Parameters
    ----------
    window
        From `choose_window`: only steps that overlap it.
    where
        A condition on the columns of `Trace.steps`.

    Returns
    -------
    DataFrame
        The columns of `Trace.steps`.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> steps(TraceBuilder().step(3, (0, 10)).read())["step"].to_list()
    [3]
    """
    found = matching(trace.steps, where)
    return found if window is None else window.clip(found).drop("inside_ns")
