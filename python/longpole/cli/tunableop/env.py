"""`longpole tunableop env`: print the variables for a phase, and warn about ineffective ones."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.usage import require
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longpole.bench.tunableop import Phase

__all__ = ["env"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Variables")
@click.argument("phase", type=click.Choice(("collect", "tune", "use")))
@click.option("--name", metavar="FILE", help="The results file.")
@click.option("--untuned", metavar="FILE", help="The untuned file.")
@click.option("--torch", "version", metavar="VERSION", help="Version of torch to use it with.")
@click.option("--exports", is_flag=True, help="Print export commands for a shell.")
@answer_options
def env(
    *,
    phase: Phase,
    name: str | None,
    untuned: str | None,
    version: str | None,
    exports: bool,
    options: Options,
) -> int:
    """Print the variables to collect GEMMs, tune them, or use the results.

    Warns about variables that are set but have no effect, or that torch does not know. Set the
    variables before you import torch, which reads each of them once. `os.putenv` does not
    change `os.environ`.

    \b
    Examples:
      longpole tunableop env collect
      longpole tunableop env use --name tunableop_results_full%d.csv
      eval "$(longpole tunableop env collect --exports)"
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop import VARIABLES
    from longpole.cli.answer.tunable_data import VariableRow, Variables
    from longpole.cli.answer.tunableop import rows_answer

    given = tunableop.environment(phase, filename=name, untuned_filename=untuned)
    meanings = {variable.full_name: variable.meaning for variable in VARIABLES}
    rows = [
        VariableRow(variable=f"{variable}={value}", meaning=meanings[variable])
        for variable, value in given.items()
    ]
    warnings = tunableop.environment_warnings({**os.environ, **given}, version)
    if exports:
        require(options.form == "text", "--exports is a format of its own: leave out --format")
        return _export(given, warnings)
    answer = rows_answer(
        "env", None, f"to {phase}:", Variables(rows=rows), VariableRow, notes=warnings
    )
    return options.emit(answer)


def _export(variables: Mapping[str, str], warnings: Iterable[str]) -> int:
    """Print commands that a shell can evaluate, and warnings on stderr."""
    for name, value in variables.items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    for warning in warnings:
        sys.stderr.write(f"warning: {escape(warning)}\n")
    return exit_codes.OK
