"""`longpole serving`: show how an inference server spends its iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from longpole.cli.ask.options import Options, answers, shared_options, top_option
from longpole.cli.ask.traces import answer_each, capture_option, traces_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.trace import Trace

__all__ = ["serving"]


@click.command()
@answers("longpole.analyses.serving:Serving")
@traces_argument
@capture_option
@top_option(5, "kernels")
@shared_options
def serving(
    *,
    traces: Sequence[str],
    capture_traces: tuple[str, ...],
    top: int,
    options: Options,
) -> int:
    """Show how an inference server spends its iterations.

    Iterations are decode steps, prefill steps and mixed batches, as vLLM, SGLang, TensorRT-LLM
    and TGI mark them. Without such marks, repeated graph launches stand for iterations.

    \b
    Examples:
      longpole serving trace.json.gz
      longpole serving trace.json.gz --capture-trace capture.json.gz
      longpole serving trace.json.gz --json
    """

    def answer(path: str, trace: Trace) -> Answer:
        from longpole.cli.answer.serving import serving_answer

        return serving_answer(path, trace, top)

    chosen = replace(options, capture_traces=capture_traces or None)
    return answer_each(traces, chosen, "longpole.serving/1", answer, arguments="default")
