"""`longpole tunableop pin`: have GEMMs run with Default or a named solution."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.errors import ResultsError
from longpole.report.terminal import Terminal
from longpole.wording import count

if TYPE_CHECKING:
    from longpole.report.blocks import Type

__all__ = ["pin"]


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--operator", metavar="REGEX", help="Rows whose operator signature matches.")
@click.option("--parameters", metavar="REGEX", help="Rows whose parameter signature matches.")
@click.option("--from", "solution", metavar="REGEX", help="Rows whose solution matches.")
@click.option("--to", default="Default", show_default=True, help="The solution to use.")
@click.option("-o", "--output", required=True, metavar="NEW", help="Where to write the new file.")
@click.option("-f", "--force", is_flag=True, help="Replace the output.")
@shared_options
def pin(
    *,
    file: str,
    operator: str | None,
    parameters: str | None,
    solution: str | None,
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

    if operator is parameters is solution is None:
        message = "say which rows: --operator, --parameters or --from"
        raise click.UsageError(message)
    try:
        keys = tunableop.select(file, operator=operator, parameters=parameters, solution=solution)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not keys:
        message = f"{file} has no row that matches"
        raise ResultsError(message)
    tunableop.pin(file, keys, to).write(output, force=force)
    rows = [{"operator": key[0], "parameters": key[1]} for key in keys]
    headline = f"{count(len(rows), 'GEMM')} pinned to {to}; written to {output}"
    columns: dict[str, Type] = {"operator": "text", "parameters": "text"}
    answer = rows_answer("pin", file, headline, rows, columns, most=20)
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))
