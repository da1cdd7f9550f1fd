"""Databases of rocmProfileData: every version of its schema gives the same events."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import longpole
from real_traces import SHARED

SCHEMAS = {
    1: """
        CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);
        CREATE TABLE rocpd_kernelop (op_ptr_id INTEGER PRIMARY KEY, gridX, gridY, gridz,
          workgroupX, workgroupY, workgroupZ, groupSegmentSize, kernelName_id);
        CREATE TABLE rocpd_copyop (op_ptr_id INTEGER PRIMARY KEY, size, src, dst, sync, pinned);
    """,
    2: """
        CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);
        CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, stream, gridX, gridY, gridZ,
          workgroupX, workgroupY, workgroupZ, groupSegmentSize, kernelName_id);
        CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, stream, size, kind);
    """,
    3: """
        CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id,
          domain_id, category_id);
        CREATE TABLE rocpd_ustring (id INTEGER PRIMARY KEY, string TEXT);
        CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, stream, gridX, gridY, gridZ,
          workgroupX, workgroupY, workgroupZ, groupSegmentSize, kernelName_id);
        CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, stream, size, kind);
    """,
}
COMMON = """
    CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
    CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, completionSignal,
      start, end, description_id, opType_id);
    CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id, op_id);
    CREATE TABLE rocpd_monitor (id INTEGER PRIMARY KEY, deviceType, deviceId, monitorType, start,
      end, value);
"""
FIRST = 1 << 32
"""Number of the first call: each process counts from another."""


class Database:
    """A recording of one thread: each call launches at most one activity."""

    def __init__(self, path, version):
        self.database = sqlite3.connect(path)
        self.version = version
        self.database.executescript(COMMON + SCHEMAS[version])
        self.texts = {}
        self.n_calls = 0

    def text(self, text, table="rocpd_string"):
        if (table, text) not in self.texts:
            done = self.database.execute(f"INSERT INTO {table}(string) VALUES (?)", (text,))  # noqa: S608
            self.texts[table, text] = done.lastrowid
        return self.texts[table, text]

    def insert(self, table, *values):
        marks = ", ".join("?" * len(values))
        self.database.execute(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608

    def call(self, name, start, end, args="", domain="hip"):
        number = FIRST + self.n_calls
        self.n_calls += 1
        of_args = self.text(args, "rocpd_ustring" if self.version == 3 else "rocpd_string")
        domains = (self.text(domain), self.text("")) if self.version == 3 else ()
        self.insert("rocpd_api", number, 7, 8, start, end, self.text(name), of_args, *domains)
        return number

    def activity(self, call, kind, start, end, *, name="", gpu=0):
        number = call + 1_000
        text = self.text(name)
        self.insert("rocpd_op", number, gpu, 2, 0, "", start, end, text, self.text(kind))
        self.insert("rocpd_api_ops", None, call, number)
        sizes = (256, 1, 1)
        if kind == "KernelExecution":
            grid = (4 * 256, 1, 1) if self.version == 1 else (4, 1, 1)
            row = (*grid, *sizes, 16, text)
            if self.version == 1:
                self.insert("rocpd_kernelop", number, *row)
            else:
                self.insert("rocpd_kernelapi", call, "0x0", *row)
        elif self.version == 1 and kind.startswith("Copy"):
            self.insert("rocpd_copyop", number, 4096, 0, 0, 0, 0)
        elif kind.startswith("Copy"):
            self.insert("rocpd_copyapi", call, "0x0", 4096, 1)


@pytest.fixture(params=sorted(SCHEMAS))
def trace(request, tmp_path):
    path = tmp_path / "trace.rpd"
    made = Database(path, request.param)
    with closing(made.database):
        made.call("UserMarker", 900, 9_000, "step 1", "roctx")
        copy = made.call("hipMemcpyAsync", 1_000, 1_100)
        made.activity(copy, "CopyHostToDevice", 1_200, 1_700)
        launch = made.call("hipLaunchKernel", 2_000, 2_100)
        made.activity(launch, "KernelExecution", 2_300, 5_300, name="_Z4gemmPf.kd")
        wait = made.call("hipStreamWaitEvent", 2_200, 2_250)
        made.activity(wait, "Barrier", 2_260, 5_300)
        fill = made.call("hipMemsetAsync", 5_400, 5_450)
        made.activity(fill, "FillBuffer", 5_500, 5_600)
        other = made.call("UserMarker", 50, 60, "x", "roctx")
        made.activity(other, "UserMarker", 1, 2, name="x", gpu=-1)
        made.insert("rocpd_monitor", None, "gpu", 0, "sclk", 3_000, 4_000, "1700")
        made.database.commit()
    return longpole.read_trace(path)


def rows(trace, *columns, kind):
    return trace.events.filter(kind=kind).select(*columns).rows()


def test_activities_have_their_device_queue_and_launch(trace):
    assert trace.format == "rpd"
    times = ("start_ns", "duration_ns")
    assert rows(trace, "name", *times, "device", "stream", kind="kernel") == [
        ("gemm(float*)", 2_300, 3_000, 0, 2)
    ]
    assert rows(trace, "name", *times, kind="copy") == [("Memcpy HtoD", 1_200, 500)]
    assert rows(trace, "name", *times, kind="fill") == [("Memset (Device)", 5_500, 100)]
    assert rows(trace, "name", *times, kind="device_task") == [("Barrier", 2_260, 3_040)]
    assert trace.warning_counts["unlinked_device_work"] == 0
    assert trace.warning_counts["device_work"] == 3


def test_launches_have_sizes_in_blocks_and_copies_their_bytes(trace):
    [kernel] = trace.args("kernel").to_dicts()
    assert (str(kernel["grid"]), str(kernel["block"])) == ("[4, 1, 1]", "[256, 1, 1]")
    assert kernel["shared memory"] == 16
    assert trace.args("gpu_memcpy")["bytes"].to_list() == [4096]


def test_ranges_and_samples_of_a_recording_are_read(trace):
    [step, _] = rows(trace, "name", "duration_ns", kind="annotation")
    assert step == ("step 1", 8_100)
    [sample] = trace.counters.to_dicts()
    assert (sample["name"], sample["time_ns"], sample["value"]) == ("GPU 0 sclk", 3_000, 1_700)


def test_the_device_is_the_longest_pole(trace, tmp_path):
    assert longpole.summary(trace) is not None
    trace.save(tmp_path / "saved.longpole")
    saved = longpole.read_trace(tmp_path / "saved.longpole")
    assert saved.events.equals(trace.events)


def test_a_database_with_the_least_tables_is_read():
    path = SHARED / "cases/answers/rocm_api_op.db"
    if not path.exists():
        pytest.skip("needs the shared cases")
    trace = longpole.read_trace(path)
    assert trace.warning_counts["device_work"] == 8
    assert trace.warning_counts["unlinked_device_work"] == 0
