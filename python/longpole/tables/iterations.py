"""Table `steps` by iteration: the iterations of an inference server, with their times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.rows.frames import frame_of, frame_schema
from longpole.rows.selection import matching
from longpole.tables.catalogue import view
from longpole.trace.kept import kept
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.tables.served import Mark
    from longpole.trace.trace import Trace

_NO_END: Final = 2**62
_HOST_PARTS: Final = ("sampling", "detokenizing")


class IterationRow(Row):
    """One iteration: a batch of requests that runs through the model once."""

    iteration: int
    """Number in time order."""
    event: int
    """Event that marks the iteration."""
    name: str
    server: str | None
    kind: str | None
    """`decode`, `prefill` or `mixed`; null if unknown."""
    requests: int | None
    prefill_tokens: int | None
    decode_tokens: int | None
    """Number of decoded tokens; null, like `requests` and `prefill_tokens`, if the name of the
    iteration does not contain it."""
    start_ns: int
    host_ns: int
    """Length of its annotation or function; null if graph launches mark iterations."""
    length_ns: int | None
    """Time from the completion of the previous iteration to its own; null for the first."""
    end_ns: int | None
    """When it was complete: the end of its host part or, if later, of its last GPU activity."""
    before_launch_ns: int | None
    """Host time from its start to its first launch (of a graph, if it launches one); null if graph
    launches mark iterations."""
    blocked_ns: int | None
    """Host time in calls that wait for the device; null if no call is recorded."""
    blocking_call: str | None
    """The longest call that waits for the device."""
    n_launches: int
    """Number of launches of kernels and graphs."""
    n_graph_launches: int
    launch_delay_ns: int | None
    """Time from the first launch of a graph to its first node on the device."""
    replay_ns: int | None
    """Time from the first to the last node of each graph that it launched."""
    replay_busy_ns: int | None
    """Part of `replay_ns` in which a node ran."""
    gap_ns: int | None
    """Time from the end of each replay to the start of the next, up to the last replay of this
    iteration."""
    device_ns: int | None
    """Time in which an activity launched by it ran on the device; null, like the waits, if the
    trace has no GPU activity."""
    launch_wait_ns: int | None
    """Idle time of the device before activities that had not been launched, while the host was
    inside an iteration; null, like its length, for the first."""
    scheduler_wait_ns: int | None
    """The same idle time while the host was between two iterations; null if graph launches mark
    iterations (`launch_wait_ns` then contains all of it)."""
    sampling_ns: int | None
    """Host time in functions and annotations that sample tokens; null if none are recorded."""
    detokenizing_ns: int | None


@view(
    IterationRow,
    empty="Nothing marks iterations of an inference server; `steps` lists steps.",
    ignores_window=True,
)
def iterations(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the iterations of an inference server: decode steps, prefill steps, mixed batches.

    Iterations are recognised by the annotations of vLLM, SGLang and TensorRT-LLM, else by Python
    functions of the server, else by repeated graph launches. An activity belongs to the iteration
    in which it was launched, up to the start of the next.

    Parameters
    ----------
    window
        From `choose_window`: only iterations that start in it.
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        A row for each iteration, in order of time.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("step[DECODE bs=8]", (0, 50))
    >>> builder = builder.launch("model", call=(20, 30), work=(32, 90), by="cudaGraphLaunch")
    >>> shown = ("kind", "requests", "before_launch_ns", "replay_ns")
    >>> iterations(builder.read()).select(shown).row(0)
    ('decode', 8, 20000, 58000)
    """
    found = marks_of(trace)
    schema = frame_schema(IterationRow)
    if found is None:
        return pl.DataFrame(schema=schema)
    mark, rows = found
    calls, works = _launched(trace)
    columns = [
        _launching(calls),
        _blocked(trace, rows),
        _replays(works),
        _device(works),
        _waits(works),
        _host_parts(trace, rows),
    ]
    for column in columns:
        rows = rows.join(column, on="iteration", how="left", maintain_order="left")
    rows = (
        _lengths(rows)
        .with_columns(_derived(mark))
        .with_columns(pl.lit(None, pl.Int64).alias(name) for name in _unrecorded(trace))
        .select(pl.col(name).cast(dtype) for name, dtype in schema.items())
    )
    rows = matching(rows, where)
    return rows if window is None else window.starting(rows)


@kept
def marks_of(trace: Trace) -> tuple[Mark, pl.DataFrame] | None:
    """Return the mark of the iterations, and each iteration with its times; None without marks."""
    found = trace.core.server_iterations()
    if found is None:
        return None
    mark: Any = found[0]
    return mark, _placed(trace, frame_of(found[1]))


def launched_in(trace: Trace) -> pl.DataFrame:
    """List the GPU activities with the iteration that launched each; null without one."""
    return _launched(trace)[1]


@kept
def _launched(trace: Trace) -> tuple[pl.DataFrame, pl.DataFrame]:
    _, rows = marks_of(trace) or ("annotation", pl.DataFrame())
    calls = _calls(trace, rows)
    return calls, _works(trace, calls, rows)


def _placed(trace: Trace, marks: pl.DataFrame) -> pl.DataFrame:
    """Add the number, the times and the process of each iteration."""
    of_event = trace.events.select("event", "name", "process", "start_ns", "duration_ns")
    return (
        marks.join(of_event, on="event", maintain_order="left")
        .with_row_index("iteration")
        .with_columns(
            host_end_ns=pl.col("start_ns") + pl.col("duration_ns"),
            next_ns=pl.col("start_ns").shift(-1).fill_null(_NO_END),
        )
    )


def _within(events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Assign host events to the iteration in which they start, up to the next."""
    begins = rows.select("process", "start_ns", "iteration").sort("start_ns")
    return (
        events.sort("start_ns")
        .join_asof(begins, on="start_ns", by="process", check_sortedness=False)
        .drop_nulls("iteration")
    )


def _calls(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """List the calls that launch GPU activities, with their iteration and role."""
    role = pl.col("role").cast(pl.String)
    launching = trace.api_roles.filter(role.is_in(["launch", "graph_launch"]))
    working = trace.launches.select(event="call").drop_nulls().unique()
    chosen = pl.concat([launching.select("event"), working]).unique()
    of_event = trace.events.select("event", "process", "start_ns", "duration_ns")
    found = chosen.join(of_event, on="event").join(trace.api_roles, on="event", how="left")
    return _within(found.with_columns(role=role), rows)


def _works(trace: Trace, calls: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """List all GPU activities by device and time, with the idle time before each.

    `iteration` and the times of the launching call are null if it is not known.
    """
    of_call = calls.select(
        "iteration",
        "role",
        call="event",
        call_ns="start_ns",
        call_end_ns=pl.col("start_ns") + pl.col("duration_ns").fill_null(0),
    )
    host = rows.select(
        "iteration",
        "host_end_ns",
        begin_ns="start_ns",
        before_begin_ns=pl.col("start_ns").shift(1),
        before_end_ns=pl.col("host_end_ns").shift(1),
    )
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    return (
        trace.launches.select("event", "call")
        .join(trace.events.select("event", "device", "start_ns", "duration_ns"), on="event")
        .filter(pl.col("duration_ns") >= 0)
        .join(of_call, on="call", how="left")
        .join(host, on="iteration", how="left")
        .sort("device", "start_ns", "event")
        .with_columns(end_ns=end_ns)
        .with_columns(idle_from_ns=pl.col("end_ns").cum_max().shift(1).over("device"))
    )


def _launching(calls: pl.DataFrame) -> pl.DataFrame:
    """Count the launches of each iteration and find the first."""
    is_graph = pl.col("role") == "graph_launch"
    is_launch = pl.col("role").is_in(["launch", "graph_launch"])
    return calls.group_by("iteration").agg(
        n_launches=is_launch.sum(),
        n_graph_launches=is_graph.sum(),
        first_ns=pl.coalesce(
            pl.col("start_ns").filter(is_graph).min(), pl.col("start_ns").filter(is_launch).min()
        ),
    )


def _blocked(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    of_event = trace.events.select("event", "name", "process", "start_ns", "duration_ns")
    found = _within(trace.blocking_calls.select("event").join(of_event, on="event"), rows)
    longest = pl.col("duration_ns").arg_max()
    return found.group_by("iteration").agg(
        blocked_ns=pl.col("duration_ns").sum(), blocking_call=pl.col("name").get(longest)
    )


def _covered(*over: str) -> pl.Expr:
    """Return how much each activity adds to the time covered by earlier ones in its group."""
    before_ns = pl.col("end_ns").cum_max().shift(1).over(*over)
    from_ns = pl.max_horizontal("start_ns", before_ns)
    return (pl.col("end_ns") - from_ns).clip(lower_bound=0)


def _replays(works: pl.DataFrame) -> pl.DataFrame:
    """Measure graph replays, each from its first to its last node, and the gaps between them."""
    replays = (
        works.filter(pl.col("role") == "graph_launch")
        .with_columns(busy_ns=_covered("call"))
        .group_by("iteration", "call", "call_ns")
        .agg(pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("busy_ns").sum())
        .sort("start_ns", "call")
        .with_columns(gap_ns=pl.col("start_ns") - pl.col("end_ns").cum_max().shift(1))
    )
    first = pl.col("call_ns").arg_min()
    return replays.group_by("iteration").agg(
        replay_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
        replay_busy_ns=pl.col("busy_ns").sum(),
        gap_ns=pl.when(pl.col("gap_ns").count() > 0)
        .then(pl.col("gap_ns").clip(lower_bound=0).sum())
        .otherwise(None),
        launch_delay_ns=pl.col("start_ns").get(first) - pl.col("call_ns").min(),
    )


def _device(works: pl.DataFrame) -> pl.DataFrame:
    """Measure the time of the busiest device, and the end of the last activity."""
    return (
        works.drop_nulls("iteration")
        .with_columns(busy_ns=_covered("iteration", "device"))
        .group_by("iteration", "device")
        .agg(pl.col("busy_ns").sum(), pl.col("end_ns").max())
        .group_by("iteration")
        .agg(device_ns=pl.col("busy_ns").max(), device_end_ns=pl.col("end_ns").max())
    )


def _waits(works: pl.DataFrame) -> pl.DataFrame:
    """Split idle time before activities not yet launched: inside or between iterations."""
    until_ns = pl.min_horizontal("start_ns", "call_end_ns")
    waited_ns = (until_ns - pl.col("idle_from_ns")).clip(lower_bound=0)

    def during(begin: str, end: str) -> pl.Expr:
        begin_ns = pl.max_horizontal("idle_from_ns", begin)
        return (pl.min_horizontal(until_ns, end) - begin_ns).clip(lower_bound=0).fill_null(0)

    inside_ns = during("begin_ns", "host_end_ns") + during("before_begin_ns", "before_end_ns")
    return (
        works.drop_nulls(["iteration", "idle_from_ns"])
        .with_columns(waited_ns=waited_ns)
        .with_columns(inside_ns=pl.min_horizontal("waited_ns", inside_ns))
        .group_by("iteration", "device")
        .agg(pl.col("waited_ns", "inside_ns").sum())
        .sort("iteration", "waited_ns", "device", descending=[False, True, False])
        .unique("iteration", keep="first", maintain_order=True)
        .select("iteration", "waited_ns", "inside_ns")
    )


def _host_parts(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Sum the known parts of the host's work; only the outermost of nested parts counts."""
    columns = ("event", "process", "thread", "start_ns", "duration_ns")
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    found = (
        frame_of(trace.core.host_parts())
        .with_columns(pl.col("part").cast(pl.String))
        .join(trace.events.select(columns), on="event")
        .filter(pl.col("duration_ns") >= 0)
        .sort("start_ns", "duration_ns", descending=[False, True])
        .with_columns(end_ns=end_ns)
        .with_columns(added_ns=_covered("process", "thread", "part"))
    )
    known = set(found["part"].unique())
    sums = [
        pl.col("added_ns").filter(pl.col("part") == part).sum().alias(f"{part}_ns")
        for part in _HOST_PARTS
    ]
    summed = _within(found, rows).group_by("iteration").agg(sums)
    all_rows = rows.select("iteration").join(summed, on="iteration", how="left")
    return all_rows.with_columns(
        pl.col(f"{part}_ns").fill_null(0)
        if part in known
        else pl.lit(None, pl.Int64).alias(f"{part}_ns")
        for part in _HOST_PARTS
    )


def _lengths(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure each iteration from the completion of the previous one to its own."""
    completed_ns = pl.max_horizontal("host_end_ns", "device_end_ns").cum_max()
    return rows.with_columns(length_ns=completed_ns - completed_ns.shift(1), end_ns=completed_ns)


def _unrecorded(trace: Trace) -> list[str]:
    """Return the columns that need calls or GPU activities, if the trace has none."""
    of_device = ("device_ns", "launch_wait_ns", "scheduler_wait_ns")
    counts = trace.warning_counts
    return [
        *(() if counts["device_work"] else of_device),
        *(() if counts["processes_with_calls"] else ("blocked_ns",)),
    ]


def _derived(mark: str) -> list[pl.Expr]:
    by_graph = mark == "graph_launch"
    unknown = pl.lit(None, pl.Int64)
    waited, inside = (
        pl.when(pl.col("length_ns").is_null()).then(unknown).otherwise(pl.col(name).fill_null(0))
        for name in ("waited_ns", "inside_ns")
    )
    zero = ("blocked_ns", "n_launches", "n_graph_launches", "device_ns")
    return [
        *(pl.col(name).fill_null(0) for name in zero),
        (unknown if by_graph else pl.col("duration_ns")).alias("host_ns"),
        (unknown if by_graph else pl.col("first_ns") - pl.col("start_ns")).alias(
            "before_launch_ns"
        ),
        (waited if by_graph else inside).alias("launch_wait_ns"),
        (unknown if by_graph else waited - inside).alias("scheduler_wait_ns"),
    ]
