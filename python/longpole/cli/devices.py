"""`longpole devices`: list the devices of this machine, their state, and who uses them."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from longpole.cli.ask.numbers import MOST_DEVICES
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.errors import DeviceError

__all__ = ["devices"]

_WATCH_S: Final = 2.0
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


@click.command()
@answers("longpole.cli.answer.devices:Devices")
@click.option("--watch", is_flag=True, help="Refresh every two seconds until Ctrl-C.")
@click.option(
    "--fake", type=click.IntRange(1, MOST_DEVICES), metavar="N", help="List N simulated devices."
)
@shared_options
def devices(*, watch: bool, fake: int | None, options: Options) -> int:
    """List the devices of this machine, their state, and who uses them.

    Device numbers are those of this process, which depend on CUDA_VISIBLE_DEVICES and similar
    variables. Locks and records use the UUID. The exit code is 5 if the environment hides
    every device.

    \b
    Examples:
      longpole devices
      longpole devices --watch --format jsonl
    """
    from longpole.cli.answer.devices import devices_answer
    from longpole.cli.answer.emit import emit
    from longpole.devices import discover, select
    from longpole.report.terminal import Terminal

    found = discover() if fake is None else select([f"fake:{fake}"])
    if not found:
        message = "the environment hides every device"
        raise DeviceError(message)
    terminal = Terminal.of(sys.stdout, options.color)
    exit_code = emit([devices_answer(found)], options.form, terminal)
    while watch:
        time.sleep(_WATCH_S)
        if options.form == "text" and sys.stdout.isatty():
            sys.stdout.write(_CLEAR_SCREEN)
        exit_code = emit([devices_answer(found)], options.form, terminal)
    return exit_code
