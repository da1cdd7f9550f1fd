"""How much of a trace is spent in GEMMs that a TunableOp file has tuned."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from longpole.bench.tunableop.coverage import Match, Tuned
from longpole.bench.tunableop.matmul import PRODUCTS, Tensor, gemms_of
from longpole.windows import Window, choose_window

if TYPE_CHECKING:
    from longpole.bench.tunableop.records import Source
    from longpole.trace import Trace

__all__ = ["GemmCoverage", "gemm_coverage"]

_TUNED = pl.col("match").is_in(["tuned", "wildcard"])


@dataclass(frozen=True, slots=True)
class GemmCoverage:
    """How much of the time in GEMMs, and of the critical path, a results file answers for.

    `rows` has a row for each distinct GEMM, what to tune next first, then the tuned ones:
    `name` (the operator of torch), `operator` and `parameters` (the signatures; null where
    the inputs do not tell), `match` (`tuned`, `wildcard`, `same_size`, `missing`, or
    `unknown` where the inputs do not tell), `solution`, `calls`, `kernel_ns` (the kernels
    that it launched in the window), `path_ns` (those parts of them that are on the critical
    path: no tuning of this GEMM can gain more), `mean_ns` (the kernels of one call),
    `tuned_ns` (the time in the file).
    """

    window: Window
    rows: pl.DataFrame
    path_length_ns: int
    path_status: str

    @property
    def gemm_ns(self) -> int:
        """The time of all kernels that GEMMs launched."""
        return sum(self.rows["kernel_ns"].to_list())

    @property
    def tuned_ns(self) -> int:
        """The part of it that is tuned for certain."""
        return sum(self.rows.filter(_TUNED)["kernel_ns"].to_list())

    @property
    def gemm_path_ns(self) -> int:
        """The time that such kernels have on the critical path."""
        return sum(self.rows["path_ns"].to_list())

    @property
    def tuned_path_ns(self) -> int:
        """The part of it that is tuned for certain."""
        return sum(self.rows.filter(_TUNED)["path_ns"].to_list())

    @property
    def share_of_gemm_time(self) -> float | None:
        """The tuned share of the time in GEMMs; None where there is none."""
        return self.tuned_ns / self.gemm_ns if self.gemm_ns else None

    @property
    def share_of_path(self) -> float | None:
        """The share of the critical path that is spent in tuned GEMMs; None for an empty path."""
        return self.tuned_path_ns / self.path_length_ns if self.path_length_ns else None

    @property
    def to_tune(self) -> pl.DataFrame:
        """What to tune next: the rows that are not tuned, the largest bound of the gain first."""
        return self.rows.filter(~_TUNED)


def gemm_coverage(trace: Trace, results: Source, *, step: int | None = None) -> GemmCoverage | None:
    """Look the GEMMs of a trace up in a results file.

    A GEMM is a matrix product of torch with all kernels that it launched: split reductions
    and type conversions among them. Its name for TunableOp is derived from the shapes,
    strides and types of its inputs, which `record_shapes=True` records.

    Parameters
    ----------
    trace
        A trace of Kineto, read with the arguments of its operators.
    results
        A results file, its path or its bytes.
    step
        The number of a step; by default the step that a summary takes, or the whole trace.

    Returns
    -------
    GemmCoverage or None
        None where nothing in the trace has a duration.

    Raises
    ------
    ValueError
        The trace has no such step.
    """
    window = choose_window(trace, step)
    if window is None:
        return None
    path = trace.critical_path(step=window.step)
    kernels = _kernels(trace, window)
    segments = path.segments.filter(pl.col("kind").cast(pl.String) == "kernel")
    on_path = segments.group_by("event").agg(path_ns=pl.col("duration_ns").sum())
    timed = kernels.join(on_path, on="event", how="left").with_columns(
        pl.col("path_ns").fill_null(0)
    )
    calls = timed.group_by("operator").agg(pl.col("duration_ns", "path_ns").sum())
    rows = _rows(_named(trace, calls), Tuned(results))
    return GemmCoverage(window, rows, path.length_ns, path.status)


def _kernels(trace: Trace, window: Window) -> pl.DataFrame:
    """Take the kernels in the window that a product launched: `event`, `operator`, its time."""
    products = trace.events.filter(pl.col("name").cast(pl.String).is_in(PRODUCTS)).select(
        operator="event"
    )
    launched = trace.launches.select("event", "operator").join(products, on="operator", how="semi")
    kernels = trace.events.filter(
        pl.col("kind").cast(pl.String) == "kernel",
        pl.col("start_ns") >= window.start_ns,
        pl.col("start_ns") < window.end_ns,
        pl.col("duration_ns") >= 0,
    )
    return kernels.select("event", "duration_ns").join(launched, on="event")


def _named(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """Put name and inputs beside the calls, and join the calls that are alike."""
    inputs = ["Input Dims", "Input Strides", "Input type"]
    names = trace.events.select(operator="event", name=pl.col("name").cast(pl.String))
    arguments = trace.args("cpu_op")
    known = [] if arguments is None else [name for name in inputs if name in arguments.columns]
    texts = pl.DataFrame(schema={"operator": pl.UInt32})
    if arguments is not None:
        texts = arguments.select(pl.col("event").alias("operator"), pl.col(known).cast(pl.String))
    missing = [pl.lit(None, pl.String).alias(name) for name in inputs if name not in known]
    return (
        calls.join(names, on="operator")
        .join(texts, on="operator", how="left")
        .with_columns(missing)
        .group_by("name", *inputs)
        .agg(pl.len().alias("calls"), pl.col("duration_ns", "path_ns").sum())
    )


def _rows(calls: pl.DataFrame, tuned: Tuned) -> pl.DataFrame:
    rows = []
    for name, dims, strides, types, n_calls, kernel_ns, path_ns in calls.iter_rows():
        gemms = gemms_of(name, _tensors(dims, strides, types))
        match = tuned.look_up(gemms) if gemms else None
        rows.append((name, *_told(match), n_calls, kernel_ns, path_ns, _tuned_ns(match)))
    texts = ("name", "operator", "parameters", "match", "solution")
    numbers = ("calls", "kernel_ns", "path_ns")
    schema = {**dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Int64)}
    frame = pl.DataFrame(rows, schema={**schema, "tuned_ns": pl.Float64}, orient="row")
    joined = frame.group_by(*texts, "tuned_ns").agg(pl.col(numbers).sum())
    mean_ns = pl.col("kernel_ns") / pl.col("calls")
    return (
        joined.with_columns(mean_ns=mean_ns)
        .select(*texts, *numbers, "mean_ns", "tuned_ns")
        .sort(
            _TUNED,
            "path_ns",
            "kernel_ns",
            "name",
            "operator",
            "parameters",
            descending=[False, True, True, False, False, False],
        )
    )


def _told(match: Match | None) -> tuple[str | None, str | None, str, str | None]:
    if match is None:
        return None, None, "unknown", None
    return *match.key, match.kind, match.line and match.line.solution


def _tuned_ns(match: Match | None) -> float | None:
    return match.line.time_ns if match is not None and match.line is not None else None


def _tensors(dims: str | None, strides: str | None, types: str | None) -> list[Tensor]:
    """Read the inputs as the profiler wrote them; none where it did not."""
    shapes, steps, dtypes = _list(dims), _list(strides), _list(types)
    if len(shapes) != len(dtypes):
        return []
    steps = steps if len(steps) == len(shapes) else [None] * len(shapes)
    return [
        Tensor(tuple(shape), _strides(shape, step), str(dtype))
        for shape, step, dtype in zip(shapes, steps, dtypes, strict=True)
        if _is_shape(shape)
    ]


def _list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(size, int) for size in value)


def _strides(shape: list[int], value: Any) -> tuple[int, ...] | None:
    return tuple(value) if _is_shape(value) and len(value) == len(shape) else None
