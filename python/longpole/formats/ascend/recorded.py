"""Step times and AI core counters as recorded by Ascend's tool, in the files next to a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.formats.ascend.rows import Database
from longpole.formats.ascend.tables import read_ascend_table

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

Steps = dict[int | None, dict[str, int]]
"""Quantities of each step in nanoseconds; the key is None if there are no steps."""

_TEXT: Final = "step_trace_time.csv"
_RESULTS: Final = "analysis.db"
_KERNELS: Final = "kernel_details.csv"
_SHARES: Final = ("_mac_ratio", "_vec_ratio", "_utilization_percent")
_COUNTERS: Final = ("aic_", "aiv_", "aicore_", "cube_", "vector_")
_COLUMNS: Final = {
    "computing": "computing_ns",
    "communication": "communication_ns",
    "communication_not_overlapped": "not_overlapped_ns",
    "overlapped": "overlapped_ns",
    "free": "free_ns",
    "stage": "stage_ns",
}


def recorded_steps(timeline: Path | None) -> tuple[Steps, str]:
    """Read the recorded steps next to a timeline, and the name of their file.

    Raises
    ------
    TraceError
        The file exists but has another format.
    """
    if timeline is None:
        return {}, ""
    folder = _folder(timeline)
    if timeline.suffix != ".db" and (folder / _TEXT).is_file():
        return _of_text(folder / _TEXT), _TEXT
    if (folder / _RESULTS).is_file():
        return _of_database(folder / _RESULTS), _RESULTS
    return {}, ""


def recorded_counters(timeline: Path | None) -> pl.DataFrame | None:
    """Read the counters of AI cores next to a timeline, a row for each kernel; None without any.

    Columns: `name` and `start_ns` of the kernel, and the counters, as numbers.

    Raises
    ------
    TraceError
        The file exists but has another format.
    """
    import polars as pl

    if timeline is None:
        return None
    folder = _folder(timeline)
    paths = [path for path in (folder / _KERNELS, *_exports(folder)) if path.is_file()]
    if not paths:
        return None
    frame = read_ascend_table(paths[0]).frame
    counters = [
        name
        for name, dtype in frame.schema.items()
        if dtype == pl.Float64 and name.startswith(_COUNTERS) and frame[name].is_not_null().any()
    ]
    # What tells how well a core is used comes first.
    counters.sort(key=lambda name: not name.endswith(_SHARES))
    return frame.select("name", "start_ns", *counters) if counters else None


def _exports(folder: Path) -> list[Path]:
    """Return the kernels that msprof exported, newest first."""
    return sorted(folder.glob("op_summary_*.csv"), reverse=True)


def _folder(timeline: Path) -> Path:
    """Return the folder with the files of the tool."""
    folder = timeline if timeline.is_dir() else timeline.parent
    inside = folder / "ASCEND_PROFILER_OUTPUT"
    return inside if inside.is_dir() else folder


def _of_text(path: Path) -> Steps:
    rows = read_ascend_table(path).frame.iter_rows(named=True)
    return {row.get("step"): _given(row, _COLUMNS.values()) for row in rows}


def _of_database(path: Path) -> Steps:
    database = Database(path)
    found: Steps = {}
    for row in database.rows("StepTraceTime", ("step", *_COLUMNS)):
        step = str(row["step"])
        values = {ours: row[theirs] for theirs, ours in _COLUMNS.items()}
        numbers = {name: round(it * 1000) for name, it in values.items() if _is_number(it)}
        found[int(step) if step.isdecimal() else None] = numbers
    database.close()
    return found


def _given(row: dict[str, Any], names: Any) -> dict[str, int]:
    return {name: row[name] for name in names if row.get(name) is not None}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
