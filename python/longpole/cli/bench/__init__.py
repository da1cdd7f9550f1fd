"""`longpole bench`: run benchmarks on devices, and choose and compare their results."""

from __future__ import annotations

import click

from longpole.cli.ask.commands import Commands

__all__ = ["bench"]


class Bench(Commands):
    """The commands of `bench`."""

    folder = "longpole.cli.bench"
    unknown = "not a command of bench"


@click.group(cls=Bench)
def bench() -> None:
    """Run benchmarks on devices, and choose and compare their results."""
