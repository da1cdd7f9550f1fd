"""A column name has one dtype in all frames, so that frames can be joined."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import polars as pl
import pytest

import longpole
from longpole.rows.frames import row_bytes
from longpole.testing import TraceBuilder
from longpole.trace.trace import Trace

# What numbers the rows of each frame anew is of no use to another one.
FRAMES_OF_A_TRACE = [
    name
    for part in Trace.__mro__
    for name, value in vars(part).items()
    if not name.startswith("_") and hasattr(value, "attrname") and name != "metadata"
]


def frames():
    builder = (
        TraceBuilder()
        .header(deviceProperties=[{"id": 0, "name": "H100"}])
        .event(ph="M", name="thread_name", pid=100, tid=1, args={"name": "main"})
        .event(ph="C", name="memory", pid=100, ts=1, args={"bytes": 5})
        .event(ph="s", id=1, cat="ac2g", name="ac2g", pid=100, tid=1, ts=1)
        .step(1, (0, 100))
        .operator("aten::mm", (0, 60))
        .launch("gemm", call=(60, 65), work=(66, 90))
        .launch("ncclDevKernel_AllReduce", call=(66, 68), work=(80, 95), stream=9)
        .call("cudaDeviceSynchronize", (70, 99))
    )
    trace = builder.read()
    yield from ((name, getattr(trace, name)) for name in FRAMES_OF_A_TRACE)
    yield "busy", trace.busy(*trace.window)
    yield "gaps", trace.gaps(*trace.window)
    spans = trace.lanes.select("lane", **longpole.choose_window(trace).times())
    yield "times_within", trace.times_within(spans)
    path = trace.critical_path()
    for name in ("segments", "by_kind", "by_name", "slack", "nodes", "edges", "violations"):
        yield name, getattr(path, name)
    yield "sync_dependencies", path.sync_dependencies


def test_a_column_name_has_one_dtype_in_every_frame():
    dtypes = defaultdict(lambda: defaultdict(list))
    n_frames = 0
    for frame, table in frames():
        if not isinstance(table, pl.DataFrame):
            continue
        n_frames += 1
        for column, dtype in table.schema.items():
            dtypes[column][dtype].append(frame)
    assert n_frames >= 20
    differing = {name: dict(found) for name, found in dtypes.items() if len(found) > 1}
    assert differing == {}


def test_frames_join_on_what_has_the_same_name():
    trace = TraceBuilder().launch("gemm", call=(0, 5), work=(6, 20)).read()
    joined = trace.events.join(trace.lanes, on=["process", "thread"])
    assert joined.height == trace.events.height
    assert trace.events.join(trace.devices, on="device").height == 1
    assert trace.critical_path().by_name.join(trace.events, on="name").height >= 1


@pytest.mark.parametrize("count", [0, 1, 10_000, 10_001])
def test_rows_are_passed_as_four_bytes_each(count):
    rows = pl.Series("event", range(count), dtype=pl.Int64)
    assert row_bytes(rows) == b"".join(row.to_bytes(4, sys.byteorder) for row in range(count))


def test_a_summary_of_a_server_is_made_without_numpy(tmp_path):
    builder = TraceBuilder()
    for at in range(0, 500, 100):
        builder.annotation("step[DECODE bs=8]", (at, at + 40))
        call, work = (at + 20, at + 30), (at + 32, at + 90)
        builder.launch("model", call=call, work=work, by="cudaGraphLaunch")
    words = ["summary", str(builder.write(tmp_path / "trace.json"))]
    program = (
        "import sys; from longpole.cli import program; "
        f"code = program.run({words!r}); sys.exit(code or 'numpy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ran.returncode == 0
    assert b"iterations of an inference server" in ran.stdout
