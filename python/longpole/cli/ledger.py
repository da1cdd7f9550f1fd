"""`longpole ledger`: say how often predicted gains held."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options, answers

__all__ = ["ledger"]


@click.command()
@answers("longpole.analyses.ledger:Ledger")
@click.argument("file", type=click.Path(dir_okay=False, readable=False), metavar="FILE")
@answer_options
def ledger(*, file: str, options: Options) -> int:
    """Show how often predicted gains were right.

    FILE is what `longpole diff --ledger FILE` wrote: a line for each remedy that was applied
    alone between two traces. A prediction held if the measured gain lies in the predicted
    interval, with 2 points of slack.

    \b
    Examples:
      longpole diff before.json.gz after.json.gz --ledger gains.jsonl
      longpole ledger gains.jsonl
    """
    from longpole.cli.answer.ledger import ledger_answer

    return options.emit(ledger_answer(file))
