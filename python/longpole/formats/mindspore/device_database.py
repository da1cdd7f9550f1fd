"""Reads the kernels and steps of an Ascend device from its databases, as in the text export.

`ascend_pytorch_profiler_*.db`, `ascend_mindspore_profiler_*.db` and `msprof_*.db` have the kernels
and their counters; `analysis.db` has the steps.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from longpole.formats.ascend.rows import Database, open_database

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

STEPS: Final = "analysis.db"
"""The database with the steps."""
_STEP_TABLE: Final = "StepTraceTime"
_PARTS: Final = {
    "computing_ns": "computing",
    "not_overlapped_ns": "communication_not_overlapped",
    "free_ns": "free",
}
_UNKNOWN: Final = "N/A"


def database_kernels(path: Path) -> tuple[pl.DataFrame, int]:
    """Return the kernels of a database, and the number of damaged rows.

    The columns are those of `kernel_details.csv`: `type`, `core`, `duration_ns`, `input_shapes`,
    `op_state` if recorded, and a column for each counter.

    Raises
    ------
    TraceError
        The file is not a database of the Ascend profilers, or is damaged.
    """
    import polars as pl

    with closing(open_database(path)) as database:
        tasks = database.by_task("TASK", ("startNs", "endNs"))
        counters = _counters(database)
        names = ("opType", "taskType", "inputShapes", "opState")
        computed = database.by_task("COMPUTE_TASK_INFO", names)
        rows = [
            {
                "duration_ns": _duration(tasks.get(task)),
                **{name: _text(database, row[name]) for name in names},
                **counters.get(task, {}),
            }
            for task, row in computed.items()
        ]
        n_damaged = database.n_lost_rows
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if not rows:
        return frame, n_damaged
    shapes = pl.col("inputShapes").cast(pl.String).str.strip_chars('"')
    columns = frame.with_columns(shapes).rename(
        {"opType": "type", "taskType": "core", "inputShapes": "input_shapes"}
    )
    if columns["opState"].null_count() == columns.height:
        return columns.drop("opState"), n_damaged
    return columns.rename({"opState": "op_state"}), n_damaged


def database_steps(path: Path) -> tuple[pl.DataFrame, int]:
    """Return the steps of `analysis.db`, and the number of damaged rows.

    Raises
    ------
    TraceError
        The database is damaged.
    """
    import polars as pl

    schema = dict.fromkeys(("step", *_PARTS), pl.Int64)
    with closing(Database(path)) as database:
        rows = list(database.rows(_STEP_TABLE, ("step", *_PARTS.values())))
    found = [
        {"step": _whole(row["step"]), **{name: _ns(row[of]) for name, of in _PARTS.items()}}
        for row in rows
    ]
    kept = [row for row in found if all(row[name] is not None for name in _PARTS)]
    return pl.DataFrame(kept, schema=schema), len(found) - len(kept)


def _counters(database: Database) -> dict[Any, dict[str, float]]:
    """Return the counters of each task, by counter name."""
    found: dict[Any, dict[str, float]] = {}
    for row in database.rows("TASK_PMU_INFO", ("globalTaskId", "name", "value")):
        name, value = database.text_or_none(row["name"]), row["value"]
        if name is not None and isinstance(value, int | float):
            found.setdefault(row["globalTaskId"], {})[name] = float(value)
    return found


def _duration(task: dict[str, Any] | None) -> int | None:
    if task is None or task["startNs"] is None or task["endNs"] is None:
        return None
    return int(task["endNs"] - task["startNs"])


def _text(database: Database, number: Any) -> str | None:
    text = database.text_or_none(number)
    return None if text == _UNKNOWN else text


def _whole(step: Any) -> int | None:
    return (
        int(step) if isinstance(step, int) or (isinstance(step, str) and step.isdecimal()) else None
    )


def _ns(time_us: Any) -> int | None:
    return round(1000 * time_us) if isinstance(time_us, int | float) else None
