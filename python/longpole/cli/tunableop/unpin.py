"""`longpole tunableop unpin`: take GEMMs out of a file, to be tuned again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.tunable_rows import row_options
from longpole.report.terminal import Terminal
from longpole.wording import count

if TYPE_CHECKING:
    from longpole.cli.ask.tunable_rows import Rows
    from longpole.report.blocks import Type

__all__ = ["unpin"]


@click.command()
@click.argument("file", metavar="FILE")
@row_options
@click.option("-o", "--output", required=True, metavar="NEW", help="Where to write the new file.")
@click.option("-f", "--force", is_flag=True, help="Replace the output.")
@shared_options
def unpin(
    *,
    file: str,
    chosen: Rows,
    output: str,
    force: bool,
    options: Options,
) -> int:
    """Take GEMMs out of a file, so that torch tunes or records them again.

    \b
    Examples:
      longpole tunableop unpin results0.csv --from '^Default$' -o new0.csv
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import rows_answer

    keys = chosen.of(file)
    tunableop.unpin(file, keys).write(output, force=force)
    rows = [{"operator": key[0], "parameters": key[1]} for key in keys]
    headline = f"{count(len(rows), 'GEMM')} taken out; written to {output}"
    columns: dict[str, Type] = {"operator": "text", "parameters": "text"}
    answer = rows_answer("unpin", file, headline, rows, columns, most=20)
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))
