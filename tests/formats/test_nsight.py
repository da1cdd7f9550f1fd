"""SQLite exports of Nsight Systems: the same program gives the same tables as under Kineto."""

import json
import shutil
import sqlite3
from contextlib import closing

import polars as pl
import pytest

from longpole import read_trace
from longpole.cli import program
from longpole.errors import TraceError
from longpole.formats.convert.repaired import repair
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight
from real_traces import SHARED

SEEDS, LONG_SEEDS = 12, 200
KINDS = (
    *("kernel", "copy", "fill", "runtime", "driver"),
    *("annotation", "operator", "synchronization"),
)
COLUMNS = ("kind", "category", "name", "start_ns", "duration_ns", "process", "thread", "device")
KEY = ("kind", "name", "start_ns", "duration_ns", "thread")
ARGUMENTS = {
    "kernel": ("grid", "block", "registers per thread", "shared memory", "graph node id"),
    "gpu_memcpy": ("bytes",),
    "gpu_memset": ("bytes",),
    "cuda_sync": ("cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_record_corr_id"),
}
INTERIOR_PAGE = 5
ROWS_FOR_A_THREAD = 20_000
FORMATS = SHARED / "formats"
REAL = ("nsys_h100_2gpu_1s.sqlite", "nsys_mock.sqlite")

needs_files = pytest.mark.skipif(not FORMATS.is_dir(), reason="needs ../shared/data/formats")


def both(run, folder):
    """Read a run as Kineto and as Nsight Systems would have recorded it."""
    run.write(folder / "kineto.json")
    write_nsight(run, folder / "nsight.sqlite")
    return read_trace(folder / "kineto.json"), read_trace(folder / "nsight.sqlite")


def told(trace):
    """Return what both formats can say of events, in order of content."""
    events = trace.events.filter(pl.col("kind").cast(pl.String).is_in(KINDS))
    texts = pl.col(pl.Categorical).cast(pl.String)
    rows = events.select(*COLUMNS, "stream", "correlation").with_columns(texts)
    return rows.sort(rows.columns)


def arguments(trace, category):
    """Return the arguments of a category that both formats have, by event."""
    table = trace.args(category)
    wanted = [name for name in ARGUMENTS[category] if name in table.columns]
    rows = table.select("event", *wanted).join(trace.events.select("event", *KEY), on="event")
    rows = rows.drop("event").with_columns(pl.col(pl.Categorical).cast(pl.String))
    return rows.select(sorted(rows.columns)).sort(KEY)


def launches(trace):
    """Return who launched what, by names and times."""
    texts = pl.col(pl.Categorical).cast(pl.String)
    events = trace.events.select("event", *KEY).with_columns(texts)
    pairs = trace.launches.select("event", "call").join(events, on="event", how="left")
    pairs = pairs.join(events, left_on="call", right_on="event", how="left", suffix="_of_call")
    return pairs.drop("event", "call").sort(pl.all())


def path(trace):
    """Return the critical path of the whole trace by kinds, names and times."""
    segments = trace.critical_path(whole=True).segments
    rows = segments.select("kind", "name", "start_ns", "duration_ns", "evidence", "certainty")
    return rows.with_columns(pl.col(pl.Categorical).cast(pl.String))


@pytest.mark.parametrize(
    "seeds",
    [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)],
    ids=len,
)
def test_a_simulated_program_gives_the_same_tables_links_and_path(seeds, tmp_path):
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        kineto, nsight = both(simulate("random", seed=seed), folder)
        assert nsight.status == "ok", seed
        assert told(nsight).equals(told(kineto)), seed
        for category in set(kineto.events["category"].cast(pl.String)) & set(ARGUMENTS):
            assert arguments(nsight, category).equals(arguments(kineto, category)), (seed, category)
        assert launches(nsight).equals(launches(kineto)), seed
        assert path(nsight).equals(path(kineto)), seed


def test_without_synchronisation_records_the_tables_are_the_same_too(tmp_path):
    run = simulate("training", seed=2, steps=2)
    run.write(tmp_path / "kineto.json", sync_records=False)
    write_nsight(run, tmp_path / "nsight.sqlite", sync_records=False)
    traces = [read_trace(tmp_path / name) for name in ("kineto.json", "nsight.sqlite")]
    assert told(traces[0]).equals(told(traces[1]))
    assert path(traces[0]).equals(path(traces[1]))


@pytest.mark.parametrize("name", REAL)
@needs_files
def test_counts_and_sums_of_a_real_export_are_those_of_sql(name):
    tables = {
        "kernel": "CUPTI_ACTIVITY_KIND_KERNEL",
        "gpu_memcpy": "CUPTI_ACTIVITY_KIND_MEMCPY",
        "gpu_memset": "CUPTI_ACTIVITY_KIND_MEMSET",
        "cuda_sync": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    }
    trace = read_trace(FORMATS / name)
    assert trace.status == "ok"
    sums = trace.events.group_by(pl.col("category").cast(pl.String)).agg(
        pl.len(), pl.col("duration_ns").sum()
    )
    ours = {category: (n_rows, sum_ns) for category, n_rows, sum_ns in sums.iter_rows()}
    address = f"file:{FORMATS / name}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        known = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        for category, table in tables.items():
            if table not in known:
                assert category not in ours
                continue
            row = database.execute(f"SELECT count(*), sum(end - start) FROM {table}").fetchone()  # noqa: S608 - names of this file
            assert ours[category] == row
        statement = (
            "SELECT eventClass = 1, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME"
            " GROUP BY 1"
        )
        for is_driver, n_rows, sum_ns in database.execute(statement):
            category = "cuda_driver" if is_driver else "cuda_runtime"
            assert ours[category] == (n_rows, sum_ns)


@needs_files
def test_launches_of_a_real_export_are_those_of_sql():
    path = FORMATS / REAL[0]
    trace = read_trace(path)
    parts = " UNION ALL ".join(
        "SELECT correlationId AS number, globalPid >> 24 AS process"  # noqa: S608 - names of this file
        f" FROM CUPTI_ACTIVITY_KIND_{kind}"
        for kind in ("KERNEL", "MEMCPY", "MEMSET")
    )
    statement = (
        f"SELECT count(*) FROM ({parts}) WHERE EXISTS (SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r"  # noqa: S608 - names of this file
        " WHERE r.correlationId = number AND r.globalTid >> 24 = process)"
    )
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        (n_linked,) = database.execute(statement).fetchone()
    assert trace.launches["call"].is_not_null().sum() == n_linked


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "report.sqlite"
    write_nsight(simulate("training", seed=1, steps=2), path)
    return path


def changed(path, statements):
    with closing(sqlite3.connect(path)) as database:
        database.executescript(statements)
        database.commit()
    return path


def test_two_processes_with_the_same_numbers_keep_to_themselves(export):
    shift = 1000 << 24
    statements = "".join(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} SELECT * FROM CUPTI_ACTIVITY_KIND_{table};"  # noqa: S608 - names of this file
        f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET {column} = {column} + {shift}, start = start + 50,"
        " end = end + 50 WHERE _rowid_ > (SELECT max(_rowid_) / 2 FROM"
        f" CUPTI_ACTIVITY_KIND_{table});"
        for table, column in (
            *(("KERNEL", "globalPid"), ("MEMCPY", "globalPid"), ("MEMSET", "globalPid")),
            ("RUNTIME", "globalTid"),
        )
    )
    alone = read_trace(export)
    both_processes = read_trace(changed(export, statements))
    assert both_processes.launches.height == 2 * alone.launches.height
    called = both_processes.launches.select("event", "call").join(
        both_processes.events.select("event", "start_ns", "thread", "stream"), on="event"
    )
    calls = both_processes.events.select("event", "process")
    of_call = called.join(calls, left_on="call", right_on="event")
    first = of_call.filter(pl.col("stream") < 1_000_000)["process"].unique().to_list()
    second = of_call.filter(pl.col("stream") >= 1_000_000)["process"].unique().to_list()
    assert first == ["31415"]
    assert second == ["32415"]


def test_columns_that_an_older_version_lacks_are_null(export):
    columns = ("registersPerThread", "gridX", "graphNodeId", "dynamicSharedMemory")
    drops = "".join(
        f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column};" for column in columns
    )
    before, trace = read_trace(export), read_trace(changed(export, drops))
    assert told(trace).equals(told(before))
    assert "grid" not in trace.args("kernel").columns
    assert "registers per thread" not in trace.args("kernel").columns


def test_a_graph_that_was_recorded_as_a_whole_is_said(export):
    table = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE AS SELECT start, end, deviceId, contextId,"
        " streamId, correlationId, globalPid, 5 AS graphId FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1;"
    )
    trace = read_trace(changed(export, table))
    [graph] = trace.events.filter(pl.col("category") == "cuda_graph").iter_rows(named=True)
    assert (graph["name"], graph["kind"]) == ("CUDA graph 5", "kernel")
    assert trace.diagnostics["code"].to_list() == ["whole_graph"]


def test_views_triggers_and_virtual_tables_are_not_used(export):
    statements = (
        "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMSET RENAME TO hidden;"
        "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS SELECT * FROM hidden;"
        "CREATE VIEW OSRT_API AS SELECT * FROM OSRT_API;"
    )
    n_fills = read_trace(export).events.filter(pl.col("kind") == "fill").height
    trace = read_trace(changed(export, statements))
    assert n_fills > 0
    assert trace.events.filter(pl.col("kind") == "fill").height == 0


def test_values_of_a_wrong_type_are_counted_and_left_out(export):
    statements = (
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, contextId, streamId, bytes)"
        " VALUES ('soon', 1, 0, 1, 7, 4), (9223372036854775807, 1, 0, 1, 7, 4),"
        " (50, 20, 0, 1, 7, 4), (-5, 'later', 0, 1, 7, x'00');"
    )
    before, trace = read_trace(export), read_trace(changed(export, statements))
    assert trace.events.height == before.events.height + 2
    found = dict(trace.diagnostics.select("code", "count").iter_rows())
    assert found == {
        "missing_timestamp": 1,
        "bad_timestamp": 1,
        "negative_duration": 1,
        "negative_timestamp": 1,
        "missing_duration": 1,
    }


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_a_database_with_changes_beside_it_is_refused(export, ending):
    export.with_name(export.name + ending).write_bytes(b"changes")
    with pytest.raises(TraceError, match=f"FILE{ending} next to it") as caught:
        read_trace(export)
    assert caught.value.code == "unfinished_database"
    assert "wal_checkpoint" in caught.value.hint


def code_of(path):
    """Return the error of a damaged file, or the first finding."""
    try:
        return read_trace(path).diagnostics["code"][0]
    except TraceError as error:
        return error.code


def test_a_truncated_database_is_recovered_or_refused(export):
    whole = export.read_bytes()
    for share in (0.2, 0.5, 0.9):
        export.write_bytes(whole[: int(len(whole) * share)])
        assert code_of(export) in {"damaged_database", "other_kind_of_file", "damaged_table"}


def last_leaf(path, table):
    """Return where the last page with rows of a table begins and ends, but for the rightmost."""
    whole = path.read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    with closing(sqlite3.connect(path)) as database:
        [page] = database.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    begin = size * (page - 1)
    if whole[begin] == INTERIOR_PAGE:
        n_cells = int.from_bytes(whole[begin + 3 : begin + 5], "big")
        cell = begin + 12 + 2 * (n_cells - 1)
        place = begin + int.from_bytes(whole[cell : cell + 2], "big")
        begin = size * (int.from_bytes(whole[place : place + 4], "big") - 1)
    return begin, begin + size


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_KERNEL", "StringIds", "NVTX_EVENTS"])
def test_an_export_with_a_page_of_zeros_has_no_verdict(table, export, capsys, said):
    if table == "StringIds":
        changed(export, "UPDATE StringIds SET value = value || printf('%.*c', 500, 'x');")
    begin, end = last_leaf(export, table)
    damaged = bytearray(export.read_bytes())
    damaged[begin:end] = bytes(end - begin)
    export.write_bytes(damaged)
    trace = read_trace(export)
    assert "damaged_table" in trace.diagnostics["code"].to_list()
    assert trace.damage.is_grave
    assert program.run(["summary", str(export)]) == 4
    text = " ".join(capsys.readouterr().out.split())
    said.within(text)
    assert "at byte" not in text


@pytest.mark.parametrize(("n_lost", "is_grave"), [(1, False), (20, True)])
def test_rows_that_are_missing_inside_a_table_are_counted(n_lost, is_grave, export):
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    before = read_trace(export).events.height
    lost = f"DELETE FROM {table} WHERE _rowid_ > 5 AND _rowid_ <= {5 + n_lost};"  # noqa: S608 - names of this file
    trace = read_trace(changed(export, lost))
    assert trace.events.height == before - n_lost
    assert trace.diagnostics.select("code", "count").rows() == [("missing_rows", n_lost)]
    assert trace.damage.is_grave is is_grave


def test_a_text_whose_last_page_was_lost_is_cut_and_said(export):
    page = 4096
    with closing(sqlite3.connect(export)) as database:
        value = "gemm_" + "x" * (2 * page)
        database.execute(
            "UPDATE StringIds SET value = ? || value WHERE value LIKE 'void%'", [value]
        )
        database.commit()
    whole = export.read_bytes()
    full = range(0, len(whole), page)
    # The last page of an overflow chain names no next one.
    ends = [at for at in full if whole[at : at + 4] == bytes(4) and b"xxxx" in whole[at : at + 99]]
    assert ends
    damaged = bytearray(whole)
    damaged[ends[0] : ends[0] + page] = bytes(page)
    before = read_trace(export)
    export.write_bytes(damaged)
    trace = read_trace(export)
    assert trace.diagnostics.select("code", "count").rows() == [("damaged_text", 1)]
    assert trace.events.height == before.events.height
    names = [trace.events["name"].cast(pl.String).to_list() for trace in (before, trace)]
    cut = {(one, two) for one, two in zip(*names, strict=True) if one != two}
    assert cut
    assert all(one.startswith(two) and "\0" not in two for one, two in cut)


def test_a_row_with_a_value_that_is_too_long_is_left_out_and_counted(export):
    before = read_trace(export)
    megabytes = 65
    text = (
        "INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, text) VALUES (?, ?, 59, 0, ?)"
    )
    with closing(sqlite3.connect(export)) as database:
        database.executemany(text, [(1, 2, "x" * (megabytes << 20)), (3, 4, "behind")])
        database.commit()
    trace = read_trace(export)
    assert trace.diagnostics.select("code", "count").rows() == [("value_too_long", 1)]
    assert trace.events.height == before.events.height + 1
    assert "behind" in trace.events["name"].cast(pl.String).to_list()


def test_a_database_without_its_write_ahead_log_is_said(export, capsys, said):
    changed(export, "PRAGMA journal_mode = WAL;")
    assert not export.with_name(f"{export.name}-wal").exists()
    trace = read_trace(export)
    assert trace.diagnostics["code"].to_list() == ["no_write_ahead_log"]
    assert trace.damage is None
    program.run(["check", str(export)])
    said.within(" ".join(capsys.readouterr().out.split()))


def test_a_second_thread_reads_the_same_rows(export):
    more = "".join(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} SELECT * FROM CUPTI_ACTIVITY_KIND_{table};"  # noqa: S608 - names of this file
        for table in ("KERNEL", "RUNTIME")
        for _ in range(9)
    )
    changed(export, more)
    one, two = (read_trace(export, threads=threads) for threads in (1, 2))
    assert one.events.filter(pl.col("kind") == "runtime").height > ROWS_FOR_A_THREAD
    assert two.events.equals(one.events)
    assert read_trace(export, threads=2, max_events=10).events.height == 10


def test_another_database_and_a_stream_are_refused_with_what_to_do(export, tmp_path):
    other = changed(tmp_path / "other.sqlite", "CREATE TABLE users (id INTEGER);")
    with pytest.raises(TraceError, match="without the tables of Nsight Systems"):
        read_trace(other)
    with export.open("rb") as file:
        for source in (export.read_bytes(), file):
            with pytest.raises(TraceError, match="in a stream") as caught:
                read_trace(source)
            assert "path of the file" in caught.value.hint


def test_a_report_is_refused_with_the_command_that_exports_it(tmp_path, capsys):
    report = tmp_path / "my run.nsys-rep"
    report.write_bytes(b"\0binary")
    assert program.run(["summary", str(report)]) == 3
    text = " ".join(capsys.readouterr().err.split())
    assert f"nsys export --type sqlite '{report}'" in text


def test_a_path_with_marks_of_an_address_is_read(export, tmp_path):
    odd = tmp_path / "a?mode=rw#b%41 c.sqlite"
    shutil.copy(export, odd)
    assert read_trace(odd).events.equals(read_trace(export).events)


def test_an_export_is_written_as_json_and_read_back(export, tmp_path):
    trace = read_trace(export)
    repair(export, tmp_path / "trace.json.gz")
    again = read_trace(tmp_path / "trace.json.gz")
    assert again.status == "ok"
    assert told(again).equals(told(trace))
    assert again.base_time_ns == trace.base_time_ns
    for category in ("kernel", "gpu_memcpy"):
        assert arguments(again, category).equals(arguments(trace, category))


def test_an_export_is_saved_and_opened_again(export, tmp_path):
    trace = read_trace(export)
    trace.save(tmp_path / "trace.longpole")
    assert read_trace(tmp_path / "trace.longpole").events.equals(trace.events)


def test_reading_stops_where_the_caller_wants(export):
    assert read_trace(export, max_events=10).events.height == 10


def ranges_alone(path, length):
    with closing(sqlite3.connect(path)) as database:
        database.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId);
        """)
        rows = [(at, at + length, 59, "load", 7) for at in range(1_000, 2_000, 100)]
        database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, NULL)", rows)
        database.commit()
    return str(path)


def test_an_export_with_ranges_alone_has_the_table_of_them(tmp_path, capsys, said):
    path = ranges_alone(tmp_path / "ranges.sqlite", 60)
    assert program.run(["table", path, "annotations", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["data"]["rows"]
    assert (row["name"], row["count"], row["duration_ns"]) == ("load", 10, 600)
    assert program.run(["summary", path]) == 4
    said.within(" ".join(capsys.readouterr().out.split()))


def test_exports_with_ranges_alone_are_compared_by_their_length(tmp_path, capsys, said):
    base, new = (ranges_alone(tmp_path / f"{length}.sqlite", length) for length in (40, 80))
    assert program.run(["diff", base, new]) == 4
    printed = " ".join(capsys.readouterr().out.split())
    said.within(printed)
    assert "different programs" not in printed
    assert program.run(["diff", base, new, "--same-program", "--json"]) == 4
    data = json.loads(capsys.readouterr().out)["data"]
    assert (data["similarity"], data["is_stated"]) == (None, True)
    assert data["change"] == pytest.approx(40 / 940)
