"""`longpole devices`: which devices there are, how they are, and who uses them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.options import Options, shared_options
from longpole.cli.output import Document, emit, markdown_table
from longpole.cli.terminal import Column, Terminal
from longpole.errors import DeviceError
from longpole.wording import share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.devices import Device, Found, Provider

__all__ = ["devices"]

_SCHEMA: Final = "longpole.devices/1"
_WATCH_S: Final = 2.0
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"
_COLUMNS: Final = (
    Column(""),
    Column("uuid", "left"),
    Column("name", "left", has_names=True),
    Column("arch", "left"),
    Column("memory"),
    Column("clock"),
    Column("temperature"),
    Column("power"),
    Column("in use"),
    Column("state", "left"),
)
_PLAIN: Final = (
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


@click.command()
@click.option("--watch", is_flag=True, help="Look again every two seconds until Ctrl-C.")
@click.option("--fake", type=int, metavar="N", help="List N devices that are not there.")
@shared_options
def devices(*, watch: bool, fake: int | None, options: Options) -> int:
    """List the devices of this machine: how they are, and who uses them.

    Devices are numbered as this process counts them, by CUDA_VISIBLE_DEVICES and its
    like; locks and records go by the UUID. Clocks are read, never set. Exits with 5
    where the environment hides every device.

    \b
    Examples:
      longpole devices
      longpole devices --watch --format jsonl
    """
    from longpole.devices import discover, select

    found = discover() if fake is None else select([f"fake:{fake}"])
    if not found:
        message = "the environment hides every device"
        raise DeviceError(message)
    terminal = Terminal.of(sys.stdout, options.color)
    exit_code = emit([_document(found)], options.form, terminal)
    while watch:
        time.sleep(_WATCH_S)
        if options.form == "text" and sys.stdout.isatty():
            sys.stdout.write(_CLEAR_SCREEN)
        exit_code = emit([_document(found)], options.form, terminal)
    return exit_code


def _document(found: Found) -> Document:
    rows = [_row(number, *item) for number, item in enumerate(found.items())]
    titles = [column.title or "number" for column in _COLUMNS]
    sides = [column.align for column in _COLUMNS]
    cells = [_cells(row) for row in rows]
    return Document(
        schema=_SCHEMA,
        input={},
        data={"devices": rows},
        text=lambda terminal: "\n".join(terminal.table(_COLUMNS, cells, indent="")) + "\n",
        markdown=lambda: "\n".join(markdown_table(titles, cells, sides)) + "\n",
        records=lambda: [{name: row.get(name) for name in _PLAIN} for row in rows],
    )


def _row(number: int, device: Device, provider: Provider | None) -> dict[str, Any]:
    from longpole.devices import DeviceLostError, Lease

    with Lease(device.uuid) as lease:
        row = {"number": number, **device.to_dict(), "held_by": lease.current_holder()}
    if provider is None:
        return {**row, "state": "unknown", "reason": None}
    try:
        reading = provider.read(device)
    except DeviceLostError as error:
        return {**row, "state": "lost", "reason": str(error)}
    state = "busy" if reading.busy else "free"
    return {**row, "state": state, "reason": reading.busy, **reading.to_dict()}


def _cells(row: Mapping[str, Any]) -> list[str]:
    used, memory = row.get("memory_used_bytes"), row.get("memory_bytes")
    return [
        str(row["number"]),
        row["uuid"],
        row["name"],
        row["arch"] or "-",
        _amount(memory, "GiB", 1 << 30),
        _amount(row.get("clock_mhz"), "MHz"),
        _amount(row.get("temperature_c"), "°C"),
        _amount(row.get("power_w"), "W"),
        share(used / memory) if used is not None and memory else "-",
        _state(row),
    ]


def _state(row: Mapping[str, Any]) -> str:
    notes: Sequence[str | None] = [
        row["reason"],
        f"leased to {row['held_by']}" if row["held_by"] else None,
        ", ".join(row.get("throttle_reasons", ())),
    ]
    return "; ".join([row["state"], *(note for note in notes if note)])


def _amount(value: float | None, unit: str, divisor: int = 1) -> str:
    return "-" if value is None else f"{value / divisor:,.0f} {unit}"
