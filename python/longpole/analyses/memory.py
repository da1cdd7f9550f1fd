"""Table `memory`: peak memory and its contents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import polars as pl

from longpole.allocations import Allocations
from longpole.analyses.catalogue import table
from longpole.analyses.memory_churn import ChurnRow, memory_churn
from longpole.analyses.memory_curve import allocations_of, memory_curve
from longpole.damage import record_hint
from longpole.data import HIDDEN, Data, Row
from longpole.report.blocks import Column, Sentence, Table, Value, tabulated
from longpole.wording import count, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["Memory", "memory"]

_MIB: Final = 1 << 20
_OWNER: Final = ("operator", "function", "category")
_NOTHING: Final = "The trace has no allocations"
_OR: Final = ", or give a memory timeline or snapshot"


class DeviceMemory(Row):
    """The memory of one device."""

    device: str
    start_bytes: int
    """Bytes allocated before the first recorded change."""
    peak_bytes: int
    peak_time_ns: int | None
    """Time of the peak; null if before the recording."""
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
    hint: str = field(default=f"{_NOTHING}.", metadata=HIDDEN)
    """Why there may be no data."""
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
        blocks: list[Block] = [*damaged, _devices(self.devices)]
        blocks.append(_owners("live at the peak", self.at_peak, "n_blocks", "n_bytes", self.top))
        churn = self.churn.filter(pl.col("n_allocations") > 0)
        blocks.append(_owners("allocated", churn, "n_allocations", "allocated_bytes", self.top))
        for row in self.free_blocks.iter_rows(named=True):
            free, largest = (
                number(row[name] / _MIB) for name in ("free_bytes", "largest_free_bytes")
            )
            blocks.append(
                Sentence(
                    f"{row['device']}: {free} MiB reserved and free in "
                    f"{count(row['n_free'], 'block')}, the largest {largest} MiB."
                )
            )
        return blocks

    def _damage(self) -> str:
        parts = count(self.n_damaged, "change, segment or block", "changes, segments or blocks")
        return f"The file is damaged: {parts} left out, and sums may be wrong."


@table(Memory, needs_arguments=True)
def memory(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    top: int = 20,
) -> Memory:
    """Report peak memory, its contents, and the operators that allocate most.

    Memory counts as live at the peak if it was allocated before it and freed after it, at the same
    address. Memory allocated before the recording began has no owner and is the remainder.

    Parameters
    ----------
    recording
        A trace with `profile_memory=True`, one of an Ascend profile with its memory files or
        tables, or the result of `longpole.read_memory`.
    window
        Where to search for the peak; by default the whole recording.
    where
        Changes to count: a polars expression or an SQL condition on the columns of `memory_curve`,
        such as `device = 'cuda:0'`.
    top
        Number of owners to show; the rows contain all.

    Raises
    ------
    ValueError
        The condition is invalid.
    """
    log = allocations_of(recording)
    curve = memory_curve(log, window, where=where)
    devices = _peaks(curve)
    owners = [
        _at_peak(log.events.filter(device=row["device"]), row)
        for row in devices.iter_rows(named=True)
    ]
    at_peak = pl.concat(owners) if owners else pl.DataFrame()
    churn = memory_churn(log, window, where=where)
    found = Memory(devices.drop("peak_row"), at_peak, churn, _free(log.blocks), top)
    if isinstance(recording, Allocations):
        return replace(found, n_damaged=recording.n_damaged)
    return replace(found, hint=record_hint(recording, _NOTHING, "allocations", _OR))


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


def _devices(devices: pl.DataFrame) -> Table:
    columns: dict[Column, Value] = {
        Column("device"): "device",
        Column("peak MiB", "number"): _mib("peak_bytes"),
        Column("at the start", "number"): _mib("start_bytes"),
        Column("at the end", "number"): _mib("end_bytes"),
        Column("peak reserved", "number"): _mib("peak_reserved_bytes"),
        Column("unused at the peak", "number"): _mib("unused_bytes"),
        Column("fragmentation", "share"): "fragmentation",
        Column("allocations", "count"): "n_allocations",
        Column("allocated in all", "number"): _mib("churn_bytes"),
    }
    return tabulated(devices.iter_rows(named=True), columns)


def _owners(title: str, rows: pl.DataFrame, counted: str, n_bytes: str, top: int) -> Table:
    totals = dict(rows.group_by("device").agg(pl.col(n_bytes).sum()).iter_rows())
    columns: dict[Column, Value] = {
        Column(f"{title}: device"): "device",
        Column("owner", "name"): _owner,
        Column("Python function", "name"): "function",
        Column("blocks", "count"): counted,
        Column("MiB", "number"): _mib(n_bytes),
        Column("of total", "share"): lambda row: (
            row[n_bytes] / totals[row["device"]] if totals[row["device"]] else None
        ),
    }
    largest = rows.sort(n_bytes, descending=True, maintain_order=True).head(top)
    return tabulated(largest.iter_rows(named=True), columns)


def _owner(row: dict[str, Any]) -> str:
    if not row.get("known", True):
        return "(allocated before the recording)"
    return row["operator"] or row["category"] or "(outside operators)"


def _mib(name: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda row: None if row[name] is None else row[name] / _MIB
