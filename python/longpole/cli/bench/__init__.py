"""`longpole bench`: run benchmarks on devices, and choose and compare their results."""

from __future__ import annotations

from typing import ClassVar

import click

from longpole.cli.ask.commands import Commands

__all__ = ["bench"]


class Bench(Commands):
    """The commands of `bench`."""

    folder = "longpole.cli.bench"
    sections: ClassVar = {
        "Commands": {
            "baseline": "Save results as a baseline, to compare later results with.",
            "best": "Choose the fastest result of each key.",
            "compare": "Report what is faster, slower or the same in two runs.",
            "extract": "Extract results from the output of profilers.",
            "results": "Show the outcome of each job.",
            "resume": "Continue a run that was interrupted.",
            "run": "Run jobs on devices and record every result.",
            "time": "Time Python functions and commands.",
        }
    }
    modules: ClassVar = {"baseline": "compare", "best": "results", "resume": "run"}
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
