"""`longpole path`: show the critical path: what determines how long a step takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from longpole.cli.ask.options import Options, answers, shared_options, top_option
from longpole.cli.ask.profiler import Recording, profiler_options
from longpole.cli.ask.traces import answer_each, traces_argument
from longpole.cli.ask.windows import Asked, about_window, window_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["path"]


@click.command()
@answers("longpole.cli.answer.path:PathData")
@traces_argument
@window_options
@profiler_options
@top_option(10, "names")
@shared_options
def path(
    *, traces: Sequence[str], window: Asked, recording: Recording, top: int, options: Options
) -> int:
    """Show the critical path: what determines how long a step takes.

    The segments of the path cover the window without gaps. With `--format csv`, each segment is
    a row. The exit code is 4 if the trace does not show what limits the window, as for `longpole
    summary`.

    \b
    Examples:
      longpole path trace.json.gz --step 3
      longpole path trace.json.gz --format csv > path.csv
    """
    from longpole.cli.answer.path import PATH, path_answer
    from longpole.remedies.facts import ARGUMENTS

    answer = about_window(PATH, window, partial(path_answer, top=top), recording)
    return answer_each(traces, options, PATH, answer, arguments=ARGUMENTS)
