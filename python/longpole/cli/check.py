"""`longpole check`: list the problems of a trace, and their effect on the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.traces import answer_each, traces_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.trace import Trace

__all__ = ["check"]


@click.command()
@answers("longpole.cli.answer.check:Checked")
@traces_argument
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings.")
@shared_options
def check(*, traces: Sequence[str], strict: bool, options: Options) -> int:
    """List the problems of a trace, and their effect on the answers.

    Habits and settings of the program that cost time have a section of their own. The exit code
    is 1 if there is a problem of severity `altered` or `data_loss`, and 0 if there are only
    warnings and notes. Several traces are also compared with each other.

    \b
    Examples:
      longpole check trace.json.gz
      longpole check rank*.json.gz --strict --format jsonl
    """
    from longpole.analyses.companions import Companions
    from longpole.remedies.facts import ARGUMENTS

    companions = Companions()

    def answer(path: str, trace: Trace) -> Answer:
        from longpole.cli.answer.check import check_answer

        return check_answer(path, trace, strict=strict, companions=companions)

    return answer_each(traces, options, "longpole.check/1", answer, arguments=ARGUMENTS)
