"""`longpole bench baseline`: save results as a baseline, to compare later results with."""

from __future__ import annotations

import sys

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.usage import require, usage_errors
from longpole.cli.ask.options import force_option
from longpole.wording import escape

__all__ = ["baseline"]


@click.command()
@click.argument("name")
@click.argument("results")
@force_option
def baseline(*, name: str, results: str, force: bool) -> int:
    """Save the file RESULTS as the baseline NAME, to compare later results with.

    Baselines are in .longpole/baselines, or in the folder that LONGPOLE_BASELINES names.

    \b
    Example:
      longpole bench baseline main results.jsonl
    """
    from longpole.bench import save_baseline
    from longpole.bench.records.baselines import baseline_path

    with usage_errors():
        require(
            force or not baseline_path(name).exists(),
            f"the baseline {name} already exists; -f replaces it",
        )
        path = save_baseline(name, results, overwrite=force)
    sys.stderr.write(f"kept as {escape(str(path))}\n")
    return exit_codes.OK
