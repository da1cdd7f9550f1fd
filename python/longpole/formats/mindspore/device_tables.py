"""Contents of an Ascend device's exported files: operators, shapes, counters and steps.

The files are those of `ASCEND_PROFILER_OUTPUT` and `mindstudio_profiler_output`. Databases replace
missing tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import TraceError
from longpole.files.opening import matching
from longpole.formats.ascend.layout import OUTPUT_FOLDER, database_files, output_folders, rank_of
from longpole.formats.ascend.tables import read_ascend_table
from longpole.formats.mindspore.device_database import STEPS, database_kernels, database_steps
from longpole.formats.mindspore.findings import FileFinding
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

_CONVERSIONS: Final = frozenset({"TransData", "Cast", "Transpose", "TransposeD", "Reformat"})
"""Types of operators that change only the layout or the type of their input."""
_METRIC: Final = re.compile(r"(?:_ratio|_rate|_bw_gb_s|utilization_percent)$")
_COMMUNICATION: Final = ("HCCL", "COMMUNICATION")
_REDUCES: Final = "reduce_duration_us"
_MOST_STEPS: Final = 10
_EXPORTED_AT: Final = re.compile(r"_([0-9]{14,17})\.csv$")


@dataclass(frozen=True, slots=True)
class DeviceOperator(Data):
    """All runs of one operator type on one kind of core."""

    type: str
    core: str | None
    n_runs: int
    total_ns: int
    min_ns: int | None
    max_ns: int | None
    share: float | None
    """Share of the time of all operators, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class DeviceShape(Data):
    """The runs of one operator type with the same input shapes."""

    type: str
    input_shapes: str | None
    n_runs: int
    n_dynamic: int | None
    """Number of runs with shapes unknown to the compiler; None if not recorded."""
    total_ns: int


@dataclass(frozen=True, slots=True)
class DeviceMetric(Data):
    """Mean of an AI core counter over the runs of a type, weighted by their time."""

    type: str
    core: str | None
    metric: str
    """Column name, such as `aic_mac_ratio`."""
    mean: float


@dataclass(frozen=True, slots=True)
class DeviceStep(Data):
    """A step or iteration: its parts as written by the profiler; None if missing."""

    number: int | None
    total_ns: int | None
    computing_ns: int | None
    not_overlapped_ns: int | None
    """Communication without concurrent computation."""
    free_ns: int | None
    fp_and_bp_ns: int | None
    """Time from the start of forward to the end of backward propagation."""
    refresh_ns: int | None
    """Time from the end of backward propagation to the end of the iteration."""
    data_wait_ns: int | None
    """Time from the end of the previous iteration to the start of forward propagation."""
    reduce_ns: int | None
    """Time of the collective operations of the iteration (`Reduce Duration`), added up."""


@dataclass(frozen=True, slots=True)
class DeviceTables(Data):
    """The tables of one device; empty if the profile lacks the file."""

    rank: int | None
    folder: Path
    operators: Sequence[DeviceOperator]
    """Operators by time, longest first."""
    shapes: Sequence[DeviceShape]
    """Shapes by time, longest first."""
    metrics: Sequence[DeviceMetric]
    steps: Sequence[DeviceStep]
    conversion_share: float | None
    """Share of operators that change only layout or type (TransData, Cast, Transpose)."""
    operations: float | None
    """Floating-point operations of the cube and vector units, if recorded."""
    findings: Sequence[FileFinding]


def read_devices(folder: Path, step_list: Sequence[int] | None = None) -> list[DeviceTables]:
    """Return the tables of each exported folder in a profile; empty without such a folder.

    `step_list` chooses steps by number; the other tables cover the whole run.
    """
    if not folder.is_dir():
        return []
    found = [_read(output, step_list) for output in output_folders(folder)]
    having = [each for each in found if each.operators or each.steps or each.findings]
    return sorted(having, key=lambda it: (it.rank is None, it.rank or 0, str(it.folder)))


def _read(output: Path, step_list: Sequence[int] | None) -> DeviceTables:
    findings: list[FileFinding] = []
    databases = _newest(sorted(database_files(output)))
    kernels = _frame(output, ("kernel_details", "op_summary"), findings)
    if kernels is None:
        kernels = _of_databases(databases, database_kernels, findings)
    statistic = _frame(output, ("op_statistic",), findings)
    steps = _frame(output, ("step_trace_time", "step_trace"), findings)
    if steps is None:
        analysed = [path for path in matching(output, STEPS) if path.is_file()]
        steps = _of_databases(analysed, database_steps, findings)
    if statistic is not None:
        operators = _of_statistic(statistic)
    else:
        operators = [] if kernels is None else _of_kernels(kernels)
    total_ns = sum(each.total_ns for each in operators)
    converting_ns = sum(each.total_ns for each in operators if each.type in _CONVERSIONS)
    timeline = "trace_view.json" if output.name == OUTPUT_FOLDER else "msprof.json"
    named = [path for path in databases if rank_of(path) is not None]
    return DeviceTables(
        rank=rank_of(named[0] if named else output / timeline),
        folder=output,
        operators=operators,
        shapes=[] if kernels is None else _shapes(kernels),
        metrics=[] if kernels is None else _metrics(kernels),
        steps=[] if steps is None else _steps(steps, step_list, output, findings),
        conversion_share=converting_ns / total_ns if total_ns else None,
        operations=None if kernels is None else _operations(kernels),
        findings=tuple(findings),
    )


def _frame(output: Path, names: Sequence[str], findings: list[FileFinding]) -> pl.DataFrame | None:
    """Return the rows of the first kind of file that exists, from its most recent export."""
    import polars as pl

    for name in names:
        frames = []
        for path in _newest_export(output, name, findings):
            try:
                table = read_ascend_table(path)
            except TraceError as error:
                reason = str(error).removeprefix(f"{path}: ")
                findings.append(
                    FileFinding(error.code, path.name, 1, reason, "the file is ignored")
                )
                continue
            for fault in table.findings:
                sentence, _, effect = fault.message.rpartition("; ")
                place = (fault.line,)
                findings.append(
                    FileFinding(fault.code, path.name, fault.count, sentence, effect, place)
                )
            frames.append(table.frame)
        if frames:
            return pl.concat(frames, how="diagonal_relaxed")
    return None


def _of_databases(
    paths: Sequence[Path],
    rows_of: Callable[[Path], tuple[pl.DataFrame, int]],
    findings: list[FileFinding],
) -> pl.DataFrame | None:
    """Return the rows of databases; None without any."""
    import polars as pl

    frames = []
    for path in paths:
        try:
            frame, n_damaged = rows_of(path)
        except TraceError as error:
            reason = str(error).removeprefix(f"{path}: ")
            findings.append(FileFinding(error.code, path.name, 1, reason, "the file is ignored"))
            continue
        if n_damaged:
            sentence = "rows have cells of the wrong type"
            findings.append(
                FileFinding("bad_row", path.name, n_damaged, sentence, "they are left out")
            )
        if frame.height:
            frames.append(frame)
    return pl.concat(frames, how="diagonal_relaxed") if frames else None


def _newest(databases: list[Path]) -> list[Path]:
    """Return the databases; of those of msprof, only the newest."""
    of_msprof = [path for path in databases if path.name.startswith("msprof")]
    others = [path for path in databases if path not in of_msprof]
    return others or of_msprof[-1:]


def _steps(
    frame: pl.DataFrame,
    step_list: Sequence[int] | None,
    output: Path,
    findings: list[FileFinding],
) -> list[DeviceStep]:
    """Return all steps, or only the chosen ones."""
    steps = [_step(row) for row in frame.iter_rows(named=True)]
    if step_list is None:
        return steps
    chosen = [step for step in steps if step.number in step_list]
    if steps and not chosen:
        known = ", ".join(str(step.number) for step in steps[:_MOST_STEPS])
        more = ", ..." if len(steps) > _MOST_STEPS else ""
        sentence = f"none of the steps {step_list[0]} to {step_list[-1]} is there"
        effect = f"no steps are shown; the profile has {known}{more}"
        findings.append(FileFinding("no_such_step", output.name, 1, sentence, effect))
    return chosen


def _newest_export(output: Path, name: str, findings: list[FileFinding]) -> list[Path]:
    """Return the files of a table, from its last export."""
    is_steps = name == "step_trace"
    paths = [
        path
        for path in sorted(matching(output, f"{name}*.csv"))
        if not (is_steps and path.name.startswith("step_trace_time"))
    ]
    times = {path: found[1] for path in paths if (found := _EXPORTED_AT.search(path.name))}
    newest = max(times.values(), default=None)
    kept = [path for path in paths if times.get(path) == newest]
    if len(set(times.values())) > 1:
        sentence, effect = "the profile was exported several times", "the newest export is read"
        findings.append(
            FileFinding("several_exports", kept[0].name, len(paths) - len(kept), sentence, effect)
        )
    return kept


def _of_statistic(frame: pl.DataFrame) -> list[DeviceOperator]:
    import polars as pl

    frame = _with(frame, core=pl.String, min_ns=pl.Int64, max_ns=pl.Int64)
    columns = (pl.col("count").sum(), pl.col("total_ns").sum(), pl.col("min_ns").min())
    whole = frame.drop_nulls(["type", "count", "total_ns"])
    grouped = whole.group_by("type", "core").agg(*columns, pl.col("max_ns").max())
    return _operators(grouped)


def _of_kernels(frame: pl.DataFrame) -> list[DeviceOperator]:
    import polars as pl

    duration = pl.col("duration_ns")
    grouped = (
        _computing(frame)
        .group_by("type", "core")
        .agg(
            pl.len().alias("count"),
            duration.sum().alias("total_ns"),
            duration.min().alias("min_ns"),
            duration.max().alias("max_ns"),
        )
    )
    return _operators(grouped)


def _operators(grouped: pl.DataFrame) -> list[DeviceOperator]:
    total_ns = grouped["total_ns"].sum()
    ordered = grouped.sort(["total_ns", "type", "core"], descending=[True, False, False])
    return [
        DeviceOperator(
            row["type"],
            row["core"],
            row["count"],
            row["total_ns"],
            row["min_ns"],
            row["max_ns"],
            row["total_ns"] / total_ns if total_ns else None,
        )
        for row in ordered.iter_rows(named=True)
    ]


def _computing(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the kernels with a type and a duration, except communication."""
    import polars as pl

    frame = _with(frame, type=pl.String, core=pl.String, input_shapes=pl.String)
    is_other = ~pl.col("core").fill_null("").is_in(_COMMUNICATION)
    return frame.drop_nulls(["type", "duration_ns"]).filter(is_other)


def _shapes(frame: pl.DataFrame) -> list[DeviceShape]:
    import polars as pl

    is_known = "op_state" in frame.columns
    frame = _with(_computing(frame), op_state=pl.String)
    dynamic = (pl.col("op_state") == "dynamic").sum()
    grouped = (
        frame.group_by("type", "input_shapes")
        .agg(
            pl.len().alias("n_runs"),
            dynamic.alias("n_dynamic"),
            pl.col("duration_ns").sum().alias("total_ns"),
        )
        .sort(["total_ns", "type", "input_shapes"], descending=[True, False, False])
    )
    return [
        DeviceShape(**(row if is_known else row | {"n_dynamic": None}))
        for row in grouped.iter_rows(named=True)
    ]


def _metrics(frame: pl.DataFrame) -> list[DeviceMetric]:
    """Return the mean of each counter by type and core, except those that are always 0."""
    import polars as pl

    names = [
        name for name, dtype in frame.schema.items() if dtype == pl.Float64 and _METRIC.search(name)
    ]
    weight = pl.col("duration_ns")
    means = [
        ((pl.col(name) * weight).sum() / weight.filter(pl.col(name).is_not_null()).sum())
        .fill_nan(None)  # no kernel with the counter took time
        .alias(name)
        for name in names
    ]
    grouped = _computing(frame).group_by("type", "core").agg(*means).sort("type", "core")
    return [
        DeviceMetric(row["type"], row["core"], name, row[name])
        for row in grouped.iter_rows(named=True)
        for name in names
        if row[name]
    ]


def _operations(frame: pl.DataFrame) -> float | None:
    import polars as pl

    names = [name for name in ("cube_fops", "vector_fops") if name in frame.columns]
    sums = [frame[name].sum() for name in names if frame.schema[name] == pl.Float64]
    return float(sum(sums)) if sums else None


def _step(row: dict[str, Any]) -> DeviceStep:
    computing, exposed, free = (
        row.get(name) for name in ("computing_ns", "not_overlapped_ns", "free_ns")
    )
    parts = [part for part in (computing, exposed, free) if part is not None]
    of_parts = sum(parts) if len(parts) == 3 else None  # noqa: PLR2004 (all of them)
    return DeviceStep(
        number=row.get("step"),
        total_ns=row.get("total_ns", of_parts),
        computing_ns=computing,
        not_overlapped_ns=exposed,
        free_ns=free,
        fp_and_bp_ns=row.get("fp_and_bp_ns"),
        refresh_ns=row.get("refresh_ns"),
        data_wait_ns=row.get("data_wait_ns"),
        reduce_ns=_reduce_ns(row),
    )


def _reduce_ns(row: dict[str, Any]) -> int | None:
    """Add up the collective operations of an iteration, each of which has columns of its own."""
    times_us = [
        time_us
        for name, time_us in row.items()
        if name.startswith(_REDUCES) and isinstance(time_us, float)
    ]
    return round(1_000 * sum(times_us)) if times_us else None


def _with(frame: pl.DataFrame, **columns: Any) -> pl.DataFrame:
    """Return the frame with null columns for those it lacks."""
    import polars as pl

    missing = {name: dtype for name, dtype in columns.items() if name not in frame.columns}
    return frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in missing.items())
