"""`longpole repro`: write a script that runs one operator alone with its recorded inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.numbers import MOST
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.traces import answer_each, trace_argument

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.cli.answer.emit import Answer
    from longpole.trace import Trace

__all__ = ["repro"]


@click.command()
@answers("longpole.cli.answer.repro:Repro")
@trace_argument
@click.argument("event", type=click.IntRange(0, MOST), metavar="EVENT")
@output_options()
@click.option(
    "--et",
    "execution",
    type=click.Path(dir_okay=False, readable=False),
    metavar="FILE",
    help="Execution trace of the same run.",
)
@shared_options
def repro(
    *,
    trace: str,
    event: int,
    output: Path,
    force: bool,
    execution: str | None,
    options: Options,
) -> int:
    """Write a script that runs one operator alone, with its recorded inputs.

    EVENT is a row of `trace.events`: an operator, or a kernel that an operator launched. The
    script makes tensors of the recorded shapes, strides and types, times the operator with
    torch, and names what was not recorded.

    \b
    Examples:
      longpole tune --from-trace trace.json.gz
      longpole repro trace.json.gz 4711 -o op.py && python op.py
    """
    from longpole.cli.answer.repro import REPRO, repro_answer

    def answer(name: str, read: Trace) -> Answer:
        return repro_answer(name, read, event, output=output, force=force, execution=execution)

    return answer_each([trace], options, REPRO, answer, arguments="default")
