"""Memory allocations recorded in a trace, a memory timeline or a memory snapshot.

torch writes three recordings: `[memory]` instants in traces (`profile_memory=True`), the raw memory
timeline (`export_memory_timeline("x.raw.json.gz")`), and snapshots of its caching allocator. A
snapshot in pickle format is refused, since opening a pickle runs the code in it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeGuard

from longpole.errors import TraceError
from longpole.files.json_elements import JsonLimitError, json_elements
from longpole.files.opening import first_bytes, is_pipe
from longpole.rows.frames import argument
from longpole.trace.kept import kept
from longpole.trace.sweeps import around, is_own_frame, own_frames, running_at

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import polars as pl

    from longpole.trace.trace import Trace

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
_CATEGORIES_OF_INSTANTS: Final = ("cpu_instant_event", None)
_BEFORE: Final = -1
_N_FIELDS: Final = 4
MAX_CHANGES: Final = 3_000_000
"""Maximum number of changes, and of blocks, in a file."""
_MOST_DAMAGED: Final = 100_000
_BATCH: Final = 1 << 16
_LONGEST_LINE: Final = 200
_MOST_FRAMES: Final = 8
# Limit of a size: the sum of two such sizes fits 64 bits.
_TOO_LARGE: Final = 1 << 61
_CHANGES: Final = {1: "preexisting", 2: "allocated", 3: "recategorized", 4: "freed"}
_SNAPSHOT_HINT: Final = (
    "write the snapshot as JSON where it was recorded: "
    'json.dump(torch.cuda.memory._snapshot(), open("snapshot.json", "w"))'
)
_FILE_HINT: Final = (
    'write a timeline with export_memory_timeline("x.raw.json.gz"), or a snapshot as JSON'
)
_GROWS: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_USES: Final = {"alloc": 1, "free_completed": -1}


class Pool(NamedTuple):
    """The memory that an allocator manages."""

    capacity_bytes: int
    fragmentation: float | None
    """Fraction of its free memory that is not in the largest free block, at the peak."""
    most_bytes: int | None
    """Most bytes in use since the program began."""


@dataclass(frozen=True, slots=True)
class Allocations:
    """The allocations of a recording, in time order.

    `events` has a row for each change: `device` (such as `cuda:0`), `time_ns` (null: before the
    recording), `change` (`allocated`, `freed`, `preexisting`, `recategorized`: the same memory
    changed its category; `reserved`: the allocator took or returned a segment), `n_bytes` (negative
    if memory shrinks), `allocated_bytes` and `reserved_bytes` after it (null if not recorded),
    `address`, `category`, `operator` and `function` (running at that time), `inside` (the innermost
    running event, for `Trace.stack_of`), `event` (row in `Trace.events`). `blocks` has the blocks
    of a snapshot's segments: `device`, `n_bytes`, `is_free`, `function`.
    """

    source: Literal["trace", "timeline", "snapshot", "profile"]
    events: pl.DataFrame
    blocks: pl.DataFrame
    n_damaged: int = 0
    """Number of changes, segments and blocks left out because they differ from torch's format."""
    peak_stacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Functions of the program in which a snapshot reached its peak, innermost first, by device."""
    is_relative: bool = False
    """Whether the file has no totals, so that memory is relative to the start of the recording."""
    pools: Mapping[str, Pool] = field(default_factory=dict)
    """Capacity of the allocators, by device, if recorded."""

    @classmethod
    def of_rows(
        cls,
        source: Literal["profile"],
        rows: list[dict[str, Any]],
        pools: Mapping[str, Pool] | None = None,
    ) -> Allocations:
        """Create allocations from changes in time order; values missing in a row are null."""
        return cls(source, _frame(rows), _blocks([]), pools=pools or {})


def is_memory_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a memory timeline or snapshot, not a trace, judged by its first bytes."""
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
        A `memory_timeline.raw.json.gz`, or `torch.cuda.memory._snapshot()` written with
        `json.dump`.

    Raises
    ------
    TraceError
        The file is a pickle, a pipe, or neither of the two, or holds more than `MAX_CHANGES`.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    if is_pipe(path):
        message = "a memory timeline or snapshot must be a file, not a pipe"
        raise _error(path, "not_a_memory_file", message, "write it to a file first")
    if first_bytes(path, _HEAD).startswith(_PICKLE):
        message = "the file is a pickle, which can run code when it is opened; it is not read"
        raise _error(path, "pickle", message, _SNAPSHOT_HINT)
    parts: _Timeline | _Snapshot = _Snapshot() if _is_object(path) else _Timeline()
    try:
        _fill(parts, path)
    except JsonLimitError as error:
        raise _error(path, "limit_reached", f"the file is not read: {error}") from error
    except ValueError as error:
        raise _error(path, "not_json", "the file is not valid JSON") from error
    if not parts.is_sound:
        message = "the file is neither a raw memory timeline nor a memory snapshot"
        raise _error(path, "not_a_memory_file", message, _FILE_HINT)
    return parts.allocations()


def _fill(parts: _Timeline | _Snapshot, path: Path) -> None:
    for place, value in json_elements(path, parts.depths):
        parts.add(place, value)
        if parts.n_damaged > _MOST_DAMAGED:
            message = f"more than {_MOST_DAMAGED:,} of its changes or blocks are damaged"
            raise JsonLimitError(message)


def _is_object(path: Path) -> bool:
    return first_bytes(path, _HEAD).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


@kept
def trace_allocations(trace: Trace) -> Allocations:
    """Return the `[memory]` instants of a trace; empty without `profile_memory=True`.

    Those of 2021 have no category, no address and no total, which is then summed from the start.
    """
    import polars as pl

    columns = {
        "n_bytes": "Bytes",
        "allocated_bytes": "Total Allocated",
        "reserved_bytes": "Total Reserved",
        "address": "Addr",
        "type": "Device Type",
        "number": "Device Id",
    }
    tables = [trace.args(category, [*columns.values()]) for category in _CATEGORIES_OF_INSTANTS]
    known = [
        table.select(
            "event", *(argument(table, key, pl.Int64).alias(name) for name, key in columns.items())
        )
        for table in tables
        if table is not None and "Bytes" in table.columns
    ]
    if not known:
        return Allocations("trace", _frame([]), _blocks([]))
    rows = pl.concat(known).filter(pl.col("n_bytes").is_between(-_TOO_LARGE, _TOO_LARGE))
    placed = rows.hstack(trace.events.select("lane", "name", time_ns="start_ns")[rows["event"]])
    placed = placed.filter(pl.col("name").cast(pl.String) == "[memory]").drop("name")
    joined = placed.with_columns(device=_device()).sort("time_ns", "event")
    is_relative = joined["allocated_bytes"].null_count() == joined.height > 0
    if is_relative:
        # Floats do not overflow; sums that they do not hold exactly are beyond any device.
        total = pl.col("n_bytes").cast(pl.Float64).cum_sum().over("device")
        joined = joined.with_columns(allocated_bytes=total.cast(pl.Int64, strict=False))
    joined = joined.filter(pl.col("allocated_bytes").is_between(-_TOO_LARGE, _TOO_LARGE))
    owned = joined.hstack(_owners(trace, joined))
    # CPU allocators do not reserve memory and write 0.
    reserved = pl.when(pl.col("reserved_bytes") > 0).then(pl.col("reserved_bytes"))
    events = owned.with_columns(
        reserved_bytes=reserved,
        category=pl.lit(None, pl.String),
        change=pl.when(pl.col("n_bytes") > 0).then(pl.lit("allocated")).otherwise(pl.lit("freed")),
    ).select(*_schema())
    return Allocations("trace", events, _blocks([]), is_relative=is_relative)


def _device() -> pl.Expr:
    import polars as pl

    kind = pl.col("type").replace_strict(
        _DEVICE_TYPES, default=pl.format("device type {}", "type"), return_dtype=pl.String
    )
    number = pl.when(pl.col("number") >= 0).then(pl.format(":{}", "number")).otherwise(pl.lit(""))
    return pl.concat_str(kind, number)


def _owners(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Find the innermost event, operator and function around each point in time of a thread."""
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
    """Return the name of the innermost of the given events around each event."""
    import polars as pl

    # The number of an event is its row in `events`.
    return trace.events["name"].gather(around(trace, events, among, "innermost")).cast(pl.String)


class _Rows:
    """Rows stored as frames, since Python objects take five times the memory."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []
        self._n_rows = 0

    def add(self, row: dict[str, Any]) -> None:
        """Add a row; missing values are null.

        Raises
        ------
        JsonLimitError
            The file has more rows than `MAX_CHANGES`.
        """
        self._n_rows += 1
        if self._n_rows > MAX_CHANGES:
            message = f"it holds more than {MAX_CHANGES:,} changes of memory or blocks"
            raise JsonLimitError(message)
        self._rows.append(row)
        if len(self._rows) >= _BATCH:
            self._seal()

    def _seal(self) -> None:
        import polars as pl

        self._frames.append(pl.DataFrame(self._rows, schema=self._schema))
        self._rows = []

    def frame(self) -> pl.DataFrame:
        """Return all rows as a frame."""
        import polars as pl

        self._seal()
        return pl.concat(self._frames, rechunk=True)


class _Timeline:
    """A raw memory timeline: changes of one device as `[time, action, bytes, category]`."""

    depths: Mapping[str, int] = {}

    def __init__(self) -> None:
        self._rows = _Rows(_schema())
        self._allocated = 0
        self._n_sound = self.n_damaged = 0

    @property
    def is_sound(self) -> bool:
        """Whether at least one change has torch's format, or there are none."""
        return self._n_sound > 0 or self.n_damaged == 0

    def add(self, place: tuple[str | int, ...], change: Any) -> None:
        """Add a change, or count it as damaged if it has another format."""
        row = self._row(change) if place else None
        if row is None:
            self.n_damaged += 1
        else:
            self._n_sound += 1
            self._rows.add(row)

    def _row(self, change: Any) -> dict[str, Any] | None:
        if not isinstance(change, list) or len(change) != _N_FIELDS:
            return None
        if not all(map(_is_integer, change)):
            return None
        time_ns, action, n_bytes, category = change
        allocated = self._allocated + n_bytes
        is_known = action in _CHANGES and 0 <= category < len(_CATEGORIES)
        if not is_known or not _is_integer(allocated):
            return None
        self._allocated = allocated
        return {
            "device": "device",
            "time_ns": None if time_ns == _BEFORE else time_ns,
            "change": _CHANGES[action],
            "n_bytes": n_bytes,
            "allocated_bytes": allocated,
            "category": _CATEGORIES[category],
        }

    def allocations(self) -> Allocations:
        """Return the allocations read."""
        return Allocations("timeline", self._rows.frame(), _blocks([]), self.n_damaged)


class _Snapshot:
    """A snapshot of torch's caching allocator: segments with blocks, and the events before it."""

    depths: Mapping[str, int] = {"segments": 1, "device_traces": 2}

    def __init__(self) -> None:
        self._n_sound = 0
        self._rows = _Rows(_schema())
        self._blocks = _Rows(_block_schema())
        # Memory allocated and reserved on each device at the end, and the changes by events.
        self._ends: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        self._sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        # Per device: the largest sum of changes, and the functions that ran when it was reached.
        self._peaks: dict[int, tuple[int, list[str]]] = {}
        self.n_damaged = 0

    @property
    def is_sound(self) -> bool:
        """Whether there are segments, and at least one has torch's format."""
        return self._n_sound > 0

    def add(self, place: tuple[str | int, ...], value: Any) -> None:
        """Add a segment or an event, or count it as damaged if it has another format."""
        match place:
            case ("segments", *rest):
                if rest:
                    self._add_segment(value if isinstance(value, dict) else {})
                else:
                    self._n_sound += value == []
            case ("device_traces", int(device), int()):
                self._add_event(device, value if isinstance(value, dict) else {})
            case _:
                pass

    def _add_segment(self, segment: dict[str, Any]) -> None:
        device: Any = segment.get("device", 0)
        size: Any = segment.get("total_size")
        blocks = segment.get("blocks")
        if not _is_device(device) or not _is_size(size) or not isinstance(blocks, list):
            self.n_damaged += 1
            return
        self._n_sound += 1
        self._ends[device][1] += size
        for block in blocks:
            is_sound = isinstance(block, dict) and _is_size(block.get("size"))
            if not is_sound or not isinstance(block.get("state"), str):
                self.n_damaged += 1
                continue
            is_free = block["state"] == "inactive"
            self._ends[device][0] += 0 if is_free else block["size"]
            function = _line(block.get("frames"))
            row = {"device": f"cuda:{device}", "n_bytes": block["size"], "is_free": is_free}
            self._blocks.add({**row, "function": function})

    def _add_event(self, device: int, event: dict[str, Any]) -> None:
        action: Any = event.get("action")
        size: Any = event.get("size", 0)
        time_us, address = event.get("time_us", 0), event.get("addr", 0)
        is_sound = isinstance(action, str) and _is_size(size) and _is_integer(address)
        if not is_sound or not _is_integer(time_us) or not _is_integer(time_us * 1000):
            self.n_damaged += 1
            return
        use, growth = _USES.get(action, 0) * size, _GROWS.get(action, 0) * size
        sums = self._sums[device]
        if not (use or growth) or not all(map(_is_integer, (sums[0] + use, sums[1] + growth))):
            self.n_damaged += bool(use or growth)
            return
        sums[0] += use
        sums[1] += growth
        if use > 0 and sums[0] > self._peaks.get(device, (0, []))[0]:
            self._peaks[device] = (sums[0], _own_lines(event.get("frames")))
        self._rows.add(
            {
                "device": f"cuda:{device}",
                "time_ns": time_us * 1000,
                "change": _change(use),
                "n_bytes": use,
                "allocated_bytes": sums[0],
                "reserved_bytes": sums[1],
                "address": address if use else None,
                "function": _line(event.get("frames")),
            }
        )

    def allocations(self) -> Allocations:
        """Return the allocations read, as of the end of the snapshot."""
        import polars as pl

        rows = []
        for device, sums in self._sums.items():
            starts = [end - total for end, total in zip(self._ends[device], sums, strict=True)]
            is_known = all(map(_is_start, starts))
            self.n_damaged += not is_known
            rows.append((f"cuda:{device}", *(starts if is_known else (0, 0))))
        start = pl.DataFrame(
            rows, schema={"device": pl.String, "used": pl.Int64, "held": pl.Int64}, orient="row"
        )
        events = self._rows.frame().join(start, on="device", how="left", maintain_order="left")
        moved = events.with_columns(
            pl.col("allocated_bytes") + pl.col("used"), pl.col("reserved_bytes") + pl.col("held")
        ).select(*_schema())
        stacks = {f"cuda:{device}": stack for device, (_, stack) in self._peaks.items()}
        return Allocations("snapshot", moved, self._blocks.frame(), self.n_damaged, stacks)


def _is_integer(value: object) -> TypeGuard[int]:
    return type(value) is int and abs(value) < _TOO_LARGE


def _is_size(value: object) -> TypeGuard[int]:
    return _is_integer(value) and value >= 0


def _is_device(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_CHANGES


def _is_start(n_bytes: int) -> bool:
    return abs(n_bytes) < _TOO_LARGE


def _change(use: int) -> str:
    if not use:
        return "reserved"
    return "allocated" if use > 0 else "freed"


def _line(frames: object) -> str | None:
    """Return the innermost frame of the user's program, or else the innermost frame."""
    lines = _lines(frames)
    own = filter(_is_own_line, lines)
    line = next(own, lines[0] if lines else None)
    return None if line is None else line[:_LONGEST_LINE]


def _own_lines(frames: object) -> list[str]:
    """Return the innermost frames of the user's program."""
    return [line[:_LONGEST_LINE] for line in _lines(frames) if _is_own_line(line)][:_MOST_FRAMES]


def _is_own_line(line: str) -> bool:
    return ".py(" in line and is_own_frame(line)


def _lines(frames: object) -> list[str]:
    return [
        f"{frame.get('filename', '?')}({frame.get('line', 0)}): {frame.get('name', '?')}"
        for frame in (frames if isinstance(frames, list) else ())
        if isinstance(frame, dict)
    ]


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

    return pl.DataFrame(rows, schema=_block_schema())


def _block_schema() -> dict[str, Any]:
    import polars as pl

    return {
        "device": pl.String,
        "n_bytes": pl.Int64,
        "is_free": pl.Boolean,
        "function": pl.String,
    }


def _error(path: Path, code: str, message: str, hint: str | None = None) -> TraceError:
    error = TraceError(f"{path}: {message}")
    error.code, error.offset, error.hint, error.path = code, 0, hint, str(path)
    return error
