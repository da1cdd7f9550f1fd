"""Performance counters of kernels, joined with the operators that launched them.

torch's profiler writes one range per kernel, or one for a region, with the counters as arguments.
Its times, process and thread are artificial, and it usually lacks a correlation: then the n-th
range belongs to the n-th kernel if there are equally many. Otherwise the counted kernel is unknown,
and the rows say so. A counter whose value is not a count (a text, or a number beyond all that a
kernel can count) is null, and so are sums with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.engine.windows import Marked, launching_calls
from longpole.rows.frames import typed
from longpole.trace.stacks import Operators

if TYPE_CHECKING:
    import polars as pl

_SASS: Final = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: Final = {
    _SASS.format(f"{precision}{operation}"): 2 if operation == "fma" else 1
    for precision in ("f", "d", "h")
    for operation in ("fma", "add", "mul")
}
"""Floating-point operations per executed thread instruction, by counter."""

_FLOPS: Final = "kineto__cuda_core_flops"
TENSOR_CORE_INSTRUCTIONS: Final = "kineto__tensor_core_insts"
DRAM_BYTES: Final = ["dram__bytes_read.sum", "dram__bytes_write.sum"]
_LARGEST_COUNT: Final = 10**17
"""A limit that no kernel reaches: a day of the fastest GPU. Sums of counters cannot overflow."""
_IS_WRONG: Final = " has a wrong value"
_OF_RANGE: Final = ("event", "name", "start_ns", "correlation")
_NO_NAME: Final = "__missing__"


class Counted(Marked, Protocol):
    """The parts of a trace used for its counters."""

    @property
    def events(self) -> pl.DataFrame:
        """All events of the trace."""
        ...

    @property
    def launches(self) -> pl.DataFrame:
        """Each GPU activity and its launch."""
        ...

    @property
    def categories(self) -> list[str | None]:
        """The categories whose events have kept arguments."""
        ...

    def args(self, category: str | None) -> pl.DataFrame | None:
        """Arguments of the events of one category."""
        ...


def counters_by_operator(trace: Counted) -> pl.DataFrame:
    """Return each counted range with its operators; see `Trace.counters_by_operator`."""
    import polars as pl

    ranges = _ranges(trace)
    kernels = _kernels(trace, has_counters=ranges.height > 0)
    pairs = _pairs(ranges, kernels)
    matched = ranges.join(pairs, on="event", how="left", maintain_order="left")
    alone = kernels.filter(~pl.col("kernel").is_in(pairs["kernel"].implode()))
    rows = matched.join(kernels.select("kernel", "call"), on="kernel", how="left")
    alone = alone.select("kernel", "call")
    found = pl.concat([rows, alone], how="diagonal_relaxed").join(
        call_stacks(trace, kernels["call"]), on="call", how="left", maintain_order="left"
    )
    counters = ranges.drop(_IS_WRONG).columns[len(_OF_RANGE) :]
    is_right = ~pl.col(_IS_WRONG)
    return typed(
        found.select(
            "event",
            pl.col("name").alias("kernel_name"),
            "call",
            "matched_by",
            *counters,
            "op_stack",
            top_level_op=pl.col("op_stack").list.first(),
            bottom_level_op=pl.col("op_stack").list.last(),
            flops=pl.when(is_right).then(_flops(counters)),
            dram_bytes=pl.when(is_right).then(
                _sum_of([name for name in DRAM_BYTES if name in counters])
            ),
        )
    )


def matched_counters(trace: Counted) -> tuple[int, int, int]:
    """Return the number of kernels (else launches), of counted ranges, and of pairs of them."""
    ranges = _in_time_order(_events(trace))
    kernels = _kernels(trace, has_counters=ranges.height > 0)
    return kernels.height, ranges.height, _pairs(ranges, kernels).height


def n_wrong_counters(trace: Counted) -> int:
    """Return the number of counted ranges with a counter whose value is not a count.

    0 if the trace was read without its counters.
    """
    import polars as pl

    categories = _events(trace)["category"].cast(pl.String).unique().to_list()
    if all(trace.args(each) is None for each in categories):
        return 0
    return int(_ranges(trace)[_IS_WRONG].sum())


def _events(trace: Counted) -> pl.DataFrame:
    import polars as pl

    columns = ["kind", "category", *_OF_RANGE]
    return trace.events.select(columns).filter(pl.col("kind") == "counter_range")


def _in_time_order(ranges: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    texts = ranges.with_columns(pl.col("name").cast(pl.String))
    return texts.select(*_OF_RANGE).sort("start_ns", "name", "event")


def _ranges(trace: Counted) -> pl.DataFrame:
    """List the counted ranges in time order, with a column for each counter."""
    import polars as pl

    ranges = _events(trace)
    categories = ranges["category"].cast(pl.String).unique().to_list()
    tables = [table for each in sorted(categories) if (table := trace.args(each)) is not None]
    if ranges.height and not tables:
        message = "the trace was read without its counters; read it with args='default'"
        raise ValueError(message)
    shown = _in_time_order(ranges)
    for table in tables:
        shown = shown.join(table, on="event", how="left", maintain_order="left")
    return _counts(shown)


def _counts(ranges: pl.DataFrame) -> pl.DataFrame:
    """Replace values of known counters that are not counts by null, and mark their rows."""
    import polars as pl

    known = {*CUDA_SASS_INSTRUCTION_COUNTER_FLOPS, _FLOPS, TENSOR_CORE_INSTRUCTIONS, *DRAM_BYTES}
    names = [name for name in ranges.columns if name in known]
    read = ranges.with_columns(_number(ranges[name]) for name in names)
    is_count = {
        name: read[name].is_between(0, _LARGEST_COUNT).fill_null(value=False) for name in names
    }
    wrong = [ranges[name].is_not_null() & ~is_count[name] for name in names]
    return read.with_columns(
        pl.when(is_count[name]).then(pl.col(name)).alias(name) for name in names
    ).with_columns(pl.any_horizontal(*wrong, pl.lit(value=False)).alias(_IS_WRONG))


def _number(values: pl.Series) -> pl.Series:
    """Read numbers from a column that also has texts; texts become null."""
    import polars as pl

    if values.dtype.is_numeric():
        return values
    numbers = values.cast(pl.String).cast(pl.Float64, strict=False)
    are_whole = (numbers == numbers.floor()).all() and (numbers.abs() <= _LARGEST_COUNT).all()
    return numbers.cast(pl.Int64) if are_whole else numbers


def _kernels(trace: Counted, *, has_counters: bool) -> pl.DataFrame:
    """List what the counters were recorded for, in order: kernels, or calls without kernels.

    Columns: `kernel` (a number), `call`, and `kernel_name` and `correlation` if known. Empty if the
    trace has no counters.
    """
    import polars as pl

    if not has_counters:
        numbers: dict[str, Any] = {"kernel": pl.UInt32, "call": pl.UInt32}
        return pl.DataFrame(schema={**numbers, "correlation": pl.Int64, "kernel_name": pl.String})
    events = trace.events.select("event", "kind", "name", "start_ns", "correlation")
    recorded = events.filter(pl.col("kind") == "kernel").join(
        trace.launches.select("event", "call"), on="event"
    )
    if recorded.is_empty():
        is_call = pl.col("event").is_in(launching_calls(trace).implode())
        recorded = events.filter(is_call).with_columns(call="event", name=pl.lit(None, pl.String))
    return (
        recorded.sort("start_ns", "event")
        .with_row_index("kernel")
        .select("kernel", "call", "correlation", kernel_name=pl.col("name").cast(pl.String))
    )


def _pairs(ranges: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Find the kernel of each range: by correlation, else in order, checked by name."""
    import polars as pl

    numbers = _of_correlation(ranges, kernels)
    rest = ranges.filter(~pl.col("event").is_in(numbers["event"].implode()))
    left = kernels.filter(~pl.col("kernel").is_in(numbers["kernel"].implode()))
    if left["kernel_name"].null_count() == left.height:
        return pl.concat([numbers, _in_order(rest, left, "order")])
    named = [_of_name(rest, left, name) for name in rest["name"].unique().sort()]
    pairs = pl.concat([numbers, *named])
    rest = rest.filter(~pl.col("event").is_in(pairs["event"].implode()))
    left = left.filter(~pl.col("kernel").is_in(pairs["kernel"].implode()))
    if set(rest["name"]) <= {_NO_NAME}:
        pairs = pl.concat([pairs, _in_order(rest, left, "order")])
    return pairs


def _of_correlation(ranges: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    known = pl.col("correlation") > 0
    pairs = ranges.filter(known & pl.col("correlation").is_unique()).join(
        kernels.filter(known & pl.col("correlation").is_unique()), on="correlation"
    )
    return pairs.select("event", "kernel", matched_by=pl.lit("correlation"))


def _of_name(ranges: pl.DataFrame, kernels: pl.DataFrame, name: str) -> pl.DataFrame:
    import polars as pl

    return _in_order(
        ranges.filter(pl.col("name") == name),
        kernels.filter(pl.col("kernel_name") == name),
        "name_and_order",
    )


def _in_order(ranges: pl.DataFrame, kernels: pl.DataFrame, how: str) -> pl.DataFrame:
    """Pair the n-th range with the n-th kernel; no pairs if their numbers differ."""
    import polars as pl

    if ranges.height != kernels.height:
        ranges, kernels = ranges.clear(), kernels.clear()
    return pl.DataFrame([ranges["event"], kernels["kernel"]]).with_columns(
        matched_by=pl.lit(how, pl.String)
    )


def call_stacks(trace: Counted, calls: pl.Series) -> pl.DataFrame:
    """Return the names of the operators around each call, outermost first."""
    import polars as pl

    schema: dict[str, Any] = {"call": pl.UInt32, "op_stack": pl.List(pl.String)}
    if calls.is_empty():
        return pl.DataFrame(schema=schema)
    operators = Operators(trace.events)
    known = calls.drop_nulls().unique().sort()
    rows = [{"call": call, "op_stack": list(operators.around(call))} for call in known]
    return pl.DataFrame(rows, schema=schema)


def _flops(counters: list[str]) -> pl.Expr:
    """Sum the floating-point operations that counters show; null if no counter shows them."""
    import polars as pl

    if _FLOPS in counters:
        return pl.col(_FLOPS)
    weights = CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
    return _sum_of([name for name in counters if name in weights], weights)


def _sum_of(columns: list[str], weights: dict[str, int] | None = None) -> pl.Expr:
    import polars as pl

    if not columns:
        return pl.lit(None, pl.Int64)
    parts = [pl.col(name) * (weights or {}).get(name, 1) for name in columns]
    known = pl.any_horizontal(pl.col(name).is_not_null() for name in columns)
    return pl.when(known).then(pl.sum_horizontal(parts))
