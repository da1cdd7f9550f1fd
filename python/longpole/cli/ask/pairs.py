"""The execution trace that belongs to a trace, in a command's input."""

from __future__ import annotations

from typing import Final

import click

from longpole.cli.ask.numbers import NUMBER

et_option: Final = click.option(
    "--et",
    "execution",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Execution trace of the same run.",
)

iteration_option: Final = click.option(
    "--iteration",
    type=NUMBER,
    metavar="N",
    help="Which of the matching iterations to use, counted from 0.  [default: the one of "
    "median length]",
)
