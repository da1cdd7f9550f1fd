"""`longpole mfu`: show which part of the peak of its devices a step uses for the model (MFU)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.analyses import answer_analysis
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.rows import peak_option, where_option
from longpole.cli.ask.traces import traces_argument
from longpole.cli.ask.windows import Asked, stretch_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["mfu"]


@click.command()
@answers("longpole.analyses.mfu:Mfu")
@traces_argument
@peak_option
@where_option
@stretch_options
@shared_options
def mfu(
    *,
    traces: Sequence[str],
    tflops: Mapping[str, float],
    where: str | None,
    window: Asked,
    options: Options,
) -> int:
    """Show which part of the peak of its devices a step uses for the model (MFU).

    Products, convolutions and attention count. FLOPs that a backward pass spends on forward
    operators again count for HFU only. The trace must have shapes (record_shapes=True).

    \b
    Examples:
      longpole mfu trace.json.gz
      longpole mfu trace.json.gz --peak bf16=800 --step 3
    """
    return answer_analysis(
        "mfu",
        traces,
        options,
        window=window,
        tflops=tflops,
        where=where,
    )
