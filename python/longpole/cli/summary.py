"""`longpole summary`: show what limits the program, and where the time of a step went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.answer.usage import usage_errors
from longpole.cli.ask.options import Options, answers, shared_options, top_option
from longpole.cli.ask.profiler import Recording, profiler_options
from longpole.cli.ask.traces import answer_each, traces_argument
from longpole.cli.ask.windows import Asked, stretch_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.trace import Trace

__all__ = ["summary"]


@click.command()
@answers("longpole.analyses.summary:Summary")
@traces_argument
@stretch_options
@profiler_options
@top_option(5, "kernels and operators")
@shared_options
def summary(
    *,
    traces: Sequence[str],
    window: Asked,
    recording: Recording,
    top: int,
    options: Options,
) -> int:
    """Show what limits the program, and where the time of a step went.

    TRACE is a file of the PyTorch profiler or another profiler, compressed or not, or `-` for
    stdin.
    Each share says what it is a share of: the step, or the whole trace if it marks no steps.

    \b
    Examples:
      longpole summary trace.json.gz
      longpole summary rank*.json.gz --step 3 --format csv
      longpole summary trace.json.gz --between 1000000 2000000
      curl -s https://example.org/trace.json.gz | longpole summary -
    """
    from longpole.remedies.facts import ARGUMENTS

    def answer(path: str, trace: Trace) -> Answer:
        from longpole.cli.answer.summary import summary_answer

        with usage_errors():
            trace = recording.of(trace, step_name=window.step_name)
            return summary_answer(path, trace, top, **window.on_clock(trace).choice)

    return answer_each(traces, options, "longpole.summary/1", answer, arguments=ARGUMENTS)
