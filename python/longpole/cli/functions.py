"""`longpole functions`: show what each Python function took on its thread and on devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.analyses import answer_analysis
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.rows import sort_option, top_option, where_option
from longpole.cli.ask.traces import traces_argument
from longpole.cli.ask.windows import Asked, stretch_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["functions"]


@click.command()
@answers("longpole.analyses.frame_times:FrameTimes")
@traces_argument
@where_option
@sort_option
@top_option
@stretch_options
@shared_options
def functions(
    *,
    traces: Sequence[str],
    where: str | None,
    sort: str | None,
    top: int,
    window: Asked,
    options: Options,
) -> int:
    """Show what each Python function took on its thread and on devices.

    A GPU activity counts for the innermost function around the call that launched it; one of a
    backward pass for the function that called the forward operator.

    \b
    Examples:
      longpole functions trace.json.gz
      longpole functions trace.json.gz --top 50 --format csv
    """
    return answer_analysis(
        "functions",
        traces,
        options,
        window=window,
        where=where,
        sort=sort,
        top=top,
    )
