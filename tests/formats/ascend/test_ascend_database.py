"""Databases of the Ascend profilers."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING

import polars as pl
import pytest

from ascend_profiles import BASE_US, write_database
from longpole.errors import TraceError
from longpole.formats.read import read_trace

if TYPE_CHECKING:
    from pathlib import Path

START_NS = BASE_US * 1000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write_database(tmp_path / "ascend_pytorch_profiler_1.db")


def test_a_database_gives_the_events_of_a_timeline_to_the_nanosecond(database: Path) -> None:
    events = read_trace(database).events
    found = events.select(
        "name", pl.col("kind").cast(pl.String), pl.col("start_ns") - START_NS, "duration_ns"
    )
    assert found.rows() == [
        ("ProfilerStep#3", "annotation", 0, 900_000),
        ("aten::mm", "operator", 10, 8_990),
        ("Node@launch", "runtime", 1_001, 1_001),
        ("Node@launch", "runtime", 12_000, 1_000),
        ("MatMul", "kernel", 3_003, 5_005),
        ("AI_CORE", "device_task", 3_000, 6_000),
        ("MEMCPY_ASYNC", "copy", 9_100, 100),
        ("Notify Wait", "device_task", 20_000, 70_000),
        ("Notify_Wait", "device_task", 20_000, 70_000),
        ("hcom_allReduce__9_0_1", "kernel", 19_000, 80_000),
    ]


def test_work_is_linked_and_placed(database: Path) -> None:
    trace = read_trace(database)
    assert trace.launches["call"].to_list() == [2, 2, 3]
    assert trace.events.filter(kind="kernel").select("device", "stream").rows() == [(1, 2), (1, 4)]
    collective = trace.collectives.row(0, named=True)
    assert (collective["group"], collective["bytes"]) == ("group-9", 256)
    assert trace.collective_waits["awaited_peer"].to_list() == [3]


@pytest.mark.parametrize(
    "table",
    ["PYTORCH_API", "CANN_API", "COMPUTE_TASK_INFO", "COMMUNICATION_TASK_INFO", "STRING_IDS"],
)
def test_a_missing_table_costs_what_it_would_have_told(tmp_path: Path, table: str) -> None:
    path = write_database(tmp_path / "a_profiler.db", without=(table,))
    assert read_trace(path).n_events > 0


def test_a_database_of_mindspore_has_its_operators_too(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("ALTER TABLE PYTORCH_API RENAME TO MINDSPORE_API")
    connection.close()
    assert read_trace(database).events.filter(kind="operator")["name"].to_list() == ["aten::mm"]


def test_reading_leaves_the_file_and_its_folder_alone(database: Path) -> None:
    before = (database.read_bytes(), sorted(database.parent.iterdir()))
    read_trace(database)
    assert (database.read_bytes(), sorted(database.parent.iterdir())) == before


def test_databases_without_events_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "analysis.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StepTraceTime (step TEXT)")
    with pytest.raises(TraceError, match="holds no events") as raised:
        read_trace(path)
    assert raised.value.code == "no_events"
    text = tmp_path / "other.db"
    text.write_text("{}")
    with pytest.raises(TraceError, match="not an SQLite database"):
        read_trace(text)


def test_a_database_cut_anywhere_is_an_error_or_a_part(database: Path, tmp_path: Path) -> None:
    whole = database.read_bytes()
    n_events = read_trace(database).n_events
    for percent in range(100):
        part = tmp_path / "cut_profiler.db"
        part.write_bytes(whole[: len(whole) * percent // 100])
        try:
            trace = read_trace(part)
        except TraceError:
            continue
        assert trace.n_events <= n_events


@pytest.mark.parametrize("cell", ["text", 0.5, b"\xff", float("inf")], ids=str)
@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("TASK.startNs", "bad_timestamp"),
        ("TASK.streamId", "invalid_number"),
        ("TASK.globalPid", "invalid_number"),
        ("PYTORCH_API.globalTid", "invalid_number"),
        ("CANN_API.connectionId", "invalid_number"),
        ("COMMUNICATION_OP.count", "invalid_number"),
        ("COMPUTE_TASK_INFO.globalTaskId", "not_an_event"),
    ],
)
def test_a_cell_of_the_wrong_type_is_counted_and_the_rest_is_read(
    database: Path, column: str, code: str, cell: object
) -> None:
    table, name = column.split(".")
    n_events = read_trace(database).n_events
    with sqlite3.connect(database) as connection:
        connection.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = 1", (cell,))  # noqa: S608
    trace = read_trace(database)
    n_lost = int(code == "bad_timestamp")
    counts = dict(trace.diagnostics.select("code", "count").iter_rows())
    assert (trace.n_events >= n_events - n_lost - 1, set(counts)) == (True, {code})


def test_a_text_that_is_none_is_counted_and_the_rest_is_read(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE STRING_IDS SET value = ? WHERE value = 'aten::mm'", (b"\xff",))
    trace = read_trace(database)
    assert dict(trace.diagnostics.select("code", "count").iter_rows()) == {"not_an_event": 1}
    assert trace.n_events > 0


def test_a_name_in_the_schema_that_is_not_utf_8_is_an_error_of_the_file(database: Path) -> None:
    content = database.read_bytes().replace(b"COMMUNICATION_OP", b"\xffOMMUNICATION_OP")
    content = re.sub(rb'CREATE TABLE (?="?\xff)', b"CREATE TABXE ", content)
    database.write_bytes(content)
    with pytest.raises(TraceError, match="a name that is not UTF-8"):
        read_trace(database)
