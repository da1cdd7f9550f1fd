"""`longpole convert`: write a table, or a part of a trace, to a file for other programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from longpole.cli.answer.list_of_tables import PATH_TABLES, tables
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.cli.ask.windows import Asked, about_stretch, about_window, window_options

__all__ = ["convert"]


@click.command()
@trace_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .parquet, .arrow, .csv or .jsonl; .json or .json.gz for a trace.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--table",
    type=click.Choice(tuple(tables())),
    metavar="NAME",
    default="events",
    show_default=True,
    help="Which table, as `longpole table TRACE` lists them.",
)
@click.option("--where", metavar="CONDITION", help="Only rows that fulfil a condition as in SQL.")
@window_options
@shared_options
def convert(
    *,
    trace: str,
    output: Path,
    force: bool,
    table: str,
    where: str | None,
    window: Asked,
    options: Options,
) -> int:
    """Write a table, or a part of a trace, to a file for other programs.

    The ending of the file tells the format: Parquet, Arrow (IPC), CSV or JSON Lines. Without
    a window, all events are written, and every other table for the usual window.

    With the ending .json or .json.gz it is a smaller trace: the events of the window and what
    its critical path needs beside them.

    \b
    Examples:
      longpole convert trace.json.gz -o events.parquet
      longpole convert trace.json.gz --table kernels --step 3 -o kernels.csv
      longpole convert trace.json.gz --step 3 -o step3.json.gz
    """
    from longpole.cli.answer.convert import (
        CONVERT,
        convert_path,
        convert_question,
        cut_trace,
        is_cut,
        writer_of,
    )
    from longpole.cli.answer.table import Shown, arguments_for

    if is_cut(output):
        if trace == "-" or where or table != "events":
            message = "a smaller trace is cut from a file, by a window alone"
            raise click.UsageError(message)
        smaller = partial(cut_trace, output=output, force=force)
        return answer_each([trace], options, CONVERT, about_stretch(CONVERT, window, smaller))
    writer_of(output)
    to: Any = {"shown": Shown(table, where, None), "output": output, "force": force}
    if table in PATH_TABLES:
        of_path = about_window(CONVERT, window, partial(convert_path, **to))
        return answer_each([trace], options, CONVERT, of_path)
    of_window = about_stretch(CONVERT, window, partial(convert_question, **to))
    whole = partial(convert_question, window=None, **to)
    answer = whole if table == "events" and not window.is_any else of_window
    return answer_each([trace], options, CONVERT, answer, arguments=arguments_for(table))
