"""`longpole tunableop coverage`: show how much of a trace, or of recorded GEMMs, is tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.windows import step_option
from longpole.errors import ResultsError, TraceError

if TYPE_CHECKING:
    from longpole.cli.answer.emit import Answer
    from longpole.trace import Trace

__all__ = ["coverage"]

_OTHER_KIND = "other_kind_of_file"


@click.command()
@answers("longpole.cli.answer.tunable_data:Coverage")
@click.argument("subject", metavar="UNTUNED|TRACE|ET")
@click.argument("results", metavar="RESULTS")
@step_option("the whole trace")
@click.option(
    "--et",
    "execution",
    type=click.Path(dir_okay=False, readable=False),
    metavar="FILE",
    help="Execution trace of the same run.",
)
@shared_options
def coverage(
    *, subject: str, results: str, step: int | None, execution: str | None, options: Options
) -> int:
    """Show how much of a trace, or of recorded GEMMs, a results file covers.

    For a trace, this is the share of the GEMM time and of the critical path. GEMMs to tune next
    are sorted by their time on the path. An execution trace (ET) has no times, so its GEMMs
    are weighted by their FLOPs. Files whose names end in .csv contain recorded GEMMs. The
    exit code is 1 if a GEMM is not tuned, and 4 if there are no GEMMs.

    \b
    Examples:
      longpole tunableop coverage tunableop_untuned0.csv tunableop_results0.csv
      longpole tunableop coverage trace.json.gz tunableop_results0.csv --step 3
      longpole tunableop coverage kineto.json.gz tunableop_results0.csv --et et.json.gz
    """
    from longpole import read_trace

    if subject.endswith(".csv"):
        answer = _of_recorded(subject, results)
    else:
        try:
            trace = read_trace(subject)
        except TraceError as error:
            if error.code != _OTHER_KIND or execution is not None or step is not None:
                raise
            answer = _of_execution(subject, results)
        else:
            answer = _of_trace(subject, trace, results, step, execution)
    return options.emit(answer)


def _of_recorded(subject: str, results: str) -> Answer:
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import coverage_answer

    return coverage_answer(results, tunableop.coverage(subject, results))


def _of_execution(subject: str, results: str) -> Answer:
    from longpole.analyses.execution_coverage import execution_coverage
    from longpole.cli.answer.gemm_coverage import execution_coverage_answer
    from longpole.convert.execution_trace import read_execution_trace

    found = execution_coverage(read_execution_trace(subject), results)
    return execution_coverage_answer(results, found)


def _of_trace(
    subject: str, trace: Trace, results: str, step: int | None, execution: str | None
) -> Answer:
    from longpole.analyses.gemm_coverage import gemm_coverage
    from longpole.cli.answer.gemm_coverage import gemm_coverage_answer

    found = gemm_coverage(trace, results, step=step, execution=execution)
    if found is None:
        message = f"{subject} has no event with a duration"
        raise ResultsError(message)
    return gemm_coverage_answer(results, found)
