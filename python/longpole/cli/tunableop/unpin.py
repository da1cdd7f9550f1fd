"""`longpole tunableop unpin`: remove GEMMs from a file, to tune them again."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options, answers
from longpole.cli.ask.tunable_rows import Edit, edit_options

__all__ = ["unpin"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Changed")
@edit_options
@answer_options
def unpin(*, edit: Edit, options: Options) -> int:
    """Remove GEMMs from a file, so that torch tunes or records them again.

    \b
    Examples:
      longpole tunableop unpin results0.csv --from '^Default$' -o new0.csv
    """
    from longpole.bench import tunableop

    keys = edit.keys()
    without = tunableop.unpin(edit.file, keys)
    return options.emit(edit.answer("unpin", without, keys, "taken out"))
