"""`longpole tunableop coverage`: say how much of a trace, or of recorded GEMMs, is tuned."""

from __future__ import annotations

import sys

import click

from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.errors import ResultsError
from longpole.report.terminal import Terminal

__all__ = ["coverage"]


@click.command()
@click.argument("subject", metavar="UNTUNED|TRACE")
@click.argument("results", metavar="RESULTS")
@click.option("--step", type=int, metavar="N", help="The step of the trace to look at.")
@shared_options
def coverage(*, subject: str, results: str, step: int | None, options: Options) -> int:
    """Say how much of a trace, or of recorded GEMMs, a results file has tuned.

    Of a trace it is the share of the time in GEMMs, and of the critical path; what to tune
    next comes first, by its time on the path. Names that end in .csv are files of recorded
    GEMMs. Exits with 1 where something is not tuned, with 4 where there are no GEMMs.

    \b
    Examples:
      longpole tunableop coverage tunableop_untuned0.csv tunableop_results0.csv
      longpole tunableop coverage trace.json.gz tunableop_results0.csv --step 3
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import coverage_answer, gemm_coverage_answer

    if subject.endswith(".csv"):
        answer = coverage_answer(results, tunableop.coverage(subject, results))
    else:
        from longpole import read_trace
        from longpole.analyses.gemm_coverage import gemm_coverage

        found = gemm_coverage(read_trace(subject), results, step=step)
        if found is None:
            message = f"{subject} has no event with a duration"
            raise ResultsError(message)
        answer = gemm_coverage_answer(results, found)
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))
