"""The allocations of memory that a trace, a memory timeline or a memory snapshot records.

torch writes three things: `[memory]` instants in traces (`profile_memory=True`), the raw memory
timeline (`export_memory_timeline("x.raw.json.gz")`), and snapshots of its caching allocator. A
snapshot that is a pickle is refused: opening one runs whatever code is in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.errors import TraceError
from longpole.frames import argument
from longpole.kept import kept
from longpole.packed import content, first_bytes
from longpole.sweeps import around, is_own_frame, own_frames, running_at

if TYPE_CHECKING:
    import os

    import polars as pl

    from longpole.trace import Trace

__all__ = ["Allocations", "is_memory_file", "read_memory", "trace_allocations"]

_PICKLE: Final = b"\x80"
_HEAD: Final = 4096
_CATEGORIES: Final = (
    "parameter",
    "optimizer state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd detail",
    "unknown",
)
_DEVICE_TYPES: Final = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps"}
_BEFORE: Final = -1
_CHANGES: Final = {1: "preexisting", 2: "allocated", 3: "recategorized", 4: "freed"}
_SNAPSHOT_HINT: Final = (
    "write the snapshot as JSON where it was recorded: "
    'json.dump(torch.cuda.memory._snapshot(), open("snapshot.json", "w"))'
)
_GROWS: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_USES: Final = {"alloc": 1, "free_completed": -1}


@dataclass(frozen=True, slots=True)
class Allocations:
    """The allocations of a recording, in order of time.

    `events` has a row for each change: `device` (as `cuda:0`), `time_ns` (null: before the
    recording), `change` (`allocated`, `freed`, `preexisting`, `recategorized`: the same memory
    became of another category; `reserved`: the allocator took or returned a segment), `n_bytes`
    (negative where it got less), `allocated_bytes` and `reserved_bytes` after it (null where not
    recorded), `address`, `category`, `operator` and `function` (what ran then), `inside` (the
    innermost event that ran, for `Trace.stack_of`), `event` (row in `Trace.events`). `blocks`
    has the blocks of a snapshot's segments: `device`, `n_bytes`, `is_free`, `function`.
    """

    source: Literal["trace", "timeline", "snapshot", "profile"]
    events: pl.DataFrame
    blocks: pl.DataFrame

    @classmethod
    def of_rows(cls, source: Literal["profile"], rows: list[dict[str, Any]]) -> Allocations:
        """Make it of changes in order of time; what a row lacks is null."""
        return cls(source, _frame(rows), _blocks([]))


def is_memory_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is a memory timeline or a snapshot, and no trace, by its first bytes."""
    head = first_bytes(path, _HEAD)
    text = head.lstrip()
    is_timeline = text.startswith(b"[") and text[1:].lstrip().startswith(b"[")
    is_snapshot = text.startswith(b"{") and b'"segments"' in head and b'"traceEvents"' not in head
    return head.startswith(_PICKLE) or is_timeline or is_snapshot


def read_memory(path: str | os.PathLike[str]) -> Allocations:
    """Read a raw memory timeline or a snapshot in JSON, plain or gzip.

    Parameters
    ----------
    path
        A `memory_timeline.raw.json.gz`, or what `json.dump` wrote of
        `torch.cuda.memory._snapshot()`.

    Raises
    ------
    TraceError
        The file is a pickle, or neither of the two.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    if first_bytes(path, _HEAD).startswith(_PICKLE):
        message = "the file is a pickle, which can run code when it is opened; it is not read"
        raise _error(path, "pickle", message, _SNAPSHOT_HINT)
    try:
        document = json.loads(content(path))
    except ValueError as error:
        raise _error(path, "not_json", "the file is not valid JSON") from error
    try:
        if isinstance(document, list):
            return _timeline(document)
        if isinstance(document, dict) and "segments" in document:
            return _snapshot(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        message = f"a part of the file is not as torch writes it ({type(error).__name__}: {error})"
        raise _error(path, "not_a_memory_file", message) from error
    message = "the file is neither a raw memory timeline nor a memory snapshot"
    raise _error(path, "not_a_memory_file", message)


@kept
def trace_allocations(trace: Trace) -> Allocations:
    """Take the `[memory]` instants of a trace; none without `profile_memory=True`."""
    import polars as pl

    columns = {
        "n_bytes": "Bytes",
        "allocated_bytes": "Total Allocated",
        "reserved_bytes": "Total Reserved",
        "address": "Addr",
        "type": "Device Type",
        "number": "Device Id",
    }
    arguments = trace.args("cpu_instant_event", [*columns.values()])
    needed = {"Bytes", "Total Allocated"}
    if arguments is None or not needed <= set(arguments.columns):
        return Allocations("trace", _frame([]), _blocks([]))
    known = [argument(arguments, key, pl.Int64).alias(name) for name, key in columns.items()]
    times = trace.events.select("lane", time_ns="start_ns")
    rows = arguments.select("event", *known).filter(pl.col("n_bytes").is_not_null())
    placed = rows.hstack(times[rows["event"]])
    joined = placed.with_columns(device=_device()).sort("time_ns", "event")
    owned = joined.hstack(_owners(trace, joined))
    # CPU allocators reserve nothing that torch knows of, and write 0.
    reserved = pl.when(pl.col("reserved_bytes") > 0).then(pl.col("reserved_bytes"))
    events = owned.with_columns(
        reserved_bytes=reserved,
        category=pl.lit(None, pl.String),
        change=pl.when(pl.col("n_bytes") > 0).then(pl.lit("allocated")).otherwise(pl.lit("freed")),
    ).select(*_schema())
    return Allocations("trace", events, _blocks([]))


def _device() -> pl.Expr:
    import polars as pl

    kind = pl.col("type").replace_strict(
        _DEVICE_TYPES, default=pl.format("device type {}", "type"), return_dtype=pl.String
    )
    number = pl.when(pl.col("number") >= 0).then(pl.format(":{}", "number")).otherwise(pl.lit(""))
    return pl.concat_str(kind, number)


def _owners(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Find what ran at each point of a thread: the innermost event, operator and function."""
    import polars as pl

    inside = running_at(trace, rows["lane"], rows["time_ns"])
    events = trace.events.select("event", "kind", "name")
    operators = events.filter(pl.col("kind") == "operator")
    return pl.DataFrame(
        {
            "inside": inside,
            "operator": _around(trace, inside, operators["event"]),
            "function": _around(trace, inside, own_frames(trace)),
        }
    )


def _around(trace: Trace, events: pl.Series, among: pl.Series) -> pl.Series:
    """Name the innermost of some events around each event."""
    import polars as pl

    # The rows of a frame of events are their numbers.
    return trace.events["name"].gather(around(trace, events, among, "innermost")).cast(pl.String)


def _timeline(document: list[Any]) -> Allocations:
    """Add up `[time, action, bytes, category]`; the file is about one device."""
    rows = []
    allocated = 0
    for time_ns, action, n_bytes, category in document:
        allocated += n_bytes
        rows.append(
            {
                "device": "device",
                "time_ns": None if time_ns == _BEFORE else int(time_ns),
                "change": _CHANGES[action],
                "n_bytes": int(n_bytes),
                "allocated_bytes": allocated,
                "category": _CATEGORIES[category],
            }
        )
    return Allocations("timeline", _frame(rows), _blocks([]))


def _snapshot(document: dict[str, Any]) -> Allocations:
    rows: list[dict[str, Any]] = []
    segments = document["segments"]
    for device, events in enumerate(document.get("device_traces") or []):
        own = [segment for segment in segments if segment.get("device", 0) == device]
        rows += _device_trace(f"cuda:{device}", events, own)
    blocks = [
        {
            "device": f"cuda:{segment.get('device', 0)}",
            "n_bytes": int(block["size"]),
            "is_free": block["state"] == "inactive",
            "function": _line(block.get("frames") or []),
        }
        for segment in segments
        for block in segment["blocks"]
    ]
    return Allocations("snapshot", _frame(rows), _blocks(blocks))


def _device_trace(
    device: str, events: list[dict[str, Any]], segments: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Follow the events of a device to the state that the snapshot shows at their end."""
    uses = [_USES.get(event["action"], 0) * event.get("size", 0) for event in events]
    growths = [_GROWS.get(event["action"], 0) * event.get("size", 0) for event in events]
    blocks = (block for segment in segments for block in segment["blocks"])
    used = sum(block["size"] for block in blocks if _is_used(block)) - sum(uses)
    reserved = sum(segment["total_size"] for segment in segments) - sum(growths)
    rows = []
    for event, use, growth in zip(events, uses, growths, strict=True):
        used, reserved = used + use, reserved + growth
        if use or growth:
            rows.append(
                {
                    "device": device,
                    "time_ns": int(event.get("time_us", 0)) * 1000,
                    "change": _change(use),
                    "n_bytes": use,
                    "allocated_bytes": used,
                    "reserved_bytes": reserved,
                    "address": int(event["addr"]) if use else None,
                    "function": _line(event.get("frames") or []),
                }
            )
    return rows


def _change(use: int) -> str:
    if not use:
        return "reserved"
    return "allocated" if use > 0 else "freed"


def _is_used(block: dict[str, Any]) -> bool:
    return bool(block["state"] != "inactive")


def _line(frames: list[dict[str, Any]]) -> str | None:
    """Name the innermost frame of the program itself, else the innermost."""
    lines = [
        f"{frame.get('filename', '?')}({frame.get('line', 0)}): {frame.get('name', '?')}"
        for frame in frames
    ]
    own = (line for line in lines if ".py(" in line and is_own_frame(line))
    return next(own, lines[0] if lines else None)


def _schema() -> dict[str, Any]:
    import polars as pl

    return {
        "device": pl.String,
        "time_ns": pl.Int64,
        "change": pl.String,
        "n_bytes": pl.Int64,
        "allocated_bytes": pl.Int64,
        "reserved_bytes": pl.Int64,
        "address": pl.Int64,
        "category": pl.String,
        "operator": pl.String,
        "function": pl.String,
        "inside": pl.UInt32,
        "event": pl.UInt32,
    }


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, schema=_schema())


def _blocks(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    schema: dict[str, Any] = {
        "device": pl.String,
        "n_bytes": pl.Int64,
        "is_free": pl.Boolean,
        "function": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def _error(path: Path, code: str, message: str, hint: str | None = None) -> TraceError:
    error = TraceError(f"{path}: {message}")
    error.code, error.offset, error.hint, error.path = code, 0, hint, str(path)
    return error
