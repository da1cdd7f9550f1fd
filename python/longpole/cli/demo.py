"""`longpole demo`: write example traces, explain one, and show what to ask next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options, answers, force_option

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["demo"]


@click.command()
@answers("longpole.cli.answer.demo:Demo")
@click.argument(
    "folder",
    type=OutputPath(is_folder=True, is_path=True),
    default="longpole-demo",
)
@click.option("--ranks", is_flag=True, help="Explain four ranks, not one trace.")
@force_option
@answer_options
def demo(*, folder: Path, ranks: bool, force: bool, options: Options) -> int:
    """Write example traces, explain one, and show what to ask next.

    The traces come from a simulated training program. They are written to FOLDER, by default
    `longpole-demo`: `trace.json.gz` and `after.json.gz` before and after a change, and four
    ranks of one run in `ranks`.

    \b
    Examples:
      longpole demo
      longpole demo --ranks
      longpole demo /tmp/traces --json
    """
    from longpole.cli.answer.demo import demo_answer

    return options.emit(demo_answer(folder, ranks=ranks, force=force))
