"""A table of a trace, written to a file, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.table import known_of_window, rows_of_path, rows_of_question
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.files import new_file
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import Document
from longpole.report.frames import flat
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

__all__ = ["CONVERT", "convert_path", "convert_question", "cut_trace", "is_cut", "writer_of"]

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


def is_cut(output: Path) -> bool:
    """Tell whether a smaller trace is to be written, by the ending."""
    return output.name.endswith((".json", ".json.gz"))


def cut_trace(path: str, trace: Trace, window: Window, *, output: Path, force: bool) -> Answer:
    """Write the events of a window as a smaller trace."""
    from longpole.convert.cut import cut

    try:
        n_written = cut(trace, path, window, output, force=force)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    known = known_of_window(path, trace, window)
    return _document("trace", n_written, output, known), exit_codes.OK


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

    path = Path(known["input"]["path"])
    with new_file(output, force=force, inputs=[path]) as unfinished:
        writer_of(output)(rows, unfinished)
    return _document(shown.table, rows.height, output, known)


def _document(what: str, n_rows: int, output: Path, known: dict[str, Any]) -> Document:
    path = known["input"]["path"]
    written: dict[str, Any] = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "table": what,
        "rows": n_rows,
    }
    return Document(
        schema=CONVERT,
        **known,
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(path)}: {what}"),
            Sentence(f"Wrote {count(n_rows, 'row')} to {output}."),
        ],
        records=lambda: [{"path": path, **written}],
    )
