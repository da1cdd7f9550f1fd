"""Records of runs, for the verbs that answer from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.bench import read_results
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from longpole.bench.records.store import StoredResults

__all__ = ["records_of_runs"]


def records_of_runs(path: str) -> StoredResults:
    """Read a results file that has to hold something.

    Raises
    ------
    ResultsError
        The file holds no record of a run.
    """
    stored = read_results(path)
    if not stored.records:
        message = f"{path} holds no record of a run"
        raise ResultsError(message)
    return stored
