"""Table `memory`: peak memory and its contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, overload

import polars as pl

from longpole.files.damage import record_hint
from longpole.report.blocks import (
    Column,
    Notes,
    Sentence,
    Table,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.tables.catalogue import MOST_ROWS, ask_by, table, view
from longpole.tables.memory_churn import ChurnRow, memory_churn
from longpole.tables.memory_curve import allocations_of, memory_curve, start_of
from longpole.trace.allocations import Allocations, Pool
from longpole.words.data import HIDDEN, Data, Row
from longpole.words.wording import count, duration, memory_size, share, short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.engine.windows import Window
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_NEGLIGIBLE: Final = 10_000
_OWNER: Final = ("operator", "function", "category")
_NOTHING: Final = "The trace has no allocations"
_QUANTITIES: Final[Mapping[str, str]] = {
    "timeline": "A memory timeline counts the tensors that the profiler saw: of what was allocated "
    "before the recording, only those that were used in it. A trace or a snapshot counts all "
    "memory that the allocator has handed out.",
    "snapshot": "A snapshot records the sizes that were requested; a trace records those of the "
    "blocks that the allocator used, which may be larger.",
}
"""What the numbers of a recording count, if that differs from a trace."""
_RELATIVE: Final = (
    "The file has no totals, as PyTorch wrote it in 2021: memory counts from the start of the "
    "recording."
)
_OF_HOST: Final = "The times are those of the host's part of the step, before this window."
_NONE_IN: Final = (
    "No memory was allocated or freed in this window; --window all is the whole trace."
)
_ONLY_CPU: Final = "GPU memory is not in this trace: only allocations of the CPU are recorded."
_MANY: Final = 0.1
_RECORD_OWNERS: Final = (
    "To see who owns the memory from before the recording, call "
    "`torch.cuda.memory._record_memory_history()` before the model is built, and give a snapshot."
)
_OR: Final = ", or give a memory timeline or snapshot"


class DeviceMemory(Row):
    """The memory of one device."""

    device: str
    start_bytes: int
    """Bytes allocated before the first recorded change."""
    peak_bytes: int
    peak_time_ns: int | None
    """Time of the peak; null if before the recording."""
    peak_step: int | None
    """Step that contains the peak."""
    peak_operator: str | None
    """Operator that ran at the peak."""
    peak_function: str | None
    """Function of the program that ran at the peak."""
    peak_inside: int | None
    """Event that ran at the peak; `Trace.stack_of` gives its stack."""
    end_bytes: int
    peak_reserved_bytes: int | None
    unused_bytes: int | None
    """Bytes reserved but not allocated at the peak of allocated memory."""
    fragmentation: float | None
    """Unused fraction of the memory reserved at that time; null if not recorded."""
    n_allocations: int
    churn_bytes: int
    """Sum of all allocations."""


class Owner(Row):
    """An owner of memory at the peak."""

    operator: str | None
    function: str | None
    category: str | None
    inside: int | None
    """Event that ran when the largest block was allocated; `Trace.stack_of` gives its stack."""
    n_blocks: int | None
    n_bytes: int
    known: bool
    """Whether its allocation was recorded; otherwise it is the remainder of the peak."""
    device: str
    share_of_peak: float | None


class FreeBlocks(Row):
    """Reserved and free memory in a snapshot."""

    device: str
    n_free: int
    free_bytes: int
    largest_free_bytes: int


@dataclass(frozen=True, slots=True)
class Memory(Data):
    """The memory of each device in a window, and its contents at the peak."""

    devices: Annotated[pl.DataFrame, DeviceMemory]
    at_peak: Annotated[pl.DataFrame, Owner]
    churn: Annotated[pl.DataFrame, ChurnRow]
    free_blocks: Annotated[pl.DataFrame, FreeBlocks]
    top: int = field(metadata=HIDDEN)
    source: str = field(default="trace", metadata=HIDDEN)
    """Kind of recording that was read, as in `Allocations.source`."""
    start_ns: int | None = field(default=None, metadata=HIDDEN)
    """Start of the recording."""
    peak_stacks: Mapping[str, Sequence[str]] = field(default_factory=dict, metadata=HIDDEN)
    is_filtered: bool = field(default=False, metadata=HIDDEN)
    """Whether only some changes count."""
    notes: Sequence[str] = field(default=(), metadata=HIDDEN)
    """What the figures leave out."""
    hint: str = field(default=f"{_NOTHING}.", metadata=HIDDEN)
    """Reason why there may be no data."""
    n_damaged: int = 0
    """Number of damaged changes and blocks in a memory file, which are left out."""

    def records(self) -> list[Record]:
        """Return a row for each device."""
        return self.devices.to_dicts()

    def blocks(self) -> list[Block]:
        """Show the peaks, their contents, and the operators that allocate most."""
        damaged: list[Block] = [Sentence(self._damage())] if self.n_damaged else []
        if self.devices.is_empty():
            return [Sentence(self.hint), *damaged]
        most = self.devices["peak_bytes"].max()
        is_small = pl.col("peak_bytes") * _NEGLIGIBLE < most
        shown = self.devices.filter(~is_small)
        named = pl.col("device").is_in(shown["device"].implode())
        churn = self.churn.filter(named & (pl.col("n_allocations") > 0))
        at_peak = self.at_peak.filter(named)
        blocks: list[Block] = [
            *damaged,
            *(Sentence(self._peak(row)) for row in shown.iter_rows(named=True)),
            *map(Sentence, self.notes),
            *([Sentence(_RECORD_OWNERS)] if self._lacks_owners(at_peak) else []),
            *([Sentence(_QUANTITIES[self.source])] if self.source in _QUANTITIES else []),
            _devices(shown),
            _owners("allocated at the peak by", at_peak, "n_blocks", "n_bytes", self.top),
            _owners("allocations of", churn, "n_allocations", "allocated_bytes", self.top),
        ]
        free = [_free_words(row) for row in self.free_blocks.iter_rows(named=True)]
        small = [
            f"Not shown: {row['device']}, at most {memory_size(row['peak_bytes'])}."
            for row in self.devices.filter(is_small).iter_rows(named=True)
        ]
        return [*blocks, *([Notes([*free, *small])] if free or small else [])]

    def _peak(self, row: dict[str, Any]) -> str:
        """Return the peak of a device, its time, and what ran then."""
        told = [f"{memory_size(row['peak_bytes'])} allocated", *self._when(row)]
        peak = "at the matching changes, at most" if self.is_filtered else "peak of"
        of_before = self.at_peak.filter(~pl.col("known"), device=row["device"])
        before = int(of_before["n_bytes"].sum())
        rest = f" {memory_size(before)} of it dates from before the recording." if before else ""
        return f"{row['device']}: {peak} {', '.join(told)}.{rest}"

    def _lacks_owners(self, at_peak: pl.DataFrame) -> bool:
        """Whether much of a peak has no owner, and a snapshot could contain it."""
        of_before = at_peak.filter(~pl.col("known") & pl.col("device").str.starts_with("cuda"))
        return bool((of_before["share_of_peak"] > _MANY).any())

    def _when(self, row: dict[str, Any]) -> Iterator[str]:
        """Yield the time of the peak and what ran then, as far as they are known."""
        time_ns = row["peak_time_ns"]
        if time_ns is None:
            yield "before the recording"
        elif self.start_ns is not None:
            yield f"{duration(time_ns - self.start_ns)} after the start of the recording"
        if row["peak_step"] is not None:
            yield f"in step {row['peak_step']}"
        if row["peak_operator"] is not None:
            yield f"during {short_name(row['peak_operator'])}"
        stack = self.peak_stacks.get(row["device"], ())
        functions = stack or [it for it in (row["peak_function"],) if it is not None]
        if functions:
            yield f"in {', called by '.join(map(short_name, functions))}"
        if row["peak_inside"] is not None:
            yield f"event {row['peak_inside']}"

    def _damage(self) -> str:
        parts = count(self.n_damaged, "change, segment or block", "changes, segments or blocks")
        return f"The file is damaged: {parts} left out, and sums may be wrong."


@view(Memory, needs_arguments=True, is_of_host=True)
def _by_peak(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    top: int = MOST_ROWS,
) -> Memory:
    log = allocations_of(recording)
    curve = memory_curve(log, window, where=where)
    on_host = _on_host(recording, window) if curve.is_empty() else None
    if on_host is not None:
        window, curve = on_host, memory_curve(log, on_host, where=where)
    devices = _peaks(curve)
    owners = [
        _at_peak(log.events.filter(device=row["device"]), row)
        for row in devices.iter_rows(named=True)
    ]
    at_peak = pl.concat(owners) if owners else pl.DataFrame()
    churn = memory_churn(log, window, where=where)
    devices = _with_step(devices.drop("peak_row"), recording)
    if on_host is not None:
        devices = devices.with_columns(peak_step=pl.lit(on_host.step, pl.Int64))
    found = Memory(
        devices,
        at_peak,
        churn,
        _free(log.blocks),
        top,
        log.source,
        start_of(recording),
        is_filtered=where is not None,
    )
    if isinstance(recording, Allocations):
        return replace(
            found,
            peak_stacks=recording.peak_stacks if where is None else {},
            n_damaged=recording.n_damaged,
        )
    notes = [*_notes(recording, log, devices), *([_OF_HOST] if on_host else [])]
    none_recorded = record_hint(recording, _NOTHING, "allocations", _OR)
    return replace(found, hint=none_recorded if log.events.is_empty() else _NONE_IN, notes=notes)


def _on_host(recording: Trace | Allocations, window: Window | None) -> Window | None:
    """Return the host's part of a step whose GPU work runs later; None for other windows."""
    if isinstance(recording, Allocations) or window is None or window.step is None:
        return None
    rows = recording.steps.filter(pl.col("step") == window.step).to_dicts()
    if len(rows) != 1 or rows[0]["duration_ns"] is None:
        return None
    start_ns = rows[0]["start_ns"]
    return replace(window, start_ns=start_ns, end_ns=start_ns + rows[0]["duration_ns"])


def _notes(trace: Trace, log: Allocations, devices: pl.DataFrame) -> Iterator[str]:
    """Yield what the figures of a trace leave out."""
    if log.is_relative:
        yield _RELATIVE
    most = devices["peak_bytes"].max()
    for name, peak_bytes in devices.select("device", "peak_bytes").iter_rows():
        pool = log.pools.get(name)
        if pool is not None and peak_bytes * _NEGLIGIBLE >= most:
            yield _pool(name, peak_bytes, pool)
    is_cpu_alone = devices.height > 0 and devices["device"].str.starts_with("cpu").all()
    if is_cpu_alone and trace.warning_counts["device_work"]:
        yield _ONLY_CPU


def _pool(name: str, peak_bytes: int, pool: Pool) -> str:
    """Return the capacity of an allocator as a sentence."""
    parts = f"{share(peak_bytes / pool.capacity_bytes)} of" if pool.capacity_bytes else ""
    before = pool.most_bytes or 0
    earlier = f" Before the recording it held up to {memory_size(before)}."
    free = pool.fragmentation
    split = "" if free is None else f", {share(free)} of the free memory is fragmented"
    return (
        f"The peak is {parts} the {memory_size(pool.capacity_bytes)} that {name} manages{split}."
        f"{earlier if before > peak_bytes else ''}"
    )


_BY: Final[Mapping[str, Callable[..., Memory | pl.DataFrame]]] = {
    "peak": _by_peak,
    "time": memory_curve,
    "operator": memory_churn,
}


@overload
def memory(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    by: Literal["peak"] = "peak",
    where: pl.Expr | str | None = None,
    top: int | None = None,
) -> Memory: ...
@overload
def memory(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    by: Literal["time", "operator"],
    where: pl.Expr | str | None = None,
    top: None = None,
) -> pl.DataFrame: ...
@table(by=_BY)
def memory(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    by: Literal["peak", "time", "operator"] = "peak",
    where: pl.Expr | str | None = None,
    top: int | None = None,
) -> Memory | pl.DataFrame:
    """Report peak memory, its contents, and the operators that allocate most.

    Memory counts as live at the peak if it was allocated before it and freed after it, at the same
    address. Memory allocated before the recording began has no owner and is the remainder.

    Parameters
    ----------
    recording
        A trace with `profile_memory=True`, one of an Ascend profile with its memory files or
        tables, or the result of `longpole.read_memory`.
    window
        Where to search for the peak, or only changes in this window; by default the whole
        recording.
    by
        `"peak"` has a row for each device and for each owner of memory at its peak, `"time"` one
        for each change of the memory of a device, `"operator"` one for each device, operator,
        function and category, with the sums of what it allocated and freed.
    where
        Changes to count: a polars expression or an SQL condition on the columns of
        `by="time"`, such as `device = 'cuda:0'`.
    top
        Number of owners to show, for `by="peak"`; the rows contain all.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> size = {"Bytes": 8, "Total Allocated": 8, "Device Type": 0, "Device Id": -1}
    >>> event = {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "ts": 1}
    >>> trace = TraceBuilder().event(**event, pid=1, tid=1, args=size).read()
    >>> memory(trace).devices.select("device", "peak_bytes").row(0)
    ('cpu', 8)
    >>> memory(trace, by="time").select("device", "n_bytes", "allocated_bytes").row(0)
    ('cpu', 8, 8)
    """
    return ask_by(_BY, by, recording, window, where=where, top=top)


def _with_step(devices: pl.DataFrame, recording: Trace | Allocations) -> pl.DataFrame:
    """Add the step of each peak."""
    steps = pl.DataFrame() if isinstance(recording, Allocations) else recording.steps
    numbers = [
        None
        if time_ns is None or steps.is_empty()
        else steps.filter(pl.col("window_start_ns") <= time_ns, pl.col("window_end_ns") > time_ns)[
            "step"
        ].first()
        for time_ns in devices["peak_time_ns"]
    ]
    return devices.with_columns(peak_step=pl.Series(numbers, dtype=pl.Int64))


def _peaks(curve: pl.DataFrame) -> pl.DataFrame:
    """Find the peak of each device: the first time of maximum allocated memory."""
    allocated, reserved = pl.col("allocated_bytes"), pl.col("reserved_bytes")
    of_before = allocated.filter(pl.col("time_ns").is_null())
    at_peak = reserved.get(allocated.arg_max())
    unused = (reserved - allocated).get(allocated.arg_max())
    grown = pl.col("n_bytes").filter(pl.col("change") == "allocated")
    return (
        curve.group_by("device", maintain_order=True)
        .agg(
            start_bytes=pl.coalesce(of_before.last(), (allocated - pl.col("n_bytes")).first()),
            peak_bytes=allocated.max(),
            peak_time_ns=pl.col("time_ns").get(allocated.arg_max()),
            peak_operator=pl.col("operator").get(allocated.arg_max()),
            peak_function=pl.col("function").get(allocated.arg_max()),
            peak_inside=pl.col("inside").get(allocated.arg_max()),
            end_bytes=allocated.last(),
            peak_reserved_bytes=reserved.max(),
            unused_bytes=unused,
            fragmentation=pl.when(at_peak > 0).then(unused / at_peak),
            n_allocations=grown.len().cast(pl.Int64),
            churn_bytes=grown.sum(),
            peak_row=allocated.arg_max(),
        )
        .sort("device")
    )


def _at_peak(events: pl.DataFrame, peak: dict[str, Any]) -> pl.DataFrame:
    """List the memory allocated up to the peak and not freed by then, by owner."""
    largest = _live_at(events, peak).sort(-pl.col("n_bytes"), "order")
    owners = largest.group_by(_OWNER, maintain_order=True).agg(
        inside=pl.col("inside").first(),
        n_blocks=pl.when(~pl.col("count").has_nulls()).then(pl.col("count").sum()),
        n_bytes=pl.col("n_bytes").sum(),
    )
    rest = peak["peak_bytes"] - int(owners["n_bytes"].sum())
    known = owners.with_columns(known=pl.lit(True))  # noqa: FBT003 - a value of a column
    missing = pl.DataFrame({"n_bytes": [rest] if rest else [], "known": [False] if rest else []})
    share_of_peak = pl.col("n_bytes") / peak["peak_bytes"] if peak["peak_bytes"] else None
    return (
        pl.concat([known, missing.cast({"n_bytes": pl.Int64, "known": pl.Boolean})], how="diagonal")
        .filter(pl.col("n_bytes") != 0)
        .sort(~pl.col("known"), -pl.col("n_bytes"), *_OWNER, nulls_last=True)
        .select(
            *_OWNER,
            "inside",
            "n_blocks",
            "n_bytes",
            "known",
            device=pl.lit(peak["device"]),
            share_of_peak=(pl.lit(None, pl.Float64) if share_of_peak is None else share_of_peak),
        )
    )


def _live_at(events: pl.DataFrame, peak: dict[str, Any]) -> pl.DataFrame:
    """Return the allocations not yet freed when memory first reached its peak."""
    ordered = events.with_row_index("order")
    at = ordered.filter(
        pl.col("time_ns").eq_missing(peak["peak_time_ns"]),
        pl.col("allocated_bytes") == peak["peak_bytes"],
    )["order"].min()
    before = ordered.filter(pl.col("order") <= at)
    has_addresses = before["address"].null_count() < before.height
    return _unfreed(before) if has_addresses else _balance(before)


def _unfreed(before: pl.DataFrame) -> pl.DataFrame:
    """Return the last change at each address if it was not a free."""
    last = (
        before.filter(pl.col("address").is_not_null())
        .group_by("address", maintain_order=True)
        .last()
    )
    return last.filter(pl.col("n_bytes") > 0).with_columns(count=pl.lit(1, pl.Int64))


def _balance(before: pl.DataFrame) -> pl.DataFrame:
    """Without addresses: allocated minus freed memory of each category."""
    return before.with_columns(count=pl.lit(None, pl.Int64))


def _free(blocks: pl.DataFrame) -> pl.DataFrame:
    """Measure the free memory in the segments of a snapshot."""
    free = blocks.filter("is_free")
    return (
        free.group_by("device")
        .agg(
            n_free=pl.len().cast(pl.Int64),
            free_bytes=pl.col("n_bytes").sum(),
            largest_free_bytes=pl.col("n_bytes").max(),
        )
        .sort("device")
    )


def _free_words(row: dict[str, Any]) -> str:
    free, largest = (memory_size(row[name]) for name in ("free_bytes", "largest_free_bytes"))
    blocks = count(row["n_free"], "block")
    return f"{row['device']}: {free} reserved and free in {blocks}, the largest {largest}."


def _devices(devices: pl.DataFrame) -> Table:
    columns: dict[Column, Value] = {
        Column("device"): "device",
        Column("peak", "number"): _size("peak_bytes"),
        Column("at the start", "number"): _size("start_bytes"),
        Column("at the end", "number"): _size("end_bytes"),
        Column("peak reserved", "number"): _size("peak_reserved_bytes"),
        Column("unused at the peak", "number"): _size("unused_bytes"),
        Column("fragmentation", "share"): "fragmentation",
        Column("allocations", "count"): "n_allocations",
        Column("allocated in all", "number"): _size("churn_bytes"),
    }
    return without_empty_columns(tabulated(devices.iter_rows(named=True), columns))


def _owners(title: str, rows: pl.DataFrame, counted: str, n_bytes: str, top: int) -> Table:
    totals = dict(rows.group_by("device").agg(pl.col(n_bytes).sum()).iter_rows())
    has_owners = rows["operator"].count() + rows["category"].count() > 0
    columns: dict[Column, Value] = {
        Column(title, "name"): _owner if has_owners else _function,
        Column("device"): (lambda row: row["device"] if len(totals) > 1 else None),
        Column("Python function", "name"): (lambda row: row["function"] if has_owners else None),
        Column("blocks" if counted == "n_blocks" else "count", "count"): counted,
        Column("size", "number"): _size(n_bytes),
        Column("of total", "share"): lambda row: (
            row[n_bytes] / totals[row["device"]] if totals[row["device"]] else None
        ),
    }
    largest = rows.sort(n_bytes, descending=True, maintain_order=True).head(top)
    return without_empty_columns(tabulated(largest.iter_rows(named=True), columns))


def _owner(row: dict[str, Any]) -> str:
    if not row.get("known", True):
        return "(before the recording)"
    return row["operator"] or row["category"] or "(outside operators)"


def _function(row: dict[str, Any]) -> str:
    if not row.get("known", True):
        return "(before the recording)"
    return row["function"] or "(no Python function)"


def _size(name: str) -> Callable[[dict[str, Any]], str | None]:
    return lambda row: None if row[name] is None else memory_size(row[name])
