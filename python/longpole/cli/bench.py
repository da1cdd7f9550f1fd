"""`longpole bench`: run benchmarks, and look at what they gave."""

from __future__ import annotations

from typing import Final

import click

from longpole.cli.verbs import Verbs

__all__ = ["bench"]

# As in `program`: each verb is a module `bench_VERB` with a function of its name.
VERBS: Final = {
    "run": "Run jobs on devices and write down every result.",
    "resume": "Go on with a run that was interrupted.",
    "results": "Show what came of each job.",
    "best": "Choose the fastest result of each key.",
    "extract": "Find results in the output of profilers.",
    "compare": "Say what is faster, slower or the same in two runs.",
    "baseline": "Keep results under a name, to compare later ones with.",
    "time": "Measure a Python function.",
}


class Bench(Verbs):
    """The verbs of `bench`."""

    helps = VERBS
    module_prefix = "longpole.cli.bench_"
    unknown = "no verb of bench"


@click.group(cls=Bench)
def bench() -> None:
    """Run benchmarks on devices, and choose and compare their results."""
