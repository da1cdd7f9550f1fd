"""Table `kernel_gains`: kernels whose tuning pays, by their gain on the critical path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import polars as pl

from longpole.analyses.activities import activities
from longpole.analyses.parameters import shared_parameters
from longpole.convert.flame import path_of
from longpole.critical_path import Drop, Scale
from longpole.data import Row
from longpole.frames import typed
from longpole.inputs import shapes_in_words
from longpole.windows import window_of

if TYPE_CHECKING:
    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["KernelGainRow", "kernel_gains"]

_MOST_KERNELS: Final = 20


class KernelGainRow(Row):
    """The kernels of one name."""

    name: str
    count: int
    duration_ns: int
    """Their time in the window; kernels at the same time count twice."""
    path_ns: int
    """The part of it on the critical path."""
    gain_ns: int
    """How much shorter the window would be if they took half of their time."""
    gain_share: float
    """Of the window."""
    bound_ns: int
    """How much shorter it would be if they took no time: tuning cannot gain more."""
    operator: int | None
    """The operator of the longest of them, for `longpole repro`; null where none is known."""
    operator_name: str | None
    shapes: str | None
    """Shapes and types of its inputs; null where they were not recorded."""


@shared_parameters(needs_arguments=True)
def kernel_gains(
    trace: Trace, window: Window | None = None
) -> Annotated[pl.DataFrame, KernelGainRow]:
    """Rank kernels by what the window gains if they get twice as fast.

    The gains are those of `CriticalPath.what_if`, one kernel name at a time: a kernel that runs
    beside something longer gains nothing, however long it takes. The 20 names with the most time on
    the path are asked about.

    Returns
    -------
    DataFrame
        A row for each name, the largest gain first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 90))
    >>> builder = builder.launch("beside", call=(10, 12), work=(12, 50), stream=20)
    >>> kernel_gains(builder.read()).select("name", "path_ns", "gain_ns", "bound_ns").rows()
    [('gemm', 80000, 40000, 40000)]
    """
    window = window_of(trace, window)
    found = activities(trace, window).filter(pl.col("kind") == "kernel")
    if window is None or found.is_empty():
        return _typed([])
    path = path_of(trace, window)
    rows = [_row(path, found, name, path_ns) for name, path_ns in _on_path(path)]
    rows.sort(key=lambda row: (-row["gain_ns"], -row["bound_ns"], row["name"]))
    return _typed(rows, _shapes(trace, [row["operator"] for row in rows]))


def _on_path(path: CriticalPath) -> list[tuple[str, int]]:
    """Give the kernels with the most time on the path, and that time."""
    totals = [each for each in path.name_totals if each["kind"] == "kernel" and each["name"]]
    totals.sort(key=lambda each: (-each["duration_ns"], str(each["name"])))
    return [(str(each["name"]), each["duration_ns"]) for each in totals[:_MOST_KERNELS]]


def _row(path: CriticalPath, found: pl.DataFrame, name: str, path_ns: int) -> KernelGainRow:
    own = found.filter(pl.col("name").cast(pl.String) == name)
    longest = own.sort("inside_ns", "event", descending=[True, False]).head(1)
    only = f"^{re.escape(name)}$"
    half = path.what_if(Scale(by=0.5, kind="kernel", matching=only))
    gone = path.what_if(Drop(kind="kernel", matching=only))
    return KernelGainRow(
        name=name,
        count=own.height,
        duration_ns=int(own["inside_ns"].sum()),
        path_ns=path_ns,
        gain_ns=half.gain_ns,
        gain_share=half.gain_ns / max(1, path.length_ns),
        bound_ns=gone.gain_ns,
        operator=longest["operator"][0] if longest.height else None,
        operator_name=longest["operator_name"][0] if longest.height else None,
        shapes=None,
    )


def _shapes(trace: Trace, operators: list[int | None]) -> dict[int, str]:
    """Give the shapes of the inputs of operators in words, where they were recorded."""
    inputs = trace.inputs.filter(pl.col("event").is_in([it for it in operators if it is not None]))
    return dict(inputs.select("event", shapes_in_words()).iter_rows())


def _typed(rows: list[KernelGainRow], shapes: dict[int, str] | None = None) -> pl.DataFrame:
    schema = {
        "name": pl.String,
        **dict.fromkeys(("count", "duration_ns", "path_ns", "gain_ns"), pl.Int64),
        "gain_share": pl.Float64,
        "bound_ns": pl.Int64,
        "operator": pl.UInt32,
        "operator_name": pl.String,
        "shapes": pl.String,
    }
    known = shapes or {}
    told = [
        {**row, "shapes": None if row["operator"] is None else known.get(row["operator"])}
        for row in rows
    ]
    return typed(pl.DataFrame(told, schema=schema))
