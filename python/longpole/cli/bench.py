"""`longpole bench`: run benchmarks, and look at what they gave."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

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


class Bench(click.Group):
    """The verbs of `bench`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name every verb, in the order one would want them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"longpole.cli.bench_{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Bench)
def bench() -> None:
    """Run benchmarks on devices, and choose and compare their results."""
