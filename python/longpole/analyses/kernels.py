"""The kernels that took most of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.by_name import NameTime, Ranking, by_name
from longpole.windows import choose_window

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["kernels"]


def kernels(trace: Trace, window: Window | None = None, *, top: int = 10) -> Ranking[NameTime]:
    """Rank the kernels of a window by name and total time, the longest first.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    top
        How many names to list.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> kernels(trace).rows[0].duration_ns
    90000
    """
    window = window or choose_window(trace)
    if window is None:
        return Ranking((), 0)
    ranked = by_name(window.clip(trace.events.filter(pl.col("kind") == "kernel")), "inside_ns")
    return Ranking(tuple(NameTime(*row) for row in ranked.head(top).iter_rows()), ranked.height)
