"""Table `kernels`: GPU activities by name, with what twice their speed would save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_schema, typed
from longpole.tables.activities import own_activities
from longpole.tables.activity_sums import ActivitySum, by_keys
from longpole.tables.annotated_kernels import annotated_kernels
from longpole.tables.catalogue import ask_by, table, view
from longpole.tables.kernel_gains import MOST_KERNELS, kernel_gains
from longpole.tables.kernel_sequences import kernel_sequences
from longpole.tables.launch_shapes import LAUNCH_COLUMNS, LaunchShape, launch_shapes
from longpole.tables.needs import ACTIVITIES
from longpole.tables.operator_kernels import operator_kernels
from longpole.tables.statistics import DurationFigures
from longpole.trace.captures import has_captured_graphs
from longpole.words.wording import operator_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_HOST: Final = "The window has no kernel: these are its operators, with their self time."
_GAINS: Final = (
    "gain: what the window would save if all kernels of the name were twice as fast, or as fast as"
    " the device allows; evaluated for the 20 names with most time on the critical path."
)
_FIRST: Final = (
    *("kind", "name", "count", "duration_ns", "window_share"),
    *("gain_ns", "of_roof", "operator"),
)


class KernelRow(ActivitySum, LaunchShape):
    """All GPU activities with the same name; operators too if the window has no kernel."""

    gain_ns: int | None
    """Time saved in the window if the kernels took half as long, or reached the roofline if that
    saves less (`of_roof`). Null for memcpys and memsets, and for names that were not evaluated."""
    gain_share: float | None
    """Gain as a share of the window."""
    path_ns: int | None
    """Part of their time in the window that is on the critical path."""
    bound_ns: int | None
    """Time saved if they took no time, as when they are fused into others."""
    of_roof: float | None
    """How close the operators that launch them come to the limits of the device, as in `roofline`:
    near 1, a faster kernel is almost impossible. Null if unknown."""
    operator: str | None
    """Innermost operator that launched the longest one, with the sizes of its inputs; for a kernel
    of a graph, the one that was captured."""
    operator_event: int | None
    """Operator of the longest one on the path, for `longpole repro`; null if unknown."""
    operator_name: str | None
    shapes: str | None
    """Shapes and types of the inputs of `operator_event`; null if not recorded."""


def _has_operators(rows: pl.DataFrame) -> bool:
    return "operator" in rows["kind"]


def _has_gains(rows: pl.DataFrame) -> bool:
    return rows["gain_ns"].count() > 0


@view(
    KernelRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
    legend=((_has_operators, _HOST), (_has_gains, _GAINS)),
    needs_arguments=True,
)
def _by_name(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    window = window_of(trace, window)
    schema = frame_schema(KernelRow, last=DurationFigures)
    if window is None:
        return _no_rows(schema)
    found = own_activities(trace, window, where=where)
    rows = _with_launches(trace, by_keys(found, window, "kind", "work_class", "name"))
    launched = trace.core.operators_of(rows["longest_event"].to_list())
    operators = [operator_name(*operator[1:]) if operator else None for operator in launched]
    captured = _captured(trace, rows["longest_event"])
    known = [found or name for found, name in zip(captured, operators, strict=True)]
    rows = rows.with_columns(operator=pl.Series(known, dtype=pl.String))
    gains = kernel_gains(trace, window).rename({"operator": "operator_event"})
    rows = _with_gains(rows, gains.filter(pl.col("kind") == "kernel"))
    host = gains.filter(pl.col("kind") == "operator") if where is None else gains.clear()
    host = host.with_columns(window_share=pl.col("duration_ns") / max(window.duration_ns, 1))
    return typed(pl.concat([rows, host], how="diagonal_relaxed").select(_ordered(schema)))


def _with_launches(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the launch of the longest kernel of each name."""
    shapes = launch_shapes(trace, rows["longest_event"]).rename({"event": "longest_event"})
    return rows.join(shapes, on="longest_event", how="left", maintain_order="left")


def _captured(trace: Trace, events: pl.Series) -> list[str | None]:
    """Return the innermost captured operator of each kernel of a graph; None for other kernels."""
    if not has_captured_graphs(trace):
        return [None] * events.len()
    names = dict(trace.graph_nodes.select("event", "operator_name").iter_rows())
    return [names.get(event) for event in events]


def _ordered(names: Iterable[str]) -> list[str]:
    """Return columns with the most important first, and those of launches before the statistics."""
    last = [*LAUNCH_COLUMNS, *get_type_hints(DurationFigures)]
    return [*_FIRST, *(name for name in names if name not in {*_FIRST, *last}), *last]


def _no_rows(schema: Mapping[str, Any]) -> pl.DataFrame:
    events = dict.fromkeys(("longest_event", "operator_event"), pl.UInt32)
    return typed(
        pl.DataFrame(schema={name: events.get(name, schema[name]) for name in _ordered(schema)})
    )


def _with_gains(rows: pl.DataFrame, gains: pl.DataFrame) -> pl.DataFrame:
    """Add the gains of kernels; those of names that were not evaluated are 0 or unknown."""
    joined = rows.join(gains.drop("kind", "count", "duration_ns"), on="name", how="left")
    times = ("path_ns", "gain_ns", "bound_ns", "gain_share")
    is_kernel = pl.col("kind") == "kernel"
    known = pl.col(times).fill_null(0) if gains.height < MOST_KERNELS else pl.col(times)
    unknown = [name for name in gains.columns if name not in rows.columns and name not in times]
    return joined.with_columns(
        pl.when(is_kernel).then(known), pl.when(is_kernel).then(pl.col(unknown))
    )


_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "name": _by_name,
    "operator": operator_kernels,
    "annotation": annotated_kernels,
    "sequence": kernel_sequences,
}


@table(by=_BY)
def kernels(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["name", "operator", "annotation", "sequence"] = "name",
    where: pl.Expr | str | None = None,
    min_length: int | None = None,
) -> pl.DataFrame:
    """Rank the kernels, memcpys and memsets of a window, with what faster kernels would save.

    Gains are computed with `CriticalPath.what_if`, one kernel name at a time: a kernel that runs
    concurrently with something longer gains nothing, regardless of its duration. No kernel is
    assumed to exceed the roofline. The 20 names with most time on the path are evaluated. Without
    kernels in the window, its operators are listed with their self time.

    Parameters
    ----------
    by
        `"name"` has a row for each name, most time first; `"operator"` one for each operator and
        the kernels that it launched, with their launch delays; `"annotation"` one for each
        annotation and name; `"sequence"` one for each frequent sequence of kernels, below one
        operator or across operators.
    where
        A condition on the columns of `activities`, such as `"kind = 'kernel'"`; for
        `by="annotation"` also on `annotation` and `is_backward`; for `by="sequence"` on operators,
        by the columns of `Trace.events`.
    min_length
        Minimum number of kernels, for `by="sequence"`: 3 by default.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 10))
    >>> builder = builder.launch("gemm", call=(0, 10), work=(10, 90))
    >>> trace = builder.launch("add", call=(10, 12), work=(90, 100)).read()
    >>> kernels(trace).select("name", "count", "duration_ns", "window_share", "gain_ns").rows()
    [('gemm', 1, 80000, 0.8, 40000), ('add', 1, 10000, 0.1, 5000)]
    >>> kernels(trace, by="operator").select("operator_name", "kernels").row(0)
    ('aten::mm', ['gemm'])
    """
    return ask_by(_BY, by, trace, window, where=where, min_length=min_length)
