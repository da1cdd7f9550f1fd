"""`longpole bench`: run benchmarks on devices, time programs, and compare results."""

from __future__ import annotations

from typing import ClassVar

import click

from longpole.cli.ask.commands import Commands


class Bench(Commands):
    """The commands of `bench`."""

    folder = "longpole.cli.bench"
    sections: ClassVar = {
        "Commands": {
            "compare": "Report what is faster in another run, or the best results of one.",
            "extract": "Extract results from the output of profilers.",
            "run": "Run jobs on devices and record every result.",
            "time": "Time Python functions and commands.",
        }
    }
    unknown = "not a command of bench"


@click.group(cls=Bench)
def bench() -> None:
    """Time functions and commands on devices, and compare results.

    \b
    Examples:
      longpole bench time kernels:old kernels:new --axis n=1024
      longpole bench run jobs.jsonl --devices 0,1
      longpole bench compare base.jsonl new.jsonl
    """
