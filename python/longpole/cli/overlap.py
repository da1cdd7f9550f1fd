"""`longpole overlap`: show how much communication and copying is hidden behind kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.analyses import answer_analysis
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.traces import traces_argument
from longpole.cli.ask.windows import step_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["overlap"]


@click.command()
@traces_argument
@step_options
@shared_options
def overlap(
    *,
    traces: Sequence[str],
    step: int | None,
    step_name: str | None,
    whole: bool,
    options: Options,
) -> int:
    """Show how much communication and copying is hidden behind kernels.

    What is exposed is an upper bound of what better overlap would gain.

    \b
    Example:
      longpole overlap trace.json.gz --step 3
    """
    return answer_analysis("overlap", traces, options, step=step, step_name=step_name, whole=whole)
