"""The options of the commands that run jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["runner_options", "usage_error"]


def runner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `run` and `resume` share. What is not given is None."""
    options = [
        click.option(
            "--devices",
            metavar="LIST",
            help="As 0,2 or UUIDs, `all`, `cpu`, or `fake:N`.  [default: 0, the first visible]",
        ),
        click.option("--timeout", "timeout_s", type=float, help="Seconds for a job.  [60]"),
        click.option("--total-timeout", "total_timeout_s", type=float, help="Seconds for all."),
        click.option("--grace", "grace_s", type=float, help="Seconds from TERM to KILL.  [5]"),
        click.option(
            "--retries",
            type=click.IntRange(min=0),
            help="Further attempts at a job that failed.  [0]",
        ),
        click.option(
            "--busy",
            type=click.Choice(["refuse", "wait", "allow"]),
            help="What to do with a device that somebody else uses.  [refuse]",
        ),
        click.option(
            "--lock-clock",
            "lock_clock_mhz",
            type=click.IntRange(min=1),
            metavar="MHZ",
            help="Hold the clock of devices while jobs run; needs root.",
        ),
        click.option(
            "--record-env",
            multiple=True,
            metavar="NAME",
            callback=lambda _context, _option, names: list(names) or None,
            help="Record the value of this environment variable of jobs, not only a digest.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def usage_error(error: ValueError) -> click.UsageError:
    """Say what is wrong with what the user has given."""
    return click.UsageError(str(error), click.get_current_context())
