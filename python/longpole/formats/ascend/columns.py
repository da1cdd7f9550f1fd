"""The columns of the CSV files in an Ascend profile, with all names they have had.

Each version of the exporter names and orders columns differently. A column is found by its name,
never by its position; unlisted columns keep their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

Kind = Literal["text", "integer", "number", "microseconds"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in longpole, its type of content, and its names in files (lower case)."""

    name: str
    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A file: its name in longpole, its file names, and its columns; the first are required."""

    name: str
    files: re.Pattern[str]
    columns: tuple[Column, ...]
    n_needed: int


def _column(kind: Kind, name: str, *names: str) -> Column:
    return Column(name, kind, names)


_text: Final = partial(_column, "text")
_integer: Final = partial(_column, "integer")
_number: Final = partial(_column, "number")
_time: Final = partial(_column, "microseconds")


def _layout(name: str, n_needed: int, *columns: Column, suffix: str = r"(?:_[\w-]+)?") -> Layout:
    return Layout(name, re.compile(rf"^{name}{suffix}\.csv$"), columns, n_needed)


_MODEL: Final = _integer("model", "model id")
_DEVICE: Final = _text("device", "device_id", "device", "device type")

_KERNELS: Final = (
    _text("name", "name", "op name"),
    _time("start_ns", "start time(us)", "task start time(us)"),
    _time("duration_ns", "duration(us)", "task duration(us)"),
    _text("type", "type", "op type"),
    _text("core", "accelerator core", "task type"),
    _time("wait_ns", "wait time(us)", "task wait time(us)"),
    _integer("step", "step id"),
    _integer("stream", "stream id"),
    _integer("task", "task id"),
    _MODEL,
    _DEVICE,
    _integer("blocks", "block dim", "block num"),
    _text("input_shapes", "input shapes"),
    _text("input_types", "input data types"),
    _text("output_shapes", "output shapes"),
    _text("output_types", "output data types"),
)

LAYOUTS: Final = (
    _layout("kernel_details", 3, *_KERNELS),
    _layout("op_summary", 3, *_KERNELS),
    _layout(
        "op_statistic",
        3,
        _text("type", "op type"),
        _integer("count", "count"),
        _time("total_ns", "total time(us)"),
        _text("core", "core type"),
        _time("min_ns", "min time(us)"),
        _time("mean_ns", "avg time(us)"),
        _time("max_ns", "max time(us)"),
        _number("percent", "ratio(%)"),
        _text("model_name", "model name"),
        _DEVICE,
    ),
    _layout(
        "api_statistic",
        3,
        _text("name", "api name", "name"),
        _time("total_ns", "time(us)"),
        _integer("count", "count"),
        _text("level", "level"),
        _time("mean_ns", "avg(us)"),
        _time("min_ns", "min(us)"),
        _time("max_ns", "max(us)"),
        _number("variance", "variance"),
        _DEVICE,
    ),
    _layout(
        "step_trace_time",
        2,
        _time("computing_ns", "computing"),
        _time("communication_ns", "communication"),
        _integer("step", "step"),
        _time("not_overlapped_ns", "communication(not overlapped)"),
        _time("overlapped_ns", "overlapped"),
        _time("free_ns", "free"),
        _time("stage_ns", "stage"),
        _time("bubble_ns", "bubble"),
        _time(
            "not_overlapped_and_exclude_receive_ns",
            "communication(not overlapped and exclude receive)",
        ),
        _time("preparing_ns", "preparing"),
        _DEVICE,
        suffix="",
    ),
    _layout(
        "step_trace",
        2,
        _integer("step", "iteration id"),
        _time("total_ns", "iteration time(us)"),
        _time("fp_start_ns", "fp start(us)"),
        _time("bp_end_at_ns", "bp end(us)"),
        _time("end_at_ns", "iteration end(us)"),
        _time("fp_and_bp_ns", "fp to bp time(us)"),
        _time("refresh_ns", "iteration refresh(us)"),
        _time("data_wait_ns", "data aug bound(us)"),
        _MODEL,
        _DEVICE,
    ),
    _layout(
        "memory_record",
        2,
        _text("component", "component"),
        _time("time_ns", "timestamp(us)"),
        _number("allocated_mb", "total allocated(mb)"),
        _number("allocated_kb", "total allocated(kb)"),
        _number("reserved_mb", "total reserved(mb)"),
        _number("reserved_kb", "total reserved(kb)"),
        _number("active_mb", "total active(mb)"),
        _integer("stream_address", "stream ptr"),
        _DEVICE,
    ),
    _layout(
        "operator_memory",
        2,
        _text("name", "name"),
        _number("size_kb", "size(kb)"),
        _time("allocated_at_ns", "allocation time(us)"),
        _time("released_at_ns", "release time(us)"),
        _time("active_released_at_ns", "active release time(us)"),
        _time("duration_ns", "duration(us)"),
        _time("active_duration_ns", "active duration(us)"),
        _integer("stream_address", "stream ptr"),
        _DEVICE,
    ),
    _layout(
        "npu_module_mem",
        2,
        _text("component", "component"),
        _time("time_ns", "timestamp(us)"),
        _number("reserved_mb", "total reserved(mb)"),
        _number("reserved_kb", "total reserved(kb)"),
        _DEVICE,
    ),
    _layout(
        "l2_cache",
        2,
        _integer("stream", "stream id"),
        _integer("task", "task id"),
        _number("hit_rate", "hit rate"),
        _number("victim_rate", "victim rate"),
        _text("name", "op name"),
    ),
    _layout(
        "operator_details",
        1,
        _text("name", "name"),
        _text("input_shapes", "input shapes"),
        _text("stack", "call stack"),
        _time("host_self_ns", "host self duration(us)"),
        _time("host_total_ns", "host total duration(us)"),
        _time("device_self_ns", "device self duration(us)"),
        _time("device_total_ns", "device total duration(us)"),
        _time("device_self_with_aicore_ns", "device self duration with aicore(us)"),
        _time("device_total_with_aicore_ns", "device total duration with aicore(us)"),
    ),
)


def layout_of(file_name: str) -> Layout | None:
    """Return the layout of a file from its file name.

    Examples
    --------
    >>> layout_of("op_summary_0_1.csv").name
    'op_summary'
    """
    return next((it for it in LAYOUTS if it.files.match(file_name)), None)
