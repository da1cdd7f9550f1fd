"""Databases of rocpd and JSON of `rocprofv3`: the same program gives the same tables."""

import gzip
import json
import sqlite3
from collections import Counter
from contextlib import closing

import polars as pl
import pytest

from longpole import read_trace
from longpole.formats.convert.repaired import repair
from oracles.simulator import simulate
from oracles.simulator.rocpd import FILL_KERNEL, write_rocpd, write_rocprof_json
from real_traces import SHARED

SEEDS, LONG_SEEDS = 6, 200
KINDS = ("kernel", "copy", "runtime", "driver", "annotation")
KEY = ("kind", "name", "start_ns", "duration_ns", "process", "thread", "device", "stream")
REAL = SHARED / "formats" / "rocprof_results.json.gz"
WRITERS = {
    "inline.db": write_rocpd,
    "tracks.db": lambda run, path: write_rocpd(run, path, tracks=True),
    "results.json": write_rocprof_json,
}
needs_file = pytest.mark.skipif(not REAL.is_file(), reason="needs ../shared/data/formats")


def told(trace):
    """Return what the formats can say of events; a copy has its direction only.

    A memset is a kernel of the HIP runtime.
    """
    events = trace.events.with_columns(pl.col(pl.Categorical).cast(pl.String))
    is_fill = pl.col("kind") == "fill"
    events = events.with_columns(
        pl.when(is_fill).then(pl.lit("kernel")).otherwise(pl.col("kind")).alias("kind"),
        pl.when(is_fill).then(pl.lit(FILL_KERNEL)).otherwise(pl.col("name")).alias("name"),
    ).with_columns(
        pl.when(pl.col("kind") == "copy")
        .then(pl.col("name").str.extract(r"^(Memcpy \w+)").str.replace("PtoP", "DtoD"))
        .otherwise(pl.col("name"))
        .alias("name")
    )
    rows = events.filter(pl.col("kind").is_in(KINDS)).select(*KEY, "event")
    return rows.sort(KEY)


def launches(trace):
    """Return who launched what."""
    rows = told(trace)
    pairs = trace.launches.select("event", "call").join(rows, on="event")
    pairs = pairs.join(rows, left_on="call", right_on="event", how="left", suffix="_of_call")
    return pairs.drop("event", "call").sort(pl.all())


def arguments(trace):
    rows = trace.args("kernel").select("event", "grid", "block", "shared memory")
    rows = rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
    kernels = told(trace).filter(pl.col("name") != FILL_KERNEL)
    return kernels.join(rows, on="event").drop("event").sort(pl.all())


def assert_same_program(rocm, kineto, seed):
    """Compare what a format of ROCm can say."""
    assert rocm.status == "ok", seed
    assert told(rocm).drop("event").equals(told(kineto).drop("event")), seed
    linked = launches(kineto).filter(pl.col("kind").is_in(KINDS))
    assert launches(rocm).equals(linked), seed
    if "kernel" in rocm.events["kind"].cast(pl.String).to_list():
        assert arguments(rocm).equals(arguments(kineto)), seed


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "seeds",
    [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)],
    ids=len,
)
def test_a_simulated_program_gives_the_same_tables_and_links(name, seeds, tmp_path):
    for seed in seeds:
        run = simulate("random", seed=seed)
        kineto_path, path = tmp_path / f"{seed}.json", tmp_path / f"{seed}_{name}"
        run.write(kineto_path, sync_records=False)
        WRITERS[name](run, path)
        kineto, rocm = read_trace(kineto_path), read_trace(path)
        assert_same_program(rocm, kineto, seed)


def test_a_document_is_written_as_chrome_json_and_read_back(tmp_path):
    path = tmp_path / "results.json"
    write_rocprof_json(simulate("training", seed=1, steps=2), path)
    repair(path, tmp_path / "trace.json")
    trace, again = read_trace(path), read_trace(tmp_path / "trace.json")
    assert told(again).drop("event").equals(told(trace).drop("event"))


def test_a_truncated_document_keeps_the_records_before_its_end(tmp_path):
    path = tmp_path / "results.json"
    write_rocprof_json(simulate("training", seed=1, steps=2), path)
    whole = read_trace(path).events.height
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    trace = read_trace(path)
    assert 0 < trace.events.height < whole
    assert trace.diagnostics["code"].to_list() == ["truncated"]


def test_reading_stops_where_the_caller_wants(tmp_path):
    path = tmp_path / "results.json"
    write_rocprof_json(simulate("training", seed=1, steps=2), path)
    trace = read_trace(path, max_events=5)
    assert trace.events.height == 5
    assert trace.diagnostics["code"].to_list() == ["limit_reached"]


def test_reading_stops_at_the_byte_that_the_caller_wants(tmp_path):
    path = tmp_path / "results.json"
    write_rocprof_json(simulate("training", seed=1, steps=2), path)
    whole, limit = read_trace(path), path.stat().st_size * 3 // 4
    trace = read_trace(path, max_bytes=limit)
    assert 0 < trace.events.height < whole.events.height
    found = trace.diagnostics.select("code", "count", "first_offset").rows()
    assert found == [("limit_reached", 1, limit)]
    assert trace.damage.is_grave
    assert read_trace(path, max_bytes=path.stat().st_size).diagnostics.equals(whole.diagnostics)


@needs_file
def test_counts_and_sums_of_a_real_document_are_those_of_json():
    with gzip.open(REAL) as file:
        [process] = json.load(file)["rocprofiler-sdk-tool"]
    rows = process["buffer_records"]["kernel_dispatch"]
    names = {one["kernel_id"]: one["formatted_kernel_name"] for one in process["kernel_symbols"]}
    trace = read_trace(REAL)
    assert trace.status == "ok"
    kernels = trace.events.filter(pl.col("kind") == "kernel")
    assert kernels.height == len(rows)
    assert kernels["duration_ns"].sum() == sum(
        row["end_timestamp"] - row["start_timestamp"] for row in rows
    )
    counted = Counter(names[row["dispatch_info"]["kernel_id"]] for row in rows)
    assert Counter(kernels["name"].cast(pl.String).to_list()) == counted
    assert trace.devices["name"].to_list()[0] == "AMD Instinct MI350X"


@pytest.mark.parametrize("is_indented", [False, True], ids=["compact", "indented"])
def test_the_place_of_a_finding_is_the_byte_of_its_record(is_indented, tmp_path):
    path = tmp_path / "results.json"
    write_rocprof_json(simulate("training", seed=1, steps=2), path)
    document = json.loads(path.read_text())
    dispatches = document["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"]
    del dispatches[3]["start_timestamp"]
    text = json.dumps(document, indent=2 if is_indented else None)
    path.write_text(text)
    [found] = read_trace(path).diagnostics.to_dicts()
    assert (found["code"], found["count"]) == ("missing_timestamp", 1)
    record = json.JSONDecoder().raw_decode(text, found["first_offset"])[0]
    assert record == dispatches[3]
    at_fault = text.index('"marker_api"') + len('"marker_api"')
    path.write_text(f"{text[:at_fault]}?{text[at_fault:]}")
    [malformed] = read_trace(path).diagnostics.to_dicts()
    assert (malformed["code"], malformed["first_offset"]) == ("malformed_event", at_fault)


def test_text_behind_a_document_is_said(tmp_path):
    path = tmp_path / "results.json"
    write_rocprof_json(simulate("training", seed=1, steps=2), path)
    whole, text = read_trace(path), path.read_text()
    path.write_text(f"{text} \n")
    assert read_trace(path).status == "ok"
    path.write_text(f"{text} \n{text}")
    trace = read_trace(path)
    assert trace.events.height == whole.events.height
    [found] = trace.diagnostics.to_dicts()
    assert (found["code"], found["first_offset"]) == ("text_after_end", len(text) + 2)


def renamed_as_hip(run, path):
    """Write JSON of `rocprofv3` with the calls of HIP, which has the stems of CUDA's names."""
    write_rocprof_json(run, path)
    document = json.loads(path.read_text().replace('"cuda', '"hip'))
    path.write_text(json.dumps(document))
    return document["rocprofiler-sdk-tool"][0]


def test_kernels_that_perform_memsets_count_as_such_where_the_call_tells(tmp_path):
    found = 0
    for seed in range(SEEDS):
        run, path = simulate("random", seed=seed), tmp_path / "results.json"
        run.write(tmp_path / "kineto.json")
        renamed_as_hip(run, path)
        kineto, rocm = read_trace(tmp_path / "kineto.json"), read_trace(path)
        start_of = [
            dict(trace.events.select("event", "start_ns").iter_rows()) for trace in (kineto, rocm)
        ]
        linked = {start_of[0][event] for event in kineto.launches.drop_nulls("call")["event"]}
        fills = kineto.events.filter(pl.col("kind") == "fill")["start_ns"].to_list()
        entries = [start for start in fills if start in linked]
        rows = rocm.events.filter(pl.col("kind") == "fill")
        assert sorted(rows["start_ns"].to_list()) == sorted(entries), seed
        assert set(rows["name"].cast(pl.String)) <= {FILL_KERNEL}
        found += len(entries)
    assert found > 0


def test_the_kernel_of_a_memset_stays_one_where_the_call_does_not_tell(tmp_path):
    path = tmp_path / "results.json"
    process = renamed_as_hip(simulate("training", seed=1, steps=2), path)
    text = path.read_text()
    assert "fill" in read_trace(path).events["kind"].cast(pl.String).to_list()
    assert '"hipMemsetAsync"' in text
    for name in ("hipGraphLaunch", "hipLaunchKernel", "hipMemcpyAsync"):
        path.write_text(text.replace('"hipMemsetAsync"', f'"{name}"'))
        assert "fill" not in read_trace(path).events["kind"].cast(pl.String).to_list(), name
    # Without the calls nothing tells.
    process["buffer_records"]["hip_api"] = []
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    assert "fill" not in read_trace(path).events["kind"].cast(pl.String).to_list()


def test_copies_of_pytorch_on_rocm_that_are_kernels_count_as_copies(tmp_path):
    def event(category, name, start, end, **args):
        place = {"pid": 0, "tid": 3} if category == "kernel" else {"pid": 9, "tid": 9}
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "ts": start,
            "dur": end - start,
            **place,
            "args": args,
        }

    on_device = {"device": 0, "stream": 3}
    events = [
        event("cuda_runtime", "hipMemcpyWithStream", 0, 5, correlation=1),
        event("kernel", "__amd_rocclr_copyBuffer", 2, 4, correlation=1, **on_device),
        event("cuda_runtime", "hipLaunchKernel", 6, 7, correlation=2),
        event("kernel", "__amd_rocclr_copyBuffer", 8, 9, correlation=2, **on_device),
        event("kernel", "__amd_rocclr_fillBufferAligned.kd", 9, 10, correlation=0, **on_device),
        event("kernel", "gemm", 10, 11, correlation=1, **on_device),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    kinds = read_trace(path).events["kind"].cast(pl.String).to_list()
    assert kinds == ["runtime", "copy", "runtime", "kernel", "kernel", "kernel"]


def test_an_event_that_a_record_names_and_the_database_lost_is_counted(tmp_path):
    path = tmp_path / "results.db"
    write_rocpd(simulate("training", seed=1, steps=2), path)
    with closing(sqlite3.connect(path)) as database:
        [events] = database.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'rocpd_event%'"
        ).fetchone()
        database.execute(f'DELETE FROM "{events}" WHERE id > 5 AND id <= 8')  # noqa: S608 - a name of this file
        database.commit()
    found = read_trace(path).diagnostics.select("code", "count").rows()
    assert found == [("missing_rows", 3)]
