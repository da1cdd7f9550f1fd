"""How kernels were launched: blocks, registers, shared memory, and the resulting occupancy."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.devices.occupancy import occupancy, processor_of
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

_ARGUMENTS: Final = ("grid", "block", "registers per thread", "shared memory")
_SCHEMA: Final = {
    "event": pl.UInt32,
    **dict.fromkeys(("grid_blocks", "block_threads", "registers", "shared_bytes"), pl.Int64),
    **dict.fromkeys(("blocks_per_processor", "waves", "occupancy"), pl.Float64),
    "occupancy_limit": pl.String,
}
LAUNCH_COLUMNS: Final = tuple(_SCHEMA)[1:]


class LaunchShape(Row):
    """How the longest kernel was launched. Values that the trace lacks are null."""

    grid_blocks: int | None
    """Blocks of the longest kernel (on AMD: workgroups)."""
    block_threads: int | None
    """Threads of a block."""
    registers: int | None
    """Registers of a thread (on AMD: vector registers, with those for accumulation)."""
    shared_bytes: int | None
    """Shared memory of a block (on AMD: LDS)."""
    blocks_per_processor: float | None
    """Blocks divided by the multiprocessors (on AMD: compute units) of the device; below 1, some
    are idle."""
    waves: float | None
    """Blocks divided by those that are resident on the device at once. A last wave that is mostly
    empty costs as much as a full one."""
    occupancy: float | None
    """Theoretical occupancy: resident warps (on AMD: waves) as a share of the most that are
    possible."""
    occupancy_limit: str | None
    """What limits the occupancy: registers, shared memory or block size; null at 100 %."""


def launch_shapes(trace: Trace, events: pl.Series) -> pl.DataFrame:
    """Describe the launches of kernels: `event`, and the columns of `LaunchShape`."""
    arguments = _arguments(trace, events)
    devices = trace.events["device"].gather(events).to_list()
    rows = [
        _shape(trace.device_properties.get(device, {}), event, arguments.get(event, {}))
        for event, device in zip(events.to_list(), devices, strict=True)
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _arguments(trace: Trace, events: pl.Series) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    asked = pl.DataFrame({"event": events.unique()})
    for category in trace.categories:
        table = trace.args(category, _ARGUMENTS)
        if table is not None and "block" in table.columns:
            of_events = table.join(asked, on="event", how="semi")
            found |= {row["event"]: row for row in of_events.iter_rows(named=True)}
    return found


def _shape(
    properties: dict[str, Any], event: int, arguments: dict[str, Any]
) -> tuple[int | float | str | None, ...]:
    blocks, threads = (_product(arguments.get(name)) for name in ("grid", "block"))
    registers, shared_bytes = (
        value if type(value := arguments.get(name)) is int and value >= 0 else None
        for name in ("registers per thread", "shared memory")
    )
    n_processors = properties.get("numSms")
    if type(n_processors) is not int or n_processors < 1 or blocks is None:
        of_processor = None
    else:
        of_processor = blocks / n_processors
    processor = processor_of(properties)
    found = None
    if processor and None not in {threads, registers, shared_bytes}:
        found = occupancy(processor, threads or 0, registers or 0, shared_bytes or 0)
    waves = None if found is None or of_processor is None else of_processor / found.blocks
    theoretical = (None, None) if found is None else (found.share, found.limit)
    return event, blocks, threads, registers, shared_bytes, of_processor, waves, *theoretical


def _product(text: object) -> int | None:
    """Return the number of elements of a shape; None for other values.

    Examples
    --------
    >>> _product("[2, 3, 1]"), _product("[2]"), _product("[-1, 3, 1]"), _product("nan")
    (6, 2, None, None)
    """
    sizes = text
    if isinstance(text, str):
        with suppress(ValueError, RecursionError):
            sizes = json.loads(text)
    if not isinstance(sizes, list) or not all(type(it) is int and it > 0 for it in sizes):
        return None
    product = math.prod(sizes)
    return product if product < 1 << 63 else None
