"""A table of a trace, written to a file, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.frames import flat
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.table import known_of_window, rows_of_path, rows_of_question
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.files import new_file
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import Document
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.table import Shown
    from longpole.cli.answer.windows import Found
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["CONVERT", "convert_path", "convert_question", "writer_of"]

CONVERT: Final = "longpole.convert/1"
_WRITERS: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".arrow": lambda rows, path: rows.write_ipc(path),
    ".csv": lambda rows, path: flat(rows).write_csv(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
}


def writer_of(output: Path) -> Callable[[pl.DataFrame, Path], None]:
    """Find how to write a file with this ending; another ending is an error of usage."""
    writer = _WRITERS.get(output.suffix)
    if writer is None:
        message = f"--output ends in {', '.join(_WRITERS)}, not {output.suffix or output.name!r}"
        raise click.UsageError(message)
    return writer


def convert_path(
    path: str, trace: Trace, found: Found, *, shown: Shown, output: Path, force: bool
) -> Answer:
    """Write a table about the critical path."""
    rows = rows_of_path(trace, found, shown)
    known = known_of(path, trace, found)
    return _written(rows, shown, output, known, force=force), exit_code_of(found)


def convert_question(
    path: str, trace: Trace, window: Window | None, *, shown: Shown, output: Path, force: bool
) -> Answer:
    """Write the table that a question is answered with."""
    rows = rows_of_question(trace, window, shown)
    known = known_of_window(path, trace, window)
    return _written(rows, shown, output, known, force=force), exit_codes.OK


def _written(
    rows: pl.DataFrame, shown: Shown, output: Path, known: dict[str, Any], *, force: bool
) -> Document:
    from pathlib import Path

    path = known["input"]["path"]
    with new_file(output, force=force, inputs=[Path(path)]) as unfinished:
        writer_of(output)(rows, unfinished)
    written: dict[str, Any] = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "table": shown.table,
        "rows": rows.height,
    }
    return Document(
        schema=CONVERT,
        **known,
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(path)}: {shown.table}"),
            Sentence(f"Wrote {count(rows.height, 'row')} to {output}."),
        ],
        records=lambda: [{"path": path, **written}],
    )
