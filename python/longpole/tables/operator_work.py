"""The work of the operators of a window (FLOPs and bytes), and the time of their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.files.damage import record_hint
from longpole.flops import MATRIX_OPERATORS, bounds_of, call_of, work_of
from longpole.flops.inputs import INPUT_ARGUMENTS, distinct_inputs
from longpole.flops.served.lengths import LENGTHS, lengths_in
from longpole.rows.frames import argument
from longpole.rows.selection import matching
from longpole.tables.activities import own_events
from longpole.tables.hlo_work import hlo_work
from longpole.trace.captures import has_captured_graphs
from longpole.trace.kept import kept
from longpole.trace.sweeps import activities, around

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.flops import Bounds
    from longpole.tables.hlo_work import HloWork
    from longpole.trace.trace import Trace

_INPUTS: Final = ("inputs", "shapes", "strides", "dtypes", "values")
_CATEGORIES: Final = ("cpu_op", "Operator")
_NO_SHAPES: Final = "The trace has no shapes of inputs, which the formulas need"
# A shape that needs more FLOPs (17 minutes at 1 PFLOP/s) is treated as damaged.
_MOST: Final = 10**18
_LARGEST: Final = (1 << 63) - 1
_EXACT: Final = {
    "flops": pl.Int64,
    "n_bytes": pl.Int64,
    "dtype": pl.String,
    "is_matrix": pl.Boolean,
}
_BOUNDS: Final = dict.fromkeys(("least_flops", "most_flops", "least_bytes", "most_bytes"), pl.Int64)
_RAGGED: Final = {
    **dict.fromkeys(("queries", "pair_flops", "key_bytes", "other_bytes"), pl.Int64),
    "may_have_window": pl.Boolean,
}
_WORK: Final = {**_EXACT, **_BOUNDS, **_RAGGED}
_COUNTED: Final = ("flops", "n_bytes", *_BOUNDS)
_HLO: Final = (1 << 32) - 1
"""Source of the instructions of XLA, which are not events."""
_CALLED: Final = {"event": pl.UInt32, "source": pl.UInt32, "launch": pl.UInt32, "called": pl.UInt32}


def work_in_window(
    trace: Trace, window: Window, where: pl.Expr | str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the work of the operators whose kernels belong to the window.

    Of nested operators the outermost with a formula counts: `aten::linear` rather than the
    `aten::addmm` inside. Under autocast it is the one with the types of the kernels. If the
    kernels of an operator are partly in a time range, the same part of its work counts. The
    operators of a graph's kernels are those of its capture, once for each launch of the graph.

    Returns
    -------
    tuple of DataFrame
        A row for each operator and device: `owner` (row), `operator` (event of `source`, which is 0
        for this trace and else the number of the trace of a capture), `device`, `kernel` (the
        longest) and its `event`, `n_kernels` and `kernel_ns` in the window, the columns of
        `operators_with_work`, `least_flops`, `most_flops`, `least_bytes` and `most_bytes` (bounds,
        if the inputs do not determine the work), `alike` (operators of one name with equal shapes
        and types have the same number) and `is_recomputed` (a forward operator that a backward pass
        ran again). Kernels without such an operator have one row per kernel name, with `operator`
        null. The second frame has the `owner` of each kernel (`event`).
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
    called = _captured(trace, chosen)
    operators, works = _all_operators(trace, called["source"])
    kernels = _kernels(trace, window, chosen, operators, called)
    hlo = hlo_work(trace)
    if hlo is not None:
        kernels, operators, works = _with_hlo(hlo, kernels, operators, works)
    longest = pl.col("duration_ns").arg_max()
    ran = (
        kernels.group_by("operator", "source", "launch", "device", "other", maintain_order=True)
        .agg(
            # Activities are in the order of their numbers: of equally long ones, the first is used.
            pl.col("kernel", "event").get(longest),
            events=pl.col("event"),
            n_kernels=(pl.col("inside_ns") > 0).sum().cast(pl.Int64),
            kernel_ns=pl.col("inside_ns").sum(),
            all_ns=pl.col("duration_ns").sum(),
            call=pl.col("call").first(),
        )
        .filter(pl.col("kernel_ns") > 0)
        .with_row_index("owner")
    )
    owned = ran.select("owner", event="events").explode("event").select("event", "owner")
    joined = (
        ran.drop("other", "events", "launch")
        .join(operators, on=["operator", "source"], how="left", maintain_order="left")
        .join(works, on="work", how="left", maintain_order="left")
    )
    joined = _with_lengths(trace, joined).drop("call", *_RAGGED)
    part = pl.col("kernel_ns") / pl.col("all_ns")
    scaled = (pl.col(_COUNTED) * part).round().cast(pl.Int64)
    kernel = pl.col("kernel").cast(pl.String)
    return joined.with_columns(scaled, kernel).drop("all_ns", "work"), owned


def _with_hlo(
    hlo: HloWork, kernels: pl.DataFrame, operators: pl.DataFrame, works: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Add to kernels of XLA their instructions, as operators."""
    of_hlo = hlo.kernels.with_columns(source=pl.lit(_HLO, pl.UInt32))
    joined = kernels.join(of_hlo, on="event", how="left", suffix="_hlo", maintain_order="left")
    is_known = pl.col("operator_hlo").is_not_null()
    columns = ("operator", "source", "launch")
    owned = joined.with_columns(
        *(pl.when(is_known).then(f"{name}_hlo").otherwise(name).alias(name) for name in columns),
        other=pl.when(~is_known).then("other"),
    ).select(kernels.columns)
    first = pl.lit(works.height, pl.UInt32)
    described = hlo.instructions.with_columns(work=pl.col("operator") + first)
    added = described.select(
        "operator", "work", is_recomputed=pl.lit(value=False), source=pl.lit(_HLO, pl.UInt32)
    )
    both = [works.drop("alike"), described.drop("operator")]
    return (
        owned,
        pl.concat([operators, added.select(operators.columns)]),
        _numbered(pl.concat(both, how="diagonal_relaxed").select(both[0].columns)),
    )


def _captured(trace: Trace, chosen: pl.DataFrame) -> pl.DataFrame:
    """List the kernels of graphs whose capture is known: its trace, and the call that captured it.

    `called` is the event of that call in the trace `source`, and `launch` that of the graph.
    """
    if not has_captured_graphs(trace):
        return pl.DataFrame(schema=_CALLED)
    nodes = trace.graph_nodes.filter(pl.col("captured_call").is_not_null())
    known = nodes.join(chosen.select("event"), on="event", how="semi")
    return known.select("event", "launch", source="capture", called="captured_call").select(
        pl.col(name).cast(dtype) for name, dtype in _CALLED.items()
    )


def _all_operators(trace: Trace, sources: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the operators with work of a trace (source 0), and of the traces of captures."""
    operators, works = _operators(trace)
    parts = [operators.with_columns(source=pl.lit(0, pl.UInt32))]
    distinct = [works]
    for source in sources.unique().sort():
        if source == 0:
            continue
        found, described = _operators(trace.capture_traces[source - 1])
        first = pl.lit(sum(part.height for part in distinct), pl.UInt32)
        shifted = pl.col("work") + first
        parts.append(found.with_columns(shifted, source=pl.lit(source, pl.UInt32)))
        distinct.append(described.with_columns(shifted))
    if len(distinct) == 1:
        return parts[0], works
    return pl.concat(parts), _numbered(pl.concat(distinct).drop("alike"))


def _kernels(
    trace: Trace,
    window: Window,
    chosen: pl.DataFrame,
    operators: pl.DataFrame,
    called: pl.DataFrame,
) -> pl.DataFrame:
    """List the compute kernels, each with its operator among those with a formula."""
    kernels = chosen.filter(
        pl.col("kind") == "kernel", pl.col("work_class") == "compute", pl.col("duration_ns") >= 0
    )
    counted = own_events(trace, window)
    kernels = kernels.join(counted, on="event", how="left", maintain_order="left")
    own = operators.filter(pl.col("source") == 0)["operator"]
    owned = kernels.with_columns(
        outermost(trace, kernels["operator"], own), source=pl.lit(0, pl.UInt32)
    )
    owned = owned.with_columns(launch=pl.lit(None, pl.UInt32))
    if not called.is_empty():
        owned = _with_captured(trace, owned, operators, called)
    return owned.select(
        "event",
        "device",
        "duration_ns",
        "operator",
        "source",
        "launch",
        "call",
        inside_ns=pl.col("inside_ns").fill_null(0),
        kernel="name",
        other=pl.when(pl.col("operator").is_null()).then("name"),
    )


def _with_captured(
    trace: Trace, kernels: pl.DataFrame, operators: pl.DataFrame, called: pl.DataFrame
) -> pl.DataFrame:
    """Replace the operators of graph kernels by those around the calls that captured them."""
    parts = []
    for (source,), calls in called.group_by("source", maintain_order=True):
        of_source = operators.filter(pl.col("source") == source)["operator"]
        where = trace if source == 0 else trace.capture_traces[int(str(source)) - 1]
        found = outermost(where, calls["called"], of_source)
        parts.append(calls.select("event", "source", "launch", found))
    captured = pl.concat(parts).filter(pl.col("operator").is_not_null())
    columns = ("operator", "source", "launch")
    joined = kernels.join(
        captured, on="event", how="left", suffix="_captured", maintain_order="left"
    )
    is_captured = pl.col("operator_captured").is_not_null()
    return joined.with_columns(
        pl.when(is_captured).then(f"{name}_captured").otherwise(name).alias(name)
        for name in columns
    )


def _with_lengths(trace: Trace, works: pl.DataFrame) -> pl.DataFrame:
    """Fill in attention over sequences whose lengths an annotation of the server contains."""
    if not works["pair_flops"].count():
        return works
    is_annotation = pl.col("kind").cast(pl.String) == "annotation"
    named = trace.events.filter(is_annotation).select("event", pl.col("name").cast(pl.String))
    marks = named.filter(pl.col("name").str.contains(LENGTHS))
    if marks.is_empty():
        return works
    inside = around(trace, works["call"], marks["event"], "innermost").alias("mark")
    names = works.select(inside, "queries").join(
        marks.rename({"event": "mark"}), on="mark", how="left", maintain_order="left"
    )
    asked = names.select("name", "queries").unique(maintain_order=True).drop_nulls()
    answers = [(*row, lengths_in(*row)) for row in asked.iter_rows()]
    known = pl.DataFrame(
        [(name, queries, it.pairs, it.keys) for name, queries, it in answers if it is not None],
        schema={"name": pl.String, "queries": pl.Int64, "pairs": pl.Int64, "keys": pl.Int64},
        orient="row",
    )
    lengths = names.join(known, on=["name", "queries"], how="left", maintain_order="left")
    return _at_lengths(works.with_columns(lengths.select("pairs", "keys")))


def _at_lengths(works: pl.DataFrame) -> pl.DataFrame:
    """Compute the work of known lengths; a window that may leave out pairs makes it a bound."""
    flops = pl.col("pairs") * pl.col("pair_flops")
    n_bytes = pl.col("other_bytes") + pl.col("keys") * pl.col("key_bytes")
    windowed, is_known = pl.col("may_have_window"), flops.is_not_null()
    exact, bounded = is_known & ~windowed, is_known & windowed
    none = pl.lit(None, pl.Int64)
    return works.with_columns(
        pl.when(exact).then(flops).otherwise("flops").alias("flops"),
        pl.when(exact).then(n_bytes).otherwise("n_bytes").alias("n_bytes"),
        *(
            pl.when(exact).then(none).otherwise(name).alias(name)
            for name in ("least_flops", "least_bytes")
        ),
        pl.when(exact)
        .then(none)
        .when(bounded)
        .then(flops)
        .otherwise("most_flops")
        .alias("most_flops"),
        pl.when(exact)
        .then(none)
        .when(bounded)
        .then(n_bytes)
        .otherwise("most_bytes")
        .alias("most_bytes"),
    ).drop("pairs", "keys")


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
    return joined.select("operator", "name", "shapes", "dtypes", *_EXACT, "is_recomputed")


def shapes_hint(trace: Trace, missing: str = _NO_SHAPES) -> str | None:
    """Return what to record if no operator has shapes, which all formulas need."""
    if has_shapes(trace) or hlo_work(trace) is not None:
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
    is_known = keyed["flops"].is_not_null() | keyed["least_flops"].is_not_null()
    known = keyed.filter(is_known | is_matrix).with_row_index("work", first)
    places = known.select("name", "call", "work")
    joined = named.join(places, on=["name", "call"], maintain_order="left")
    columns = ("shapes", "dtypes", *_WORK)
    return (
        joined.select("work", operator="event").select("operator", "work"),
        known.select("work", pl.col("name").cast(pl.String), *columns),
    )


def _work(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the columns of `_WORK` for a row of names and inputs; bounds only where not exact."""
    name, *_ = row
    call = None if name is None else call_of(*row)
    work = None if call is None else work_of(call)
    is_sure = work is not None and work.n_bytes is not None
    bounds = None if call is None or is_sure else bounds_of(call)
    exact: tuple[Any, ...] = (None,) * len(_EXACT)
    if work is not None and _are_possible(work.flops, work.n_bytes):
        exact = (work.flops, work.n_bytes, work.dtype, work.is_matrix)
    if bounds is None or not _are_possible(*bounds.flops, *(bounds.n_bytes or ())):
        return exact + (None,) * (len(_WORK) - len(_EXACT))
    if work is None:
        exact = (None, None, bounds.dtype, bounds.is_matrix)
    of_flops = (None, None) if work is not None else bounds.flops
    return (*exact, *of_flops, *(bounds.n_bytes or (None, None)), *_of_lengths(bounds))


def _of_lengths(bounds: Bounds) -> tuple[Any, ...]:
    """Return the columns of `_RAGGED`."""
    it = bounds.ragged
    if it is None:
        return (None,) * len(_RAGGED)
    return it.queries, it.pair_flops, it.key_bytes, it.other_bytes, it.may_have_window


def _are_possible(*sizes: int | None) -> bool:
    return all(0 <= size <= _MOST for size in sizes if size is not None)


def whole_sum(column: pl.Expr) -> pl.Expr:
    """Return the sum of integers, or the largest integer if the sum exceeds it."""
    return column.cast(pl.Int128).sum().clip(upper_bound=_LARGEST).cast(pl.Int64)
