"""Reads results files row by row, in memory independent of their length, and chooses the best.

Every row is checked: a row that is not a record, or a record with an invalid value, is counted and
left out. The best result is chosen by time, then by name, independent of the order of completion.
"""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome, Record, is_duration_ns
from longpole.files.opening import open_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from longpole.bench.records.record import Measurement

MAX_ROW_BYTES: Final = 64 << 20
_OURS: Final = "longpole.bench."


class RowKind(Enum):
    """Kind of a line in a file: a record, a damaged one of ours, or something else."""

    RECORD = 1
    DAMAGED = 2
    FOREIGN = 3


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The records of a file in the order of writing, and the number of other rows."""

    records: tuple[Record, ...]
    skipped: int


class ResultsFile:
    """The records of a file, read one at a time.

    Parameters
    ----------
    path
        The file. It may be read while it is being written.

    Raises
    ------
    FileNotFoundError
        The file does not exist; raised on first access.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_records = 0
        self.n_skipped = 0

    def records(self) -> Iterator[Record]:
        """Yield every record in the order of writing; count records and damaged rows."""
        self.n_records = self.n_skipped = 0
        for line in rows_of(self.path):
            record = parse_record(line)
            if record is None:
                self.n_skipped += 1
            else:
                self.n_records += 1
                yield record

    def decided(self) -> dict[tuple[str, str], Record]:
        """Return the last record of each job by id and digest; none if the file does not exist."""
        if not self.path.exists():
            return {}
        return {(each.id, each.digest): each for each in self.records() if each.is_decided}

    def final_records(self) -> Iterator[Record]:
        """Yield the last record of each job, in the order of writing.

        The file is read twice: first to find the last row of each job, which takes 16 bytes per
        row, then to yield these.
        """
        import numpy as np

        ids, numbers = array("q"), array("q")
        for number, record in enumerate(self.records()):
            if record.is_final:
                ids.append(_short_hash(record.id))
                numbers.append(number)
        newest_first = np.frombuffer(ids, np.int64)[::-1] if ids else np.empty(0, np.int64)
        _, places = np.unique(newest_first, return_index=True)
        last = np.asarray(numbers, np.int64)[::-1][places]
        last.sort()
        wanted = iter(last.tolist())
        upcoming = next(wanted, None)
        for number, record in enumerate(self.records()):
            if number == upcoming:
                yield record
                upcoming = next(wanted, None)


def read_results(path: str | os.PathLike[str]) -> StoredResults:
    """Read a results file, which may still be written to.

    Rows that are not records (including an incomplete last row) and records with invalid values are
    left out and counted. All records are held in memory; `ResultsFile` yields them one at a time.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    """
    file = ResultsFile(path)
    records = tuple(file.records())
    return StoredResults(records, file.n_skipped)


def rows_of(path: Path) -> Iterator[bytes]:
    """Yield the non-blank lines of a file; a line too long for a row comes in pieces."""
    with open_file(path) as file:
        while line := file.readline(MAX_ROW_BYTES):
            if line.strip():
                yield line


def row_kind(line: bytes) -> RowKind:
    """Return the kind of a line."""
    fields = json_object(line)
    if _record(fields) is not None:
        return RowKind.RECORD
    is_ours = str((fields or {}).get("schema", "")).startswith(_OURS)
    return RowKind.DAMAGED if is_ours else RowKind.FOREIGN


def parse_record(line: bytes) -> Record | None:
    """Parse a line as a record; None if it is not one."""
    return _record(json_object(line))


def json_object(line: bytes) -> dict[str, Any] | None:
    """Parse a line; None for broken JSON, broken UTF-8, or a value other than an object.

    A number that is infinite or NaN, which JSON cannot represent, is None.
    """
    try:
        fields = json.loads(line, parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _record(fields: dict[str, Any] | None) -> Record | None:
    """Create a record from the fields of a line; None if it is not one."""
    if fields is None:
        return None
    try:
        return Record.from_dict(fields)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _short_hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def fastest(results: Iterable[Measurement]) -> Measurement | None:
    """Return the fastest result. An invalid time never wins (see `is_duration_ns`)."""
    sound = [result for result in results if is_duration_ns(result.time_ns)]
    return min(sound, key=lambda result: (result.time_ns, result.name), default=None)


def final_records(records: Iterable[Record]) -> dict[str, Record]:
    """Return the last record of each job by id, in the order in which ids first occur."""
    last: dict[str, Record] = {}
    for record in records:
        if record.is_final:
            last[record.id] = record
    return last


def best_records(
    records: Iterable[Record], by: Callable[[Record], str] = lambda record: record.key
) -> dict[str, Record]:
    """Return the record with the fastest result of each group, among successful runs.

    Ties are decided by the name of the result, then the id of the job, so that the order in which
    jobs ran does not matter. Groups are in the order of their names.
    """
    last = final_records(records)
    chosen = best_of_final(last.values(), by)
    return {group: last[record.id] for group, record in chosen.items()}


def best_of_final(
    records: Iterable[Record], by: Callable[[Record], str] = lambda record: record.key
) -> dict[str, Record]:
    """Choose as `best_records` does, from final records, one per job, which are read once.

    To save memory, the chosen records come without their environment, their output and their other
    results.
    """
    chosen: dict[str, Record] = {}
    for record in records:
        group = by(record)
        if _rank(record) is not None and _is_better(record, chosen.get(group)):
            chosen[group] = _slim(record)
    return dict(sorted(chosen.items()))


def _slim(record: Record) -> Record:
    return replace(
        record, environment={}, stdout_tail="", stderr_tail="", results=(), omitted=(), strays=()
    )


def _is_better(record: Record, rival: Record | None) -> bool:
    return rival is None or (_rank(record) or ()) < (_rank(rival) or ())


def _rank(record: Record) -> tuple[float, str, str] | None:
    if record.outcome is not Outcome.OK or record.best is None:
        return None
    return (record.best.time_ns, record.best.name, record.id)
