"""`longpole devices`: which devices there are, how they are, and who uses them."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.failures import answer_failures, complain
from longpole.cli.listing import envelope, print_rows, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.cli.listing import Row
    from longpole.devices import Device, Found, Provider

__all__ = ["devices"]

SCHEMA: Final = "longpole.devices/1"
WATCH_S: Final = 2.0
CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch one line a look.")
@click.option("--watch", is_flag=True, help="Look again every two seconds until Ctrl-C.")
@click.option("--fake", type=int, metavar="N", help="List N devices that are not there.")
@answer_failures
def devices(*, as_json: bool, watch: bool, fake: int | None) -> int:
    r"""List the devices of this machine: how they are, and who uses them.

    Devices are numbered as this process counts them, by CUDA_VISIBLE_DEVICES and its
    like; locks and records go by the UUID. Clocks are read, never set. Exit code 5
    means that every device is hidden.

    \b
    Examples:
      longpole devices
      longpole devices --watch
    """
    from longpole.devices import discover, select

    found = discover() if fake is None else select([f"fake:{fake}"])
    if not found:
        return complain("missing", "the environment hides every device", exit_codes.MISSING)
    _show(found, as_json=as_json, watch=watch)
    while watch:
        time.sleep(WATCH_S)
        _show(found, as_json=as_json, watch=watch)
    return exit_codes.OK


def _show(found: Found, *, as_json: bool, watch: bool) -> None:
    rows = [_row(number, *item) for number, item in enumerate(found.items())]
    around = envelope(SCHEMA, [])
    if as_json and watch:
        sys.stdout.write(json.dumps({**around, "data": rows}) + "\n")
    else:
        if watch and sys.stdout.isatty():
            sys.stdout.write(CLEAR_SCREEN)
        print_rows(rows, COLUMNS, "json" if as_json else "text", around=around)
    sys.stdout.flush()


def _row(number: int, device: Device, provider: Provider | None) -> Row:
    from longpole.devices import DeviceLostError, Lease

    row = {"number": number, **device.to_dict()}
    with Lease(device.uuid) as lease:
        row["held_by"] = lease.current_holder()
    try:
        reading = provider.read(device) if provider else None
    except DeviceLostError as error:
        return {**row, "state": "lost", "reason": str(error)}
    if reading is None:
        return {**row, "state": "unknown"}
    state = "busy" if reading.busy else "free"
    return {**row, "state": state, "reason": reading.busy, **reading.to_dict()}


def _with_unit(unit: str, divisor: float = 1) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        return "-" if value is None else f"{value / divisor:.0f} {unit}"

    return write


def _percent(value: Any) -> str:
    return "-" if value is None else f"{value:.0%}"


COLUMNS: Final[Mapping[str, Callable[[Any], str]]] = {
    "number": printable,
    "uuid": printable,
    "name": printable,
    "arch": printable,
    "memory_bytes": _with_unit("GiB", 1 << 30),
    "clock_mhz": _with_unit("MHz"),
    "temperature_c": _with_unit("C"),
    "power_w": _with_unit("W"),
    "utilisation_share": _percent,
    "throttle_reasons": lambda value: ", ".join(value or ()) or "-",
    "state": printable,
    "held_by": printable,
}
