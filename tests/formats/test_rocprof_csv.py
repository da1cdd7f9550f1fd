"""CSV of `rocprofv3`, and of `rocprof` 1 and 2: the same program gives the same tables."""

import gzip
import shutil

import polars as pl
import pytest

import longpole
from formats.test_rocprof import assert_same_program, launches, told
from longpole import read_trace
from longpole.formats.convert.repaired import repair
from oracles.simulator import simulate
from oracles.simulator.rocpd import (
    ACCUMULATION_REGISTERS,
    VECTOR_REGISTERS,
    write_rocpd,
    write_rocprof_json,
)
from oracles.simulator.rocprof_csv import write_rocprof_csv, write_rocprof_v1, write_rocprof_v2

SEEDS, LONG_SEEDS = 6, 200
GUID = "00006409-00d1-70d1-a5cb-b5ab88214544"


def training(folder, **how):
    """Write the files of a small program; give their paths by kind."""
    return write_rocprof_csv(simulate("training", seed=1, steps=2), folder, **how)


def codes(trace):
    return dict(trace.diagnostics.select("code", "count").iter_rows())


def edited(path, change):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))
    return path


@pytest.mark.parametrize("guid", [None, GUID], ids=["rocprofv3", "rocpd"])
@pytest.mark.parametrize(
    "seeds",
    [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)],
    ids=len,
)
def test_a_simulated_program_gives_the_same_tables_and_links(guid, seeds, tmp_path):
    for seed in seeds:
        run = simulate("random", seed=seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        run.write(folder / "kineto.json", sync_records=False)
        paths = write_rocprof_csv(run, folder, guid=guid)
        kineto, rocm = read_trace(folder / "kineto.json"), read_trace(list(paths.values())[-1])
        assert_same_program(rocm, kineto, seed)


def test_any_file_of_a_process_gives_the_trace_of_all(tmp_path):
    paths = training(tmp_path)
    first, *others = [read_trace(path) for path in paths.values()]
    assert first.events["kind"].n_unique() >= 4
    assert all(other.events.equals(first.events) for other in others)
    rows = {row["name"]: row["rows"] for row in first.metadata["files"]}
    assert rows == {path.name: path.read_text().count("\n") - 1 for path in paths.values()}
    assert read_trace(tmp_path).events.equals(first.events)
    [files] = [found for found in longpole.check(first) if found.code == "several_files"]
    assert files.count == len(paths)
    assert all(path.name in files.sentence for path in paths.values())


def test_files_of_another_process_are_another_trace(tmp_path):
    paths = training(tmp_path)
    alone = read_trace(paths["kernel_trace"]).events
    run = simulate("training", seed=2, steps=3)
    for pid in (17, 18):
        write_rocprof_csv(run, tmp_path, prefix=f"host_{pid}")
    assert read_trace(paths["kernel_trace"]).events.equals(alone)
    with pytest.raises(longpole.TraceError, match="3 timelines"):
        read_trace(tmp_path)


def test_the_files_of_each_process_are_one_rank(tmp_path):
    for rank in range(2):
        training(tmp_path, prefix=f"rank{rank}")
    n_events = read_trace(tmp_path / "rank0_kernel_trace.csv").events.height
    ranks = longpole.read_traces(tmp_path).ranks
    assert ranks.select("rank", "events").rows() == [(0, n_events), (1, n_events)]


def test_packed_files_are_found_beside_plain_ones(tmp_path):
    paths = training(tmp_path)
    whole = read_trace(paths["kernel_trace"]).events
    with gzip.open(f"{paths['hip_api_trace']}.gz", "wb") as file:
        file.write(paths["hip_api_trace"].read_bytes())
    paths["hip_api_trace"].unlink()
    assert read_trace(paths["kernel_trace"]).events.equals(whole)
    assert read_trace(f"{paths['hip_api_trace']}.gz").events.equals(whole)


def test_kernels_alone_name_nothing_that_is_not_recorded(tmp_path):
    path = training(tmp_path)["kernel_trace"]
    alone = tmp_path / "alone" / path.name
    alone.parent.mkdir()
    shutil.copy(path, alone)
    trace = read_trace(alone)
    assert set(trace.events["kind"].cast(pl.String)) == {"kernel"}
    # Without the list of agents, nothing tells which of the devices an agent is.
    assert trace.events["device"].unique().to_list() == [4]
    assert trace.launches["call"].null_count() == trace.launches.height
    [hint] = [found.hint for found in longpole.check(trace) if found.code == "no_host_calls"]
    assert "--hip-runtime-trace" in hint
    assert read_trace(alone.read_bytes()).events.equals(trace.events)


@pytest.mark.parametrize("agent", ["2", "GPU 2"])
def test_older_files_number_agents_and_have_no_streams(agent, tmp_path):
    path = tmp_path / "1_kernel_trace.csv"
    path.write_text(
        '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp","Group_Segment_Size"\n'
        f'"KERNEL_DISPATCH",{agent},5,11,"f<int, 2>(int)",7,100,140,64\n'
    )
    trace = read_trace(path)
    row = trace.events.row(0, named=True)
    assert (row["name"], row["device"], row["stream"]) == ("f<int, 2>(int)", 2, 5)
    assert trace.args("kernel")["shared memory"].to_list() == [64]


@pytest.mark.parametrize("write", [write_rocprof_v1, write_rocprof_v2])
def test_the_kernels_of_older_versions_are_those_of_kineto(write, tmp_path):
    for seed in range(SEEDS):
        run = simulate("random", seed=seed)
        run.write(tmp_path / "kineto.json")
        kineto = told(read_trace(tmp_path / "kineto.json")).filter(pl.col("kind") == "kernel")
        if kineto.is_empty():
            continue
        write(run, tmp_path / "results.csv")
        rocm = read_trace(tmp_path / "results.csv")
        assert told(rocm).drop("event").equals(kineto.drop("event")), seed
        assert rocm.format == "rocprof-csv"


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,Wavefronts", "--timestamp"),
        ("Domain,Function,Start_Timestamp,End_Timestamp,Correlation_ID", "results_"),
        ('"Name","Calls","TotalDurationNs","AverageNs","Percentage"', "_kernel_trace.csv"),
        ('"Correlation_Id","Dispatch_Id","Agent_Id","Counter_Name","Counter_Value"', "--hip-trace"),
        ('"Node_Id","Logical_Node_Id","Agent_Type"', "--hip-trace"),
    ],
)
def test_files_without_events_are_refused_with_what_to_do(header, hint, tmp_path):
    path = tmp_path / "1_some.csv"
    path.write_text(f"{header}\n1,2,3\n")
    with pytest.raises(longpole.TraceError, match="a CSV file of rocprof") as refused:
        read_trace(path)
    assert hint in refused.value.hint


def test_allocations_are_said_to_be_unread(tmp_path):
    path = training(tmp_path)["kernel_trace"]
    allocations = path.with_name(path.name.replace("kernel_trace", "memory_allocation_trace"))
    allocations.write_text(
        '"Kind","Operation","Agent_Id","Allocation_Size","Start_Timestamp","End_Timestamp"\n'
        '"MEMORY_ALLOCATION","MEMORY_ALLOCATION_FREE","",0,5,6\n'
    )
    for given in (path, allocations):
        assert codes(read_trace(given)) == {"unread_table": 1}


@pytest.mark.parametrize(
    ("content", "code"), [(b"", "truncated"), (b"\0" * 600 + b"\n", "malformed_header")]
)
def test_a_file_beside_that_was_lost_is_said(content, code, tmp_path):
    paths = training(tmp_path)
    paths["hip_api_trace"].write_bytes(content)
    trace = read_trace(paths["kernel_trace"])
    assert code in codes(trace)
    assert "runtime" not in trace.events["kind"].cast(pl.String).to_list()
    assert trace.status == "recovered"


def test_an_open_quote_costs_its_row_and_no_more(tmp_path):
    path = training(tmp_path)["kernel_trace"]
    whole = read_trace(path).events
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'",', b",", 1)
    path.write_bytes(b"".join(lines))
    trace = read_trace(path)
    assert trace.events.height == whole.height - 1
    [found] = trace.diagnostics.to_dicts()
    before = sum(map(len, lines[:3])) + next(
        row["bytes"] for row in trace.metadata["files"] if "agent_info" in row["name"]
    )
    assert (found["code"], found["count"]) == ("malformed_event", 1)
    assert (found["first_offset"], found["skipped_bytes"]) == (before, len(lines[3]))


def with_start(line, start):
    *before, _, end = line.split(b",")
    return b",".join([*before, start, end])


FAULTS = {
    "truncated": lambda lines: [*lines[:-1], lines[-1][:-30]],
    "malformed_event": lambda lines: [*lines[:5], b"1,2\n", *lines[5:]],
    "bad_timestamp": lambda lines: [*lines[:5], with_start(lines[5], b"12x"), *lines[6:]],
    "damaged_text": lambda lines: [*lines[:5], lines[5].replace(b'"cuda', b'"c\0uda'), *lines[6:]],
    "byte_order_mark": lambda lines: [b"\xef\xbb\xbf", *lines],
}


@pytest.mark.parametrize("code", FAULTS)
def test_damage_is_counted_and_the_rest_is_kept(code, tmp_path):
    path = training(tmp_path)["hip_api_trace"]
    whole = read_trace(path).events.height
    edited(path, FAULTS[code])
    trace = read_trace(path)
    assert codes(trace).keys() == {code}
    lost = {"truncated": 1, "bad_timestamp": 1}.get(code, 0)
    assert trace.events.height == whole - lost


@pytest.mark.parametrize("kind", ["kernel_trace", "hip_api_trace"])
def test_a_file_that_was_cut_anywhere_keeps_its_whole_rows_and_says_so(kind, tmp_path):
    text = b"".join(training(tmp_path)[kind].read_bytes().splitlines(keepends=True)[:4])
    header = text.index(b"\n") + 1
    for cut in range(1, header):
        try:
            assert codes(read_trace(text[:cut])) == {"truncated": 1}, cut
        except longpole.TraceError:
            assert b'"End_Timestamp"' not in text[:cut]
    for cut in range(header + 1, len(text)):
        trace = read_trace(text[:cut])
        n_whole = text[header:cut].count(b"\n")
        is_at_end = text[cut - 1 : cut] == b"\n"
        lost = set(codes(trace))
        assert lost == (set() if is_at_end else lost & {"truncated", "missing_end"}), cut
        assert bool(lost) != is_at_end, cut
        n_kept = n_whole + ("missing_end" in lost)
        assert trace.events.height == n_kept, cut


def test_reading_stops_where_the_caller_wants(tmp_path):
    path = training(tmp_path)["kernel_trace"]
    assert codes(read_trace(path, max_events=5)) == {"limit_reached": 1}
    assert read_trace(path, max_events=5).events.height == 5
    assert codes(read_trace(path.read_bytes(), max_bytes=1000)) == {"limit_reached": 1}


def test_the_files_are_saved_and_written_as_other_formats(tmp_path):
    path = training(tmp_path)["kernel_trace"]
    trace = read_trace(path)
    repair(path, tmp_path / "trace.json")
    trace.save(tmp_path / "trace.longpole")
    for name in ("trace.json", "trace.longpole"):
        again = read_trace(tmp_path / name)
        assert told(again).drop("event").equals(told(trace).drop("event"))
        assert launches(again).equals(launches(trace))


def test_the_verdict_is_that_of_the_json(tmp_path):
    for seed in range(SEEDS):
        run = simulate("random", seed=seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_rocprof_json(run, folder / "results.json")
        paths = write_rocprof_csv(run, folder)
        first, second = read_trace(folder / "results.json"), read_trace(paths["hip_api_trace"])
        assert second.verdict().sentence == first.verdict().sentence, seed


def test_times_with_fractions_of_a_nanosecond_are_rounded(tmp_path):
    path = tmp_path / "timestamps.csv"
    path.write_text(
        "Dispatch_ID,GPU_ID,Kernel_Name,Correlation_ID,Start_Timestamp,End_Timestamp\n"
        "0,0,copy,1.0,564450429888574.8,564450429895035.4\n"
        "1,0,gemm,2,5.645e+14,5.645e+14\n"
    )
    trace = read_trace(path)
    assert codes(trace) == {}
    shown = trace.events.select("start_ns", "duration_ns", "correlation").rows()
    assert shown == [(564450429888575, 6460, 1), (564_500_000_000_000, 0, 2)]


def test_every_format_has_the_registers_of_a_work_item(tmp_path):
    """They limit the occupancy, with those for accumulation."""
    run = simulate("training", seed=1, steps=2)
    (tmp_path / "csv").mkdir()
    paths = [*training(tmp_path / "csv").values()][-1:]
    for write, name in ((write_rocprof_json, "results.json"), (write_rocpd, "results.db")):
        write(run, tmp_path / name)
        paths.append(tmp_path / name)
    for path in paths:
        kernels = longpole.kernels(read_trace(path))
        registers = VECTOR_REGISTERS + ACCUMULATION_REGISTERS
        assert set(kernels["registers"].drop_nulls()) == {registers}, path
        assert set(kernels.filter(pl.col("kind") == "kernel")["registers"]) == {registers}
