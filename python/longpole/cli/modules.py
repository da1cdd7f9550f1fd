"""`longpole modules`: show what each module of the model took, forward and backward."""

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

__all__ = ["modules"]


@click.command()
@answers("longpole.analyses.frame_times:FrameTimes")
@traces_argument
@click.option(
    "--by",
    type=click.Choice(("layer", "path")),
    default="layer",
    show_default=True,
    help="Add up modules whose paths differ in numbers only, or not.",
)
@click.option("--annotations", metavar="PATTERN", help="Regex for annotations that name modules.")
@where_option
@sort_option
@top_option
@stretch_options
@shared_options
def modules(
    *,
    traces: Sequence[str],
    by: str,
    annotations: str | None,
    where: str | None,
    sort: str | None,
    top: int,
    window: Asked,
    options: Options,
) -> int:
    """Show what each module of the model took, forward and backward.

    Modules are known from Python stacks (with_stack=True), from what scripted models record
    (with_modules=True), and from annotations that match --annotations.

    \b
    Examples:
      longpole modules trace.json.gz
      longpole modules trace.json.gz --by path --step 3
    """
    return answer_analysis(
        "modules",
        traces,
        options,
        window=window,
        by=by,
        annotations=annotations,
        where=where,
        sort=sort,
        top=top,
    )
