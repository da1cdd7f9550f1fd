"""The devices of a machine, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.report.blocks import Column, Table
from longpole.report.document import Document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.devices import Device, Found, Provider
    from longpole.report.blocks import Cell

__all__ = ["devices_answer"]

_COLUMNS: Final = (
    Column("number", "number"),
    Column("uuid"),
    Column("name", "name"),
    Column("arch"),
    Column("memory", "number"),
    Column("clock", "number"),
    Column("temperature", "number"),
    Column("power", "number"),
    Column("in use", "share"),
    Column("state"),
)
_RECORD: Final = (
    "number",
    "uuid",
    "vendor",
    "name",
    "pci",
    "arch",
    "driver",
    "memory_bytes",
    "memory_used_bytes",
    "clock_mhz",
    "clock_max_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "utilisation_share",
    "ecc_errors",
    "state",
    "reason",
    "held_by",
)


def devices_answer(found: Found) -> Answer:
    """Say how each device is, and who uses it."""
    rows = [_row(number, *item) for number, item in enumerate(found.items())]
    document = Document(
        schema="longpole.devices/1",
        input={},
        data={"devices": rows},
        blocks=lambda: [Table(_COLUMNS, [_cells(row) for row in rows])],
        records=lambda: [{name: row.get(name) for name in _RECORD} for row in rows],
    )
    return document, exit_codes.OK


def _row(number: int, device: Device, provider: Provider | None) -> dict[str, Any]:
    from longpole.devices import DeviceLostError, Lease

    with Lease(device.uuid, parent=device.parent) as lease:
        row = {"number": number, **device.to_dict(), "held_by": lease.current_holder()}
    if provider is None:
        return {**row, "state": "unknown", "reason": None}
    try:
        reading = provider.read(device)
    except DeviceLostError as error:
        return {**row, "state": "lost", "reason": str(error)}
    state = "busy" if reading.busy else "free"
    return {**row, "state": state, "reason": reading.busy, **reading.to_dict()}


def _cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    used, memory = row.get("memory_used_bytes"), row.get("memory_bytes")
    return (
        row["number"],
        row["uuid"],
        row["name"],
        row["arch"],
        _amount(memory, "GiB", 1 << 30),
        _amount(row.get("clock_mhz"), "MHz"),
        _amount(row.get("temperature_c"), "°C"),
        _amount(row.get("power_w"), "W"),
        used / memory if used is not None and memory else None,
        _state(row),
    )


def _state(row: Mapping[str, Any]) -> str:
    notes: Sequence[str | None] = [
        row["reason"],
        f"leased to {row['held_by']}" if row["held_by"] else None,
        ", ".join(row.get("throttle_reasons", ())),
    ]
    return "; ".join([row["state"], *(note for note in notes if note)])


def _amount(value: float | None, unit: str, divisor: int = 1) -> str | None:
    return None if value is None else f"{value / divisor:,.0f} {unit}"
