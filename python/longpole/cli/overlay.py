"""`longpole overlay`: write the critical path as an overlay for ui.perfetto.dev."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from longpole.cli.answer.usage import require
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, about_window, window_options

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["overlay"]


@click.command()
@answers("longpole.cli.answer.overlay:Overlay")
@trace_argument
@output_options()
@click.option("--with-trace", is_flag=True, help="Write a zip archive of the overlay and TRACE.")
@click.option("--counters", is_flag=True, help="Add tracks with queue lengths and copy bandwidths.")
@window_options
@shared_options
def overlay(
    *,
    trace: str,
    output: Path,
    force: bool,
    with_trace: bool,
    counters: bool,
    window: Asked,
    options: Options,
) -> int:
    """Write the critical path as an overlay for ui.perfetto.dev.

    The file is a small Perfetto trace with the time axis of TRACE. With --with-trace, it is a
    zip archive of both, which Perfetto opens as one timeline. TRACE is not changed.

    \b
    Examples:
      longpole overlay trace.json.gz -o path.pftrace
      longpole overlay trace.json.gz --step 3 --with-trace --counters -o both.zip
    """
    from longpole.cli.answer.overlay import OVERLAY, overlay_answer

    require(not (with_trace and trace == "-"), "--with-trace needs a file, not a pipe")
    answer = partial(
        overlay_answer, output=output, force=force, with_trace=with_trace, counters=counters
    )
    asked = about_window(OVERLAY, window, answer)
    arguments: Literal["ids", "default"] = "default" if counters else "ids"
    return answer_each([trace], options, OVERLAY, asked, arguments=arguments)
