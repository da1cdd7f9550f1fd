"""`longpole whatif`: compute how long a step would take after a change."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longpole.cli.answer.usage import require
from longpole.cli.ask.changes import change_options, changes_of
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.profiler import Recording, profiler_options
from longpole.cli.ask.traces import answer_each, traces_argument
from longpole.cli.ask.windows import Asked, about_window, window_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["whatif"]


@click.command()
@answers("longpole.cli.answer.whatif:WhatIfData")
@traces_argument
@window_options
@profiler_options
@change_options
@click.option("--ideal", is_flag=True, help="Rank all remedies by what they save.")
@click.option(
    "--remedy", metavar="ID", help="Compute what one remedy of --ideal saves, such as tensor_cores."
)
@click.option(
    "--measure",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    metavar="FILE",
    help="Write a script to FILE that times both forms of what --remedy is about, run it, and "
    "compute with its times. Needs torch.",
)
@shared_options
def whatif(
    *,
    traces: Sequence[str],
    window: Asked,
    recording: Recording,
    ideal: bool,
    remedy: str | None,
    measure: Path | None,
    options: Options,
    **asked: Sequence[str],
) -> int:
    """Compute how long a step would take after a change.

    WHAT is a kind, a kind and a pattern of names (`kernel:flash`), or a pattern of names
    of any work (`:flash`). Several changes hold together. The name of a family that --ideal
    ranks, such as gemm or attention, selects all kernels of the family, regardless of their
    names (`kernel:gemm`).

    \b
    Examples:
      longpole whatif trace.json.gz --step 3 --ideal
      longpole whatif trace.json.gz --scale kernel:gemm=0.5 --drop launch
      longpole whatif trace.json.gz --remedy tensor_cores --measure forms.py
    """
    from longpole.cli.answer.remedy import remedy_answer
    from longpole.cli.answer.whatif import WHATIF, changed_answer, ideal_answer
    from longpole.remedies.facts import ARGUMENTS

    is_of_remedy = remedy is not None
    require(
        not (is_of_remedy and (ideal or any(asked.values()))),
        "--remedy excludes --ideal and other changes",
    )
    require(measure is None or remedy is not None, "--measure needs --remedy")
    require(remedy is None or len(traces) == 1, "--remedy needs one trace")
    changes = changes_of(asked, ideal=ideal or is_of_remedy)
    answer = ideal_answer if ideal else partial(changed_answer, changes=changes)
    if remedy is not None:
        answer = partial(remedy_answer, remedy=remedy, script=measure)
    about = about_window(WHATIF, window, answer, recording)
    return answer_each(traces, options, WHATIF, about, arguments=ARGUMENTS)
