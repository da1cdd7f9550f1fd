"""What `convert` answers about a file that it wrote, and tables as files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.files.writing import new_file
from longpole.report.csv import harmless
from longpole.report.document import flat
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

SCHEMA: Final = "longpole.convert/1"
TABLE_ENDINGS: Final = (".parquet", ".arrow", ".csv", ".jsonl")
_WRITERS: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".arrow": lambda rows, path: rows.write_ipc(path),
    ".csv": lambda rows, path: _harmless(flat(rows)).write_csv(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
}


@dataclass(frozen=True, slots=True)
class Converted(Data):
    """The written file."""

    output: str
    """Path of the file."""
    bytes: int
    table: str
    """The name of the table, or what else was written."""
    rows: int


def write_table(rows: pl.DataFrame, output: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Write a table in the format of the file's suffix."""
    with new_file(output, force=force, inputs=inputs) as unfinished:
        _WRITERS[output.suffix](rows, unfinished)


def _harmless(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with strings as in `--format csv`: no formulas, no invisible characters."""
    import polars as pl

    changed = {}
    for name, dtype in rows.schema.items():
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
            texts = rows[name].cast(pl.String)
            shown = {text: harmless(text) for text in texts.unique().drop_nulls()}
            other = {text: safe for text, safe in shown.items() if safe != text}
            if other:
                changed[name] = texts.replace(other)
    return rows.with_columns(**changed)
