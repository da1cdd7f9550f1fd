"""`longpole bench resume`: continue a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options
from longpole.cli.ask.runner import runner_options

__all__ = ["resume"]


@click.command()
@click.argument("results", type=OutputPath())
@runner_options
@answer_options
def resume(*, results: str, options: Options, **limits: Any) -> int:
    """Continue a run that was interrupted.

    Jobs with an outcome in RESULTS do not run again, except those that were cancelled or lost
    their device. Limits and devices are those of the run unless you give others.

    \b
    Example:
      longpole bench resume jobs.results.jsonl
    """
    from longpole.cli.ask.session import Session, run_session

    return run_session(Session.load(Path(results), limits), options, resume=True)
