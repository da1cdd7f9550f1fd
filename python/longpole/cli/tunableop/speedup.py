"""`longpole tunableop speedup`: show how much tuning gained over a baseline."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options, answers

__all__ = ["speedup"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Speedups")
@click.argument("tuned", metavar="TUNED")
@click.argument("baseline", metavar="BASELINE")
@answer_options
def speedup(*, tuned: str, baseline: str, options: Options) -> int:
    """Show how much tuning gained, from the times in two files.

    BASELINE has the same GEMMs, measured with the solution Default. The exit code is 4 if no
    GEMM has a usable time in both files.

    \b
    Examples:
      longpole tunableop speedup tunableop_results0.csv default0.csv
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import speedup_answer

    answer = speedup_answer(tuned, tunableop.speedup(tuned, baseline))
    return options.emit(answer)
