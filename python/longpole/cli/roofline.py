"""`longpole roofline`: show how close kernels come to what the device can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.analyses import answer_analysis
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.rows import peak_option, top_option, where_option
from longpole.cli.ask.traces import traces_argument
from longpole.cli.ask.windows import Asked, stretch_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["roofline"]


@click.command()
@answers("longpole.analyses.roofline:Roofline")
@traces_argument
@peak_option
@click.option(
    "--bandwidth",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GB/S",
    help="Bandwidth of the memory, instead of the published one.",
)
@where_option
@top_option
@stretch_options
@shared_options
def roofline(
    *,
    traces: Sequence[str],
    tflops: Mapping[str, float],
    bandwidth: float | None,
    where: str | None,
    top: int,
    window: Asked,
    options: Options,
) -> int:
    """Show how close kernels come to what the device can do, and the time lost.

    The least time of an operator is the longer of what it computes and what it must move, at the
    peaks of the device. The trace must have shapes (record_shapes=True).

    \b
    Examples:
      longpole roofline trace.json.gz
      longpole roofline trace.json.gz --peak bf16=800 --bandwidth 3000 --step 3
    """
    return answer_analysis(
        "roofline",
        traces,
        options,
        window=window,
        tflops=tflops,
        bandwidth=bandwidth,
        where=where,
        top=top,
    )
