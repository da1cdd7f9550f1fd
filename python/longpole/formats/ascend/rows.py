"""Reads rows of an SQLite database by column names, without writing anything."""

from __future__ import annotations

from contextlib import closing
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from longpole._core import is_confined
from longpole.files.opening import open_file, read_bytes
from longpole.formats.ascend.problems import profile_error

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator, Sequence

MAGIC: Final = b"SQLite format 3\x00"
_LOG_VERSIONS: Final = slice(18, 20)
_TIMES: Final = frozenset({"startNs", "endNs", "timestampNs"})
_TEXTS: Final = frozenset(
    {
        *("name", "type", "taskType", "opName", "groupName", "inputShapes"),
        *("inputDtypes", "dataType", "algType", "linkType", "transportType", "component"),
    }
)
"""Columns that contain a string or a string id."""
_NUMBERS: Final = frozenset({"freq", "hbm", "bandwidth", "throughput", "size"})
_INTEGERS: Final = _TIMES | {
    *("id", "globalTid", "globalPid", "globalTaskId", "taskId", "streamId", "deviceId"),
    *("connectionId", "sequenceNumber", "fwdThreadId", "planeId", "srcRank", "dstRank"),
    *("count", "hbmId", "llcId"),
}
_LONGEST_TIME: Final = 20
_MOST_NAMES: Final = 5
_HINT: Final = (
    "give a *_profiler_*.db file of Ascend, an export of `nsys export --type sqlite`, or a "
    "database of rocprofv3 (--output-format rocpd); of older versions of rocprof, give results.json"
)
_EVENT_TABLES: Final = ("TASK", "CANN_API", "PYTORCH_API", "FRAMEWORK_API", "COMMUNICATION_OP")
_OF_OTHERS: Final = ("rocpd_", "CUPTI_ACTIVITY_")


def is_of_other_profiler(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a database written by a profiler for other devices."""
    with open_file(path) as file:
        if file.read(len(MAGIC)) != MAGIC:
            return False
    with closing(Database(path)) as database:
        return any(name.startswith(_OF_OTHERS) for name in database.names)


def open_database(path: str | os.PathLike[str]) -> Database:
    """Open a database of events.

    Raises
    ------
    TraceError
        The file is not a database of the Ascend profilers, or contains results without events.
    OSError
        The file cannot be opened.
    """
    with open_file(path) as file:
        head = file.read(len(MAGIC))
    if head != MAGIC:
        raise profile_error(
            path, "not an SQLite database", "unknown_format", "give a *_profiler_*.db file"
        )
    database = Database(path)
    if database.has("StepTraceTime") or database.has("CommAnalyzerTime"):
        reason = "a database of results (analysis.db), which holds no events"
        raise profile_error(path, reason, "no_events", "give the *_profiler_*.db file next to it")
    if not any(database.has(table) for table in _EVENT_TABLES):
        shown = ", ".join(database.names[:_MOST_NAMES]) or "none"
        reason = f"an SQLite database of no profiler that longpole reads; its tables: {shown}"
        raise profile_error(path, reason, "unknown_format", _HINT)
    return database


class Database:
    """A database whose strings are loaded."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import sqlite3

        self._path = Path(path)
        if is_confined():
            self._connection = _copied(self._path)
        else:
            # A viewer may leave its journal next to the file; reading must not change it.
            address = f"file:{quote(str(self._path.absolute()))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        self.n_lost_rows = 0
        """Number of string and task rows left out so far."""
        self._connection.text_factory = lambda raw: raw.decode(errors="replace")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @cached_property
    def names(self) -> list[str]:
        """Names of the tables."""
        tables = self._query("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [str(row[0]) for row in tables]

    @cached_property
    def _columns(self) -> dict[str, set[str]]:
        return {name: self._columns_of(name) for name in self.names}

    def _columns_of(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._query(f"PRAGMA table_info({_quoted(table)})")}

    def has(self, table: str) -> bool:
        """Whether the database has a table with this name."""
        return table in self._columns

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with the given columns; None for columns it lacks.

        A cell of the wrong type is None too, and is counted in `n_damaged` of its row.
        """
        known = self._columns.get(table, set())
        if not any(column in known for column in columns):
            return
        chosen = [_quoted(name) if name in known else "NULL" for name in columns]
        required = [column for column in columns if column in _TIMES]
        if any(column not in known for column in required):
            return
        for values in self._query(f"SELECT {', '.join(chosen)} FROM {_quoted(table)}"):  # noqa: S608 - the names come from the file's own schema and are quoted
            row = dict(zip(columns, values, strict=True))
            row |= {name: _whole(row[name]) for name in required}
            wrong = [name for name, cell in row.items() if not _is_of_type(name, cell)]
            yield {**row, **dict.fromkeys(wrong), "n_damaged": len(wrong)}

    def by_task(self, table: str, columns: Sequence[str]) -> dict[Any, dict[str, Any]]:
        """Return the rows of a table, keyed by task."""
        rows = list(self.rows(table, ("globalTaskId", *columns)))
        is_lost = [bool(row["n_damaged"]) and row["globalTaskId"] is None for row in rows]
        self.n_lost_rows += sum(is_lost)
        return {row["globalTaskId"]: row for row in rows}

    def connections(self) -> dict[Any, list[int]]:
        """Return the connections by id; an id may have several."""
        found: dict[Any, list[int]] = {}
        for row in self.rows("CONNECTION_IDS", ("id", "connectionId")):
            if row["connectionId"] is not None:
                found.setdefault(row["id"], []).append(row["connectionId"])
        return found

    def program_and_device(self) -> tuple[int, int]:
        """Return the process and the device of the tasks; 0 if not recorded."""
        row = next(self.rows("TASK", ("globalPid", "deviceId")), None)
        if row is None:
            return 0, 0
        return row["globalPid"] or 0, row["deviceId"] or 0

    @cached_property
    def _texts(self) -> dict[int, str]:
        return self._named("STRING_IDS", "value")

    def _named(self, table: str, column: str) -> dict[int, str]:
        """Return the strings of a table by number, and count values of other types."""
        rows = list(self.rows(table, ("id", column)))
        found = {row["id"]: row[column] for row in rows if isinstance(row[column], str)}
        self.n_lost_rows += sum(not isinstance(row[column], str) for row in rows)
        return found

    def text(self, number: Any) -> str:
        """Return the string with a number; the number itself if there is no such string."""
        found = self._texts.get(number)
        return str("" if number is None else number) if found is None else found

    def text_or_none(self, number: Any) -> str | None:
        """Return the string with a number, or None."""
        return self._texts.get(number)

    @cached_property
    def _enumerations(self) -> dict[str, dict[int, str]]:
        tables = (table for table in self._columns if table.startswith("ENUM_"))
        return {table: self._named(table, "name") for table in tables}

    def enumerated(self, table: str, number: Any) -> str | None:
        """Return the name that a table of names has for a number."""
        return self._enumerations.get(table, {}).get(number)

    def _query(self, statement: str) -> Iterator[tuple[Any, ...]]:
        import sqlite3

        try:
            yield from self._connection.execute(statement)
        # The error message can contain a name that is not UTF-8.
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            is_text = isinstance(error, UnicodeDecodeError)
            reason = "its schema has a name that is not UTF-8" if is_text else str(error)
            raise profile_error(
                self._path,
                f"the database is damaged: {reason}",
                "malformed_database",
                "copy it again, or export the profile as text",
            ) from error


def _copied(path: Path) -> sqlite3.Connection:
    """Open a copy in memory, because SQLite follows links when it opens a file by name."""
    import sqlite3

    content = bytearray(read_bytes(path))
    content[_LOG_VERSIONS] = b"\x01\x01"  # no write-ahead log in memory
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        connection.deserialize(bytes(content))
    except (OverflowError, MemoryError, sqlite3.Error) as error:
        reason = f"the database cannot be copied to memory: {error}"
        hint = "ask about it on the command line"
        raise profile_error(path, reason, "malformed_database", hint) from error
    return connection


def _whole(time: Any) -> Any:
    """Return a time as an integer, also if it is stored as a string or a float."""
    if isinstance(time, float) and time.is_integer():
        return int(time)
    is_integer = isinstance(time, str) and len(time) < _LONGEST_TIME and time.isdecimal()
    return int(time) if is_integer else time


def _is_of_type(column: str, cell: Any) -> bool:
    """Whether a cell is null or has its column's type; SQLite stores any value in any column."""
    if cell is None:
        return True
    if column in _TEXTS:
        return isinstance(cell, int | str)
    if column in _NUMBERS:
        return isinstance(cell, int | float) and isfinite(cell)
    return column not in _INTEGERS or isinstance(cell, int)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# A file that is generated while it is read.


class PieceFile:
    """A read-only file whose chunks of bytes are generated when they are read.

    Parameters
    ----------
    pieces
        Contents of the file, in order, cut anywhere.

    Examples
    --------
    >>> file = PieceFile(iter([b"ab", b"cde", b"f"]))
    >>> file.read(3), file.read(1), file.read(), file.read()
    (b'abc', b'd', b'ef', b'')
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes: at least one, except at the end, and at most `size`."""
        pieces = [self._rest]
        length = len(self._rest)
        while length < size or size < 0:
            piece = next(self._pieces, None)
            if piece is None:
                break
            pieces.append(piece)
            length += len(piece)
        whole = b"".join(pieces)
        if size < 0:
            size = len(whole)
        self._rest = whole[size:]
        return whole[:size]
