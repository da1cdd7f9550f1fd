"""What the operators of a window had to compute and to move, and what their kernels took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import polars as pl

from longpole.flops import MATRIX_OPERATORS, call_of, work_of
from longpole.inputs import INPUT_ARGUMENTS, distinct_inputs
from longpole.selection import matching
from longpole.sweeps import activities, enclosing

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["operator_work", "operators_with_work", "outermost", "work_in_window"]

_INPUTS: Final = ("inputs", "shapes", "strides", "dtypes", "values")
_KNOWN: Final[WeakKeyDictionary[Trace, pl.DataFrame]] = WeakKeyDictionary()
"""The operators of a trace, which several questions ask for."""

_CATEGORIES: Final = ("cpu_op", "Operator")
_WORK: Final = {
    "flops": pl.Int64,
    "n_bytes": pl.Int64,
    "dtype": pl.String,
    "is_matrix": pl.Boolean,
}


def operator_work(
    trace: Trace, window: Window, *, where: pl.Expr | str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tell the operators that a formula is known for, and the kernels of a window.

    Of operators inside one another the outermost with a formula counts: `aten::linear` and not
    the `aten::addmm` in it.

    Returns
    -------
    tuple of DataFrame
        The operators: `operator` (event), `name`, `shapes`, `dtypes`, `flops`, `n_bytes`, `dtype`,
        `is_matrix`, `is_recomputed` (a forward operator that a backward pass ran again). And all
        kernels that compute: `event`, `device`, `kernel` (name), `operator` (null where none of
        those operators launched it), `duration_ns`, and `inside_ns`, their time in the window.
    """
    operators = operators_with_work(trace)
    kept = pl.Series(operators["operator"], dtype=pl.UInt32)
    nodes = trace.backward_links["backward"]
    is_again = outermost(trace, kept, nodes).is_not_null() & kept.is_in(_forward(trace).implode())
    kernels = matching(activities(trace), where).filter(
        pl.col("kind") == "kernel",
        pl.col("work_class").cast(pl.String) == "compute",
        pl.col("duration_ns") >= 0,
    )
    inside = window.clip(kernels).select("event", "inside_ns")
    owners = outermost(trace, kernels["operator"], kept)
    rows = kernels.select(
        "event", "device", "duration_ns", kernel=pl.col("name").cast(pl.String), operator=owners
    )
    rows = rows.join(inside, on="event", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("inside_ns").fill_null(0))
    return operators.with_columns(is_recomputed=is_again), rows


def work_in_window(
    trace: Trace, window: Window, where: pl.Expr | str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tell what each operator that launched kernels in the window had to do there.

    The columns are those of the operators, `device`, `kernel` (the longest), `n_kernels` and
    `kernel_ns` in the window. Of an operator whose kernels are in the window in part, that part
    of `flops` and `n_bytes` counts. Kernels of no such operator have a row each kernel name,
    with `operator` null. The second frame gives each kernel (`event`) its `owner`, a row of the
    first.
    """
    operators, kernels = operator_work(trace, window, where=where)
    key = ["operator", "device"]
    named = pl.when(pl.col("operator").is_null()).then(pl.col("kernel"))
    kernels = kernels.with_columns(other=named)
    ran = (
        kernels.sort("duration_ns", "event", descending=[True, False])
        .group_by(*key, "other", maintain_order=True)
        .agg(
            pl.col("kernel", "event").first(),
            n_kernels=(pl.col("inside_ns") > 0).sum().cast(pl.Int64),
            kernel_ns=pl.col("inside_ns").sum(),
            all_ns=pl.col("duration_ns").sum(),
        )
        .filter(pl.col("kernel_ns") > 0)
        .with_row_index("owner")
    )
    owned = kernels.select(pl.col("event"), *key, "other").join(
        ran.select("owner", *key, "other"), on=[*key, "other"], nulls_equal=True
    )
    joined = ran.drop("other").join(operators, on="operator", how="left", maintain_order="left")
    part = pl.col("kernel_ns") / pl.col("all_ns")
    scaled = (pl.col("flops", "n_bytes") * part).round().cast(pl.Int64)
    return joined.with_columns(scaled).drop("all_ns"), owned.select("event", "owner")


def operators_with_work(trace: Trace) -> pl.DataFrame:
    """List the operators that a formula is known for, the outermost of those inside another.

    Returns
    -------
    DataFrame
        `operator` (event), `name`, `shapes`, `dtypes`, `flops`, `n_bytes`, `dtype`, `is_matrix`.
    """
    known = _KNOWN.get(trace)
    if known is None:
        found = [_of_category(trace, category) for category in _CATEGORIES]
        operators = pl.concat(found).sort("operator")
        counted = pl.Series(operators["operator"], dtype=pl.UInt32)
        known = operators.filter(outermost(trace, counted, counted) == counted)
        _KNOWN[trace] = known
    return known


def outermost(trace: Trace, events: pl.Series, among: pl.Series) -> pl.Series:
    """Find for each event the outermost of some others that encloses it or is it."""
    rows = pl.DataFrame({"event": events}, schema={"event": pl.UInt32})
    known = rows.drop_nulls().unique(maintain_order=True)
    found = enclosing(trace, known["event"], among, "outermost")
    joined = rows.join(found, on="event", how="left", maintain_order="left")
    return joined["around"].alias("operator")


def _forward(trace: Trace) -> pl.Series:
    """List the operators that made an autograd node: these ran with gradients on."""
    needed = ["Sequence number", "Fwd thread id"]
    arguments = trace.args("cpu_op", needed)
    if arguments is None or not {*needed} <= set(arguments.columns):
        return pl.Series("event", [], pl.UInt32)
    is_forward = (pl.col("Sequence number") >= 0) & (pl.col("Fwd thread id") == 0)
    return arguments.filter(is_forward)["event"]


def _of_category(trace: Trace, category: str) -> pl.DataFrame:
    events, calls = distinct_inputs(trace.args(category, INPUT_ARGUMENTS))
    names = trace.events.select("event", "name")
    named = events.join(names, on="event", maintain_order="left")
    distinct = named.select("name", "call").unique(maintain_order=True)
    described = distinct.join(calls, on="call", maintain_order="left")
    texts = described.with_columns(pl.col("name").cast(pl.String))
    works = [_work(row) for row in texts.select("name", *_INPUTS).iter_rows()]
    answers = pl.DataFrame(works, schema=_WORK, orient="row")
    keyed = pl.concat([described, answers], how="horizontal")
    is_matrix = texts["name"].is_in(sorted(MATRIX_OPERATORS))
    known = keyed.filter(keyed["flops"].is_not_null() | is_matrix)
    joined = named.join(known, on=["name", "call"], maintain_order="left")
    columns = ("shapes", "dtypes", *_WORK)
    return joined.select(
        pl.col("event").alias("operator"), pl.col("name").cast(pl.String), *columns
    )


def _work(row: tuple[Any, ...]) -> tuple[Any, ...]:
    work = work_of(call_of(*row))
    if work is None:
        return (None,) * len(_WORK)
    return work.flops, work.n_bytes, work.dtype, work.is_matrix
