"""Records of runs, for the commands that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.errors import ResultsError
from longpole.report.document import Warned
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench import Record, ResultsFile

__all__ = ["checked", "damage_warnings"]


def checked(file: ResultsFile, records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records of a file; raise if it has none.

    Raises
    ------
    ResultsError
        The file contains no record of a run.
    """
    yield from records
    if not file.n_records:
        message = f"{file.path} contains no record of a run"
        raise ResultsError(message)


def damage_warnings(file: ResultsFile) -> list[Warned]:
    """Return a warning about the rows of a file that are not records."""
    if not file.n_skipped:
        return []
    message = f"{count(file.n_skipped, 'row')} that are damaged or not records of a run"
    return [Warned("no_record", file.n_skipped, message, "their contents are not used")]
