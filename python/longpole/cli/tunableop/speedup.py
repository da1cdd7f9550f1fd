"""`longpole tunableop speedup`: say what tuning gained over a baseline."""

from __future__ import annotations

import sys

import click

from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.report.terminal import Terminal

__all__ = ["speedup"]


@click.command()
@click.argument("tuned", metavar="TUNED")
@click.argument("baseline", metavar="BASELINE")
@shared_options
def speedup(*, tuned: str, baseline: str, options: Options) -> int:
    """Say what tuning gained, by the times in two files.

    BASELINE has the same GEMMs, measured with the solution Default. Exits with 4 where no
    GEMM has a usable time in both files.

    \b
    Examples:
      longpole tunableop speedup tunableop_results0.csv default0.csv
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import speedup_answer

    answer = speedup_answer(tuned, tunableop.speedup(tuned, baseline))
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))
