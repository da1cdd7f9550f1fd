"""The work of the operators of a window (FLOPs and bytes), and the time of their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.files.damage import record_hint
from longpole.flops import MATRIX_OPERATORS, call_of, work_of
from longpole.flops.inputs import INPUT_ARGUMENTS, distinct_inputs
from longpole.rows.frames import argument
from longpole.rows.selection import matching
from longpole.trace.kept import kept
from longpole.trace.sweeps import activities, around

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_INPUTS: Final = ("inputs", "shapes", "strides", "dtypes", "values")
_CATEGORIES: Final = ("cpu_op", "Operator")
_NO_SHAPES: Final = "The trace has no shapes of inputs, which the formulas need"
# A shape that needs more FLOPs (17 minutes at 1 PFLOP/s) is treated as damaged.
_MOST: Final = 10**18
_LARGEST: Final = (1 << 63) - 1
_WORK: Final = {
    "flops": pl.Int64,
    "n_bytes": pl.Int64,
    "dtype": pl.String,
    "is_matrix": pl.Boolean,
}


def work_in_window(
    trace: Trace, window: Window, where: pl.Expr | str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the work of the operators that launched kernels in the window.

    Of nested operators the outermost with a formula counts: `aten::linear` rather than the
    `aten::addmm` inside. Under autocast it is the one with the types of the kernels. If the
    kernels of an operator are partly in the window, the same part of its `flops` and `n_bytes`
    counts.

    Returns
    -------
    tuple of DataFrame
        A row for each operator and device: `owner` (row), `operator` (event), `device`, `kernel`
        (the longest) and its `event`, `n_kernels` and `kernel_ns` in the window, the columns of
        `operators_with_work`, `alike` (operators of one name with equal shapes and types have the
        same number) and `is_recomputed` (a forward operator that a backward pass ran again).
        Kernels without such an operator have one row per kernel name, with `operator` null. The
        second frame has the `owner` of each kernel (`event`).
    """
    if where is None:
        return _all_work(trace, window)
    return _work_of(trace, window, matching(activities(trace), where))


@kept
def _all_work(trace: Trace, window: Window) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the work of all kernels of a window; cached, since several questions use it."""
    return _work_of(trace, window, activities(trace))


def _work_of(
    trace: Trace, window: Window, chosen: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    operators, works = _operators(trace)
    kernels = _kernels(trace, window, chosen, operators["operator"])
    longest = pl.col("duration_ns").arg_max()
    ran = (
        kernels.group_by("operator", "device", "other", maintain_order=True)
        .agg(
            # Activities are in the order of their numbers: of equally long ones, the first is used.
            pl.col("kernel", "event").get(longest),
            events=pl.col("event"),
            n_kernels=(pl.col("inside_ns") > 0).sum().cast(pl.Int64),
            kernel_ns=pl.col("inside_ns").sum(),
            all_ns=pl.col("duration_ns").sum(),
        )
        .filter(pl.col("kernel_ns") > 0)
        .with_row_index("owner")
    )
    owned = ran.select("owner", event="events").explode("event").select("event", "owner")
    joined = (
        ran.drop("other", "events")
        .join(operators, on="operator", how="left", maintain_order="left")
        .join(works, on="work", how="left", maintain_order="left")
    )
    part = pl.col("kernel_ns") / pl.col("all_ns")
    scaled = (pl.col("flops", "n_bytes") * part).round().cast(pl.Int64)
    kernel = pl.col("kernel").cast(pl.String)
    return joined.with_columns(scaled, kernel).drop("all_ns", "work"), owned


def _kernels(
    trace: Trace, window: Window, chosen: pl.DataFrame, operators: pl.Series
) -> pl.DataFrame:
    """List the compute kernels, each with its operator among those with a formula."""
    kernels = chosen.filter(
        pl.col("kind") == "kernel", pl.col("work_class") == "compute", pl.col("duration_ns") >= 0
    )
    start_ns, end_ns = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")
    inside_ns = end_ns.clip(upper_bound=window.end_ns) - start_ns.clip(window.start_ns)
    owner = outermost(trace, kernels["operator"], operators)
    return kernels.select(
        "event",
        "device",
        "duration_ns",
        owner,
        inside_ns=inside_ns.clip(0),
        kernel="name",
        other=pl.when(owner.is_null()).then("name"),
    )


def operators_with_work(trace: Trace) -> pl.DataFrame:
    """List the operators with a known formula; of nested ones the outermost.

    Returns
    -------
    DataFrame
        `operator` (event), `name`, `shapes`, `dtypes`, `flops`, `n_bytes`, `dtype`, `is_matrix`,
        `is_recomputed` (a forward operator that a backward pass ran again).
    """
    operators, works = _operators(trace)
    joined = operators.join(works, on="work", maintain_order="left")
    return joined.select("operator", "name", "shapes", "dtypes", *_WORK, "is_recomputed")


def shapes_hint(trace: Trace, missing: str = _NO_SHAPES) -> str | None:
    """Return what to record if no operator has shapes, which all formulas need."""
    if has_shapes(trace):
        return None
    return record_hint(trace, missing, "shapes")


def has_shapes(trace: Trace) -> bool:
    """Whether any operator has recorded inputs."""
    tables = (trace.args(category, INPUT_ARGUMENTS) for category in _CATEGORIES)
    return any(table is not None and table.width > 1 for table in tables)


def outermost(trace: Trace, events: pl.Series, among: pl.Series) -> pl.Series:
    """Return the outermost of some events that encloses or equals each event."""
    return around(trace, events, among, "outermost").alias("operator")


@kept
def _operators(trace: Trace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List operators with the number of their work, and a table of all distinct works."""
    parts, distinct = [], []
    n_works = 0
    for category in _CATEGORIES:
        events, works = _of_category(trace, category, n_works)
        n_works += works.height
        parts.append(events)
        distinct.append(works)
    described = pl.concat(distinct)
    operators = _without_casting(trace, pl.concat(parts).sort("operator"), described)
    counted = operators["operator"]
    operators = operators.filter(outermost(trace, counted, counted) == counted)
    nodes = trace.backward_links["backward"]
    kept_rows = operators["operator"]
    is_inside = outermost(trace, kept_rows, nodes).is_not_null()
    is_again = is_inside & kept_rows.is_in(_forward(trace).implode())
    return operators.with_columns(is_recomputed=is_again), _numbered(described)


def _without_casting(trace: Trace, operators: pl.DataFrame, works: pl.DataFrame) -> pl.DataFrame:
    """Leave out operators that only cast their inputs and call themselves, as autocast does.

    The types of such an operator are not those of its kernels, and the kernels that cast are not
    its own work: a recomputation may stop after them.
    """
    known = operators.join(works.select("work", "name", "dtypes"), on="work")
    # The number of an event is its row in `events`.
    parents = trace.events["parent"].gather(known["operator"])
    inner = known.select("name", "dtypes", operator=parents).drop_nulls("operator")
    pairs = known.join(inner, on=["operator", "name"], suffix="_inner")
    casting = pairs.filter(pl.col("dtypes") != pl.col("dtypes_inner"))["operator"]
    return operators.filter(~pl.col("operator").is_in(casting.unique().implode()))


def _numbered(works: pl.DataFrame) -> pl.DataFrame:
    """Assign one number to operators with the same name, shapes and types."""
    groups = works.group_by("name", "shapes", "dtypes", maintain_order=True).agg("work")
    numbers = groups.select("work").with_row_index("alike").explode("work")
    return works.join(numbers, on="work", how="left", maintain_order="left")


def _forward(trace: Trace) -> pl.Series:
    """List the operators that created an autograd node, and so ran with gradients enabled."""
    needed = ["Sequence number", "Fwd thread id"]
    arguments = trace.args("cpu_op", needed)
    if arguments is None or not {*needed} <= set(arguments.columns):
        return pl.Series("event", [], pl.UInt32)
    sequence, thread = (argument(arguments, name, pl.Int64) for name in needed)
    return arguments.filter((sequence >= 0) & (thread == 0))["event"]


def _of_category(trace: Trace, category: str, first: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    events, calls = distinct_inputs(trace.args(category, INPUT_ARGUMENTS))
    # The number of an event is its row in `events`.
    named = events.with_columns(trace.events["name"].gather(events["event"]))
    distinct = named.select("name", "call").unique(maintain_order=True)
    described = distinct.join(calls, on="call", maintain_order="left")
    texts = described.with_columns(pl.col("name").cast(pl.String))
    works = [_work(row) for row in texts.select("name", *_INPUTS).iter_rows()]
    answers = pl.DataFrame(works, schema=_WORK, orient="row")
    keyed = pl.concat([described, answers], how="horizontal")
    is_matrix = texts["name"].is_in(sorted(MATRIX_OPERATORS))
    known = keyed.filter(keyed["flops"].is_not_null() | is_matrix).with_row_index("work", first)
    places = known.select("name", "call", "work")
    joined = named.join(places, on=["name", "call"], maintain_order="left")
    columns = ("shapes", "dtypes", *_WORK)
    return (
        joined.select("work", operator="event").select("operator", "work"),
        known.select("work", pl.col("name").cast(pl.String), *columns),
    )


def _work(row: tuple[Any, ...]) -> tuple[Any, ...]:
    name, *_ = row
    work = None if name is None else work_of(call_of(*row))
    if work is None or not all(0 <= size <= _MOST for size in (work.flops, work.n_bytes or 0)):
        return (None,) * len(_WORK)
    return work.flops, work.n_bytes, work.dtype, work.is_matrix


def whole_sum(column: pl.Expr) -> pl.Expr:
    """Return the sum of integers, or the largest integer if the sum exceeds it."""
    return column.cast(pl.Int128).sum().clip(upper_bound=_LARGEST).cast(pl.Int64)
