"""`longpole tunableop pin`: make GEMMs use the default or a named solution."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options, answers
from longpole.cli.ask.tunable_rows import Edit, edit_options

__all__ = ["pin"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Changed")
@edit_options
@click.option("--to", default="Default", show_default=True, help="The solution to use.")
@answer_options
def pin(*, edit: Edit, to: str, options: Options) -> int:
    """Make GEMMs use the default of torch or a named solution, regardless of the measurements.

    The rows lose their time, because it was measured with another solution. All other bytes
    stay the same.

    \b
    Examples:
      longpole tunableop pin results0.csv --parameters '^tn_768_' -o pinned0.csv
      longpole tunableop pin results0.csv --from Rocblas --to Gemm_Hipblaslt_12 -o new0.csv
    """
    from longpole.bench import tunableop

    keys = edit.keys()
    pinned = tunableop.pin(edit.file, keys, to)
    return options.emit(edit.answer("pin", pinned, keys, f"pinned to {to}"))
