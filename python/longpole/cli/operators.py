"""`longpole operators`: show what each operator took on its thread and on devices."""

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

__all__ = ["operators"]


@click.command()
@answers("longpole.analyses.frame_times:FrameTimes")
@traces_argument
@click.option("--shapes", is_flag=True, help="Tell operators with other inputs apart.")
@where_option
@sort_option
@top_option
@stretch_options
@shared_options
def operators(
    *,
    traces: Sequence[str],
    shapes: bool,
    where: str | None,
    sort: str | None,
    top: int,
    window: Asked,
    options: Options,
) -> int:
    """Show what each operator took on its thread and on devices.

    A GPU activity counts for the innermost operator around the call that launched it, so that
    device self times sum to the time of all GPU activities. `backward` is the time of the
    backward pass that an operator causes.

    \b
    Examples:
      longpole operators trace.json.gz
      longpole operators trace.json.gz --shapes --where "work_class = 'compute'"
    """
    return answer_analysis(
        "operators",
        traces,
        options,
        window=window,
        shapes=shapes,
        where=where,
        sort=sort,
        top=top,
    )
