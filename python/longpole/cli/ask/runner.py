"""Options of the commands that run jobs, and of those that use devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from longpole.cli.ask.numbers import COUNT, COUNT_OR_ZERO, SECONDS, SECONDS_OR_ZERO, timeout_option

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., int]")


def device_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for using a device; None if not given."""
    busy = click.option(
        "--busy",
        type=click.Choice(["refuse", "wait", "allow"]),
        help="What to do if another program uses the device.  [default: refuse]",
    )
    lock_clock = click.option(
        "--lock-clock",
        "lock_clock_mhz",
        type=COUNT,
        metavar="MHZ",
        help="Lock the clock frequency of the device during the run; needs root.",
    )
    return busy(lock_clock(command))


def devices_option(default: str) -> Callable[[Command], Command]:
    """Add the option for the devices to a command, `devices`."""
    return click.option(
        "--devices",
        metavar="LIST",
        help="Devices: numbers such as 0,2, UUIDs, `all`, `cpu` or `fake:N`; with `ray:` in front, "
        f"those of each node of the Ray cluster that RAY_ADDRESS names.  [default: {default}]",
    )


_RUNNER_OPTIONS: Final = (
    devices_option("0, the first visible"),
    timeout_option("a job", 60, is_set=False),
    click.option(
        "--total-timeout",
        "total_timeout_s",
        type=SECONDS,
        metavar="SECONDS",
        help="Time limit of the run.",
    ),
    click.option(
        "--grace",
        "grace_s",
        type=SECONDS_OR_ZERO,
        metavar="SECONDS",
        help="Time between SIGTERM and SIGKILL.  [default: 5]",
    ),
    click.option(
        "--retries",
        type=COUNT_OR_ZERO,
        metavar="N",
        help="Number of times to repeat a failed job.  [default: 0]",
    ),
    device_options,
    click.option(
        "--record-env",
        multiple=True,
        metavar="NAME",
        callback=lambda _context, _option, names: list(names) or None,
        help="Record the value of this environment variable, not only a digest. Repeatable.",
    ),
)


def runner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that run jobs; None if not given."""
    for option in reversed(_RUNNER_OPTIONS):
        command = option(command)
    return command
