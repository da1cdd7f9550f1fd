"""`longpole overlap`: show how much communication and copying is hidden behind kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.analyses import answer_analysis
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.traces import traces_argument
from longpole.cli.ask.windows import Asked, stretch_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["overlap"]


@click.command()
@answers("longpole.analyses.overlap:Overlap")
@traces_argument
@stretch_options
@shared_options
def overlap(
    *,
    traces: Sequence[str],
    window: Asked,
    options: Options,
) -> int:
    """Show how much communication and copying is hidden behind kernels.

    What is exposed is an upper bound of what better overlap would gain.

    \b
    Examples:
      longpole overlap trace.json.gz --step 3
      longpole overlap trace.json.gz --annotation forward
    """
    return answer_analysis("overlap", traces, options, window=window)
