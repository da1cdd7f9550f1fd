"""`longpole tunableop pin`: have GEMMs run with Default or a named solution."""

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

__all__ = ["pin"]


@click.command()
@click.argument("file", metavar="FILE")
@row_options
@click.option("--to", default="Default", show_default=True, help="The solution to use.")
@click.option("-o", "--output", required=True, metavar="NEW", help="Where to write the new file.")
@click.option("-f", "--force", is_flag=True, help="Replace the output.")
@shared_options
def pin(
    *,
    file: str,
    chosen: Rows,
    to: str,
    output: str,
    force: bool,
    options: Options,
) -> int:
    """Have GEMMs run with torch's default or a named solution, whatever was measured.

    Rows lose their time, which was another solution's; all other bytes stay as they are.

    \b
    Examples:
      longpole tunableop pin results0.csv --parameters '^tn_768_' -o pinned0.csv
      longpole tunableop pin results0.csv --from Rocblas --to Gemm_Hipblaslt_12 -o new0.csv
    """
    from longpole.bench import tunableop
    from longpole.cli.answer.tunableop import rows_answer

    keys = chosen.of(file)
    tunableop.pin(file, keys, to).write(output, force=force)
    rows = [{"operator": key[0], "parameters": key[1]} for key in keys]
    headline = f"{count(len(rows), 'GEMM')} pinned to {to}; written to {output}"
    columns: dict[str, Type] = {"operator": "text", "parameters": "text"}
    answer = rows_answer("pin", file, headline, rows, columns, most=20)
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))
