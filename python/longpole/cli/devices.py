"""`longpole devices`: list the devices of this machine, their state, and who uses them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.devices.protocol import Process, Vendor
from longpole.errors import DeviceError
from longpole.report.blocks import Column, Value, tabulated
from longpole.report.document import Document
from longpole.words.data import Row, names_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.cli.answer.emit import Answer
    from longpole.devices import Device, Found, Provider

_WATCH_S: Final = 2.0
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


@click.command()
@answers("longpole.cli.devices:Devices")
@click.argument("wanted", metavar="[LIST]", required=False)
@click.option("--watch", is_flag=True, help="Refresh every two seconds until Ctrl-C.")
@answer_options
def devices(*, wanted: str | None, watch: bool, options: Options) -> int:
    """List the devices of this machine, their state, and who uses them.

    LIST chooses devices as `--devices` of other commands does; `fake:2` is two simulated ones.
    Device numbers are those of this process, which depend on CUDA_VISIBLE_DEVICES and similar
    variables. Locks and records use the UUID. The exit code is 5 if the environment hides
    every device.

    \b
    Examples:
      longpole devices
      longpole devices 0,1
      longpole devices --watch --format jsonl
    """
    from longpole.devices import discover, select

    found = discover() if wanted is None else select(wanted.split(","))
    if not found:
        message = "the environment hides every device"
        raise DeviceError(message)
    exit_code = options.emit(_answer(found))
    while watch:
        time.sleep(_WATCH_S)
        if options.form == "text" and sys.stdout.isatty():
            sys.stdout.write(_CLEAR_SCREEN)
        exit_code = options.emit(_answer(found))
    return exit_code


class ListedDevice(Row):
    """A device, its state, and the readable values."""

    number: int
    """Number as seen by this process."""
    uuid: str
    """Identity of the device, used by locks and records."""
    vendor: Vendor
    token: str
    """Token that selects it in a variable such as `CUDA_VISIBLE_DEVICES`."""
    index: int
    """Number as seen by its driver."""
    name: str
    pci: str | None
    arch: str | None
    memory_bytes: int | None
    driver: str | None
    parent: str | None
    """The UUID of the device that an instance (MIG) is a part of."""
    held_by: str | None
    """Current holder of its lease."""
    state: Literal["free", "busy", "lost", "unknown"]
    reason: str | None
    """Reason why it is busy or lost."""
    clock_mhz: NotRequired[int]
    clock_max_mhz: NotRequired[int]
    memory_clock_mhz: NotRequired[int]
    temperature_c: NotRequired[float]
    power_w: NotRequired[float]
    utilisation_share: NotRequired[float]
    memory_used_bytes: NotRequired[int]
    throttle_reasons: NotRequired[Sequence[str]]
    """Reasons for a low clock."""
    ecc_errors: NotRequired[int]
    """Number of uncorrected memory errors."""
    processes: NotRequired[Sequence[Process]]
    """Programs with memory on it."""


class Devices(Row):
    """The devices of a machine."""

    devices: list[ListedDevice]


_LISTS: Final = {"throttle_reasons", "processes"}


_RECORD: Final = tuple(name for name in names_of(ListedDevice) if name not in _LISTS)


def _answer(found: Found) -> Answer:
    """Report the state of each device, and who uses it."""
    rows: list[Any] = [_row(number, *item) for number, item in enumerate(found.items())]
    document = Document(
        schema="longpole.devices/1",
        input={},
        data=Devices(devices=rows),
        blocks=lambda: [tabulated(rows, _COLUMNS)],
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


def _state(row: Mapping[str, Any]) -> str:
    notes: Sequence[str | None] = [
        row["reason"],
        f"leased to {row['held_by']}" if row["held_by"] else None,
        ", ".join(row.get("throttle_reasons", ())),
    ]
    return "; ".join([row["state"], *(note for note in notes if note)])


def _amount(value: float | None, unit: str, divisor: int = 1) -> str | None:
    return None if value is None else f"{value / divisor:,.0f} {unit}"


def _in_use(row: Mapping[str, Any]) -> float | None:
    used, memory = row.get("memory_used_bytes"), row.get("memory_bytes")
    return used / memory if used is not None and memory else None


_COLUMNS: Final[dict[Column, Value]] = {
    Column("number", "number"): "number",
    Column("uuid"): "uuid",
    Column("name", "name"): "name",
    Column("arch"): "arch",
    Column("memory", "number"): lambda row: _amount(row.get("memory_bytes"), "GiB", 1 << 30),
    Column("clock", "number"): lambda row: _amount(row.get("clock_mhz"), "MHz"),
    Column("temperature", "number"): lambda row: _amount(row.get("temperature_c"), "°C"),
    Column("power", "number"): lambda row: _amount(row.get("power_w"), "W"),
    Column("in use", "share"): _in_use,
    Column("state"): _state,
}
