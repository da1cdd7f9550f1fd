"""One program in the formats of several profilers: the same tables, links and path.

What a format cannot say is left out of the comparison, and named there.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import zlib
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import longpole
from longpole.cli import program
from longpole.formats.convert.cut import cut
from longpole.formats.convert.perfetto import write_perfetto
from longpole.formats.convert.repaired import repair
from oracles.simulator import simulate
from oracles.simulator.perfetto import message, number, perfetto, text, torch_perfetto
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks
from oracles.simulator.xprof import trace_viewer, xplane

if TYPE_CHECKING:
    from pathlib import Path

    from oracles.simulator import Run

SEEDS = range(12)
WORK = ("kernel", "copy", "fill")


@pytest.fixture(params=SEEDS)
def run(request) -> Run:
    return simulate("random", seed=request.param)


def read(content: bytes, path: Path) -> longpole.Trace:
    path.write_bytes(content)
    return longpole.read_trace(path)


def kineto(run: Run, tmp_path: Path, *, sync_records: bool = True) -> longpole.Trace:
    run.write(tmp_path / "kineto.json", sync_records=sync_records)
    return longpole.read_trace(tmp_path / "kineto.json")


def activities(trace: longpole.Trace, *, names: bool) -> list[tuple[Any, ...]]:
    """Return every GPU activity with its place, time, size, shape and the call that launched it."""
    events = trace.events
    launched = trace.launches.select("event", "call")
    sizes = [
        table.select("event", "bytes")
        for category in trace.categories
        if (table := trace.args(category)) is not None and "bytes" in table.columns
    ]
    bytes_of = dict(pl.concat(sizes, how="vertical_relaxed").iter_rows()) if sizes else {}
    start_of = dict(events.select("event", "start_ns").iter_rows())
    name_of = dict(events.select("event", "name").iter_rows())
    launcher_of = dict(launched.iter_rows())
    zero_ns = events["start_ns"].filter(events["kind"].is_in(WORK)).min()
    columns = ["event", "kind", "name", "start_ns", "duration_ns", "device", "stream"]
    found = []
    for event, kind, name, start_ns, *rest in (
        events.filter(pl.col("kind").is_in(WORK)).select(columns).iter_rows()
    ):
        launcher = launcher_of.get(event)
        call = None if launcher is None else (name_of[launcher], start_of[launcher] - zero_ns)
        shown = name if names or kind == "kernel" else ""
        found.append((start_ns - zero_ns, kind, shown, *rest, bytes_of.get(event), call))
    return sorted(found, key=repr)


def path_of(trace: longpole.Trace) -> list[tuple[Any, ...]]:
    path = trace.critical_path(whole=True)
    return path.segments.select("kind", "duration_ns", "evidence").rows()


def of_kinds(trace: longpole.Trace, *kinds: str) -> list[tuple[int, int | None]]:
    events = trace.events.filter(pl.col("kind").is_in(kinds))
    return sorted(events.select("start_ns", "duration_ns").iter_rows())


def test_perfetto_gives_the_tables_and_the_path_of_kineto(run, tmp_path):
    one = kineto(run, tmp_path)
    two = read(perfetto(run.events), tmp_path / "trace.pftrace")
    assert two.format == "perfetto"
    assert activities(two, names=True) == activities(one, names=True)
    columns = ["kind", "category", "name", "start_ns", "duration_ns", "correlation", "external_id"]
    rows = [sorted(trace.events.select(columns).iter_rows(), key=repr) for trace in (one, two)]
    assert rows[1] == rows[0]
    assert path_of(two) == path_of(one)


def test_the_perfetto_trace_of_pytorch_gives_the_activities_and_the_path_of_kineto(run, tmp_path):
    one = kineto(run, tmp_path)
    two = read(torch_perfetto(run.events), tmp_path / "trace.pftrace")
    assert two.status == "ok"
    # Memcpys and memsets have no direction there.
    assert activities(two, names=False) == activities(one, names=False)
    columns = ["kind", "category", pl.col("start_ns") - pl.col("start_ns").min(), "duration_ns"]
    columns += ["correlation", "device", "stream"]
    rows = [
        sorted(trace.events.filter(pl.col("kind") != "instant").select(columns).rows(), key=repr)
        for trace in (one, two)
    ]
    assert rows[1] == rows[0]
    arguments = [
        trace.args("kernel").select("grid", "block", "context").rows() for trace in (one, two)
    ]
    assert sorted(arguments[1], key=repr) == sorted(arguments[0], key=repr)
    # No record says for which stream it waited, so waits are inferred.
    paths = [[row[:2] for row in path_of(trace)] for trace in (one, two)]
    assert paths[1] == paths[0]
    without = kineto(run, tmp_path, sync_records=False)
    assert two.verdict().sides in (one.verdict().sides, without.verdict().sides)


def test_counters_of_a_gpu_are_counters(tmp_path):
    records = simulate("training", seed=1, steps=2).events
    trace = read(torch_perfetto(records, watts=[250.5, 300.0]), tmp_path / "trace.pftrace")
    shown = trace.counters.select("name", "process", "value").rows()
    assert shown == [("Power (W)", "GPU 0 Counters", 250.5), ("Power (W)", "GPU 0 Counters", 300.0)]
    # The description may stand in the event itself.
    described = message(1, message(1, number(1, 4), text(2, "SM Clock")))
    samples = (message(52, described, number(3, 1), message(2, number(1, 4), number(2, 1980))),)
    samples += (message(52, number(3, 1), message(2, number(1, 4), number(2, 1410))),)
    samples += (message(52, number(3, 2), message(2, number(1, 4), number(2, 7))),)
    at_ns = trace.window[0]
    packets = [message(1, number(8, at_ns), number(10, 3), sample) for sample in samples]
    trace = read(torch_perfetto(records) + b"".join(packets), tmp_path / "described.pftrace")
    shown = trace.counters.select("name", "process", "value").rows()
    assert shown == [("SM Clock", "GPU 1 Counters", 1980), ("SM Clock", "GPU 1 Counters", 1410)]
    # The counters of GPU 2 were never described.
    assert trace.diagnostics.select("code", "count").rows() == [("missing_state", 1)]


def test_slices_that_touch_keep_their_ends_where_ends_stand_behind_all_begins(tmp_path):
    spans = {"one": (0, 10), "two": (10, 30), "inner": (10, 20), "three": (30, 40)}

    def packet(time_ns: int, *parts: bytes) -> bytes:
        return message(1, number(8, time_ns), number(10, 1), message(11, number(11, 1), *parts))

    begins = [packet(start, number(9, 1), text(23, name)) for name, (start, _) in spans.items()]
    ends = [packet(end, number(9, 2)) for _, end in spans.values()]
    trace = read(b"".join(begins + ends), tmp_path / "trace.pftrace")
    rows = trace.events.select("name", "start_ns", "duration_ns").rows()
    assert rows == [(name, start, end - start) for name, (start, end) in spans.items()]
    assert trace.status == "ok"


def test_slices_within_each_other_stay_so_where_another_track_is_behind_in_time(tmp_path):
    def packet(time_ns: int, track: int, *parts: bytes) -> bytes:
        event = message(11, number(11, track), *parts)
        return message(1, number(8, time_ns), number(10, track), event)

    begins = [(100, 1, "outer"), (105, 1, "inner"), (50, 2, "other")]
    packets = [packet(*place, number(9, 1), text(23, name)) for *place, name in begins]
    packets += [packet(*place, number(9, 2)) for place in ((107, 1), (110, 1), (60, 2))]
    trace = read(b"".join(packets), tmp_path / "trace.pftrace")
    rows = trace.events.select("name", "duration_ns").rows()
    assert rows == [("outer", 10), ("inner", 2), ("other", 10)]


def test_xprof_gives_the_activities_launches_and_steps_of_kineto(run, tmp_path):
    one = kineto(run, tmp_path, sync_records=False)
    json_trace = read(trace_viewer(run.events), tmp_path / "vm.trace.json")
    plane_trace = read(xplane(run.events), tmp_path / "vm.xplane.pb")
    assert (json_trace.format, plane_trace.format) == ("xprof-json", "xplane")
    for trace in (json_trace, plane_trace):
        # Memcpys and memsets have other names there.
        assert activities(trace, names=False) == activities(one, names=False)
        calls = ("runtime", "driver")
        assert of_kinds(trace, *calls) == of_kinds(one, *calls)
        # Annotations cannot be told from operators.
        host = ("operator", "annotation")
        assert of_kinds(trace, *host) == of_kinds(one, *host)
        assert of_kinds(trace, "python") == of_kinds(one, "python")
        steps = ["step", "start_ns", "duration_ns"]
        assert trace.steps.select(steps).rows() == one.steps.select(steps).rows()


def test_the_two_files_of_xprof_give_the_same_tables_and_path(run, tmp_path):
    one = read(trace_viewer(run.events), tmp_path / "vm.trace.json")
    two = read(xplane(run.events), tmp_path / "vm.xplane.pb")
    columns = ["kind", "name", "start_ns", "duration_ns", "correlation", "device", "stream"]
    rows = [sorted(trace.events.select(columns).iter_rows(), key=repr) for trace in (one, two)]
    assert rows[1] == rows[0]
    assert path_of(two) == path_of(one)


@pytest.mark.parametrize("write", [xplane, perfetto])
def test_a_name_that_is_no_utf8_is_altered_and_counted(write, tmp_path):
    content = write(simulate("training", seed=1, steps=2).events)
    plain = read(content, tmp_path / "plain")
    altered = read(
        content.replace(b"cudaLaunchKernel", b"cudaLaunchKerne\xff"), tmp_path / "altered"
    )
    assert (plain.status, altered.status) == ("ok", "recovered")
    assert altered.diagnostics["code"].to_list() == ["invalid_utf8"]
    assert altered.events.height == plain.events.height
    assert "cudaLaunchKerne\ufffd" in altered.events["name"].cast(pl.String).to_list()
    with pytest.raises(longpole.TraceError):
        longpole.read_trace(tmp_path / "altered", strict=True)


def test_merged_traces_read_back_equal(tmp_path):
    found = random_ranks(3, n_ranks=4, pattern="data", n_stragglers=1, n_steps=2)
    folder = tmp_path / "traces"
    folder.mkdir()
    write_ranks(found.job, found.job.times_ns(), found.clocks, folder)
    ranks = longpole.read_traces(folder)
    longpole.merge(ranks, tmp_path / "run.perfetto-trace")
    merged = longpole.read_trace(tmp_path / "run.perfetto-trace")
    columns = ["kind", "category", "name", "duration_ns", "device", "stream"]
    processes = merged.events.filter(pl.col("kind") != "derived").partition_by("process")
    assert len(processes) == len(ranks)
    for rank, own in enumerate(processes):
        whole = ranks.trace(rank).events.filter(pl.col("duration_ns").is_not_null())
        rows = [sorted(events.select(columns).iter_rows(), key=repr) for events in (whole, own)]
        assert rows[1] == rows[0]


def test_a_path_that_longpole_drew_is_no_work(tmp_path):
    trace = kineto(simulate("training", seed=1, steps=2), tmp_path)
    trace.critical_path(whole=True).to_perfetto(tmp_path / "path.pftrace")
    with pytest.raises(longpole.TraceError, match="the critical path of a trace") as refused:
        longpole.read_trace(tmp_path / "path.pftrace")
    assert "longpole convert TRACE" in refused.value.hint
    write_perfetto(trace, tmp_path / "both.pftrace")
    with (tmp_path / "both.pftrace").open("ab") as file:
        file.write((tmp_path / "path.pftrace").read_bytes())
    both = longpole.read_trace(tmp_path / "both.pftrace")
    segments = trace.critical_path(whole=True).segments
    drawn = both.events.filter(pl.col("kind") == "derived")
    assert drawn["duration_ns"].sum() == segments["duration_ns"].sum()
    assert both.events.height == trace.events.height + segments.height
    assert path_of(both) == path_of(trace)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
@pytest.mark.parametrize("write", [trace_viewer, xplane, perfetto])
def test_any_format_may_be_compressed(pack, write, tmp_path):
    content = write(simulate("training", seed=2, steps=2).events)
    plain = read(content, tmp_path / "plain")
    packed = read(pack(content), tmp_path / "packed")
    assert packed.events.equals(plain.events)
    assert packed.compression == {gzip.compress: "gzip", lzma.compress: "xz"}[pack]
    assert packed.status == "ok"
    packed.save(tmp_path / "saved.longpole")
    saved = longpole.read_trace(tmp_path / "saved.longpole")
    assert (saved.format, saved.compression) == (packed.format, packed.compression)
    assert saved.events.equals(packed.events)


@pytest.mark.needs("zstandard")
def test_zstd_is_read_whole_and_up_to_damage(tmp_path):
    import zstandard

    content = trace_viewer(simulate("training", seed=2, steps=4).events)
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(content)
    whole = read(packed, tmp_path / "whole")
    assert (whole.compression, whole.status) == ("zstd", "ok")
    assert whole.events.equals(read(content, tmp_path / "plain").events)
    cut = read(packed[: len(packed) * 2 // 3], tmp_path / "cut")
    assert "compression_truncated" in cut.diagnostics["code"].to_list()
    assert 0 < cut.n_events < whole.n_events
    wrong = read(packed[:-1] + bytes([packed[-1] ^ 1]), tmp_path / "wrong")
    assert wrong.diagnostics["code"].to_list() == ["compression_checksum"]
    two_frames = read(
        packed[:0] + zstandard.compress(content[:999]) + zstandard.compress(content[999:]),
        tmp_path / "two",
    )
    assert two_frames.events.equals(whole.events)


def test_xz_is_read_up_to_damage(tmp_path):
    content = trace_viewer(simulate("training", seed=2, steps=4).events)
    packed = lzma.compress(content)
    assert read(packed + packed[:0], tmp_path / "whole").status == "ok"
    trailing = read(packed + b"more", tmp_path / "trailing")
    assert trailing.diagnostics["code"].to_list() == ["compression_trailing_bytes"]
    with pytest.raises(longpole.TraceError, match="xz stream is damaged"):
        read(packed[:20], tmp_path / "cut")


def test_other_compression_is_named(tmp_path):
    with pytest.raises(longpole.TraceError, match="bzip2"):
        read(bz2.compress(b"{}"), tmp_path / "trace.bz2")


def test_operations_of_a_tpu_count_once(tmp_path):
    lines = {1: "Steps", 2: "XLA Modules", 3: "XLA Ops", 4: "Framework Ops", 5: "New Line"}
    spans = {
        1: [("0", 0, 100)],
        2: [("jit_f", 0, 90)],
        3: [("while.1", 0, 80), ("fusion.1", 10, 30), ("all-reduce.2", 40, 20), ("copy.3", 85, 5)],
        4: [("Dense", 0, 80)],
        5: [("what", 0, 1)],
    }
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:1"}}
    ]
    for tid, name in lines.items():
        events.append(
            {"ph": "M", "pid": 3, "tid": tid, "name": "thread_name", "args": {"name": name}}
        )
        events += [
            {"ph": "X", "pid": 3, "tid": tid, "name": it, "ts": ts, "dur": dur, "args": {}}
            for it, ts, dur in spans[tid]
        ]
    trace = read(json.dumps({"traceEvents": events}).encode(), tmp_path / "tpu.trace.json")
    work = trace.events.filter(pl.col("kind") == "kernel").select("name", "device", "stream")
    assert work.rows() == [("fusion.1", 1, None), ("all-reduce.2", 1, None), ("copy.3", 1, None)]
    assert trace.diagnostics.select("code", "count").rows() == [("unknown_device_line", 1)]
    classes = dict(trace.launches.select("event", "work_class").iter_rows())
    assert list(classes.values()) == ["compute", "communication", "compute"]


def test_a_part_of_a_step_with_its_number_is_no_step(tmp_path):
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}}
    ]
    for step in range(2):
        for name, ts, dur in (("train", 10 * step, 9), ("next_batch", 10 * step + 1, 2)):
            place = {"pid": 701, "tid": 1, "ts": ts, "dur": dur}
            args = {"step_num": str(step)}
            events.append({"ph": "X", "name": name, **place, "args": args})
    trace = read(json.dumps({"traceEvents": events}).encode(), tmp_path / "steps.trace.json")
    assert trace.steps["step"].to_list() == [0, 1]
    assert trace.events["kind"].to_list() == ["annotation", "operator"] * 2


def rocprofv3() -> bytes:
    """Write what rocprofv3 writes: `STREAM [" 0 "]` tracks, `corr_id`, agents, `copy_bytes`."""

    def note(key: str, value: int | str) -> bytes:
        written = number(3, value) if isinstance(value, int) else text(6, value)
        return message(4, text(10, key), written)

    def packet(time_ns: int, *event: bytes) -> bytes:
        return message(1, number(8, time_ns), number(10, 1), message(11, *event))

    def slice_(track: int, category: str, name: str, span: tuple[int, int], *notes: bytes) -> bytes:
        begin = [number(9, 1), number(11, track), text(22, category), text(23, name), *notes]
        return packet(span[0], *begin) + packet(span[1], number(9, 2), number(11, track))

    thread = message(4, number(1, 77), number(2, 77))
    tracks = [
        message(1, message(60, number(1, 10), thread)),
        message(1, message(60, number(1, 20), text(2, 'STREAM [" 0 "] '))),
        message(1, message(1, number(1, 5)), number(10, 1)),
    ]
    return b"".join(
        [
            *tracks,
            slice_(10, "hip_api", "hipMemcpyAsync", (100, 150), note("corr_id", 1)),
            slice_(10, "hip_api", "hipLaunchKernel", (200, 230), note("corr_id", 2)),
            slice_(
                20,
                "memory_copy",
                "MEMORY_COPY_HOST_TO_DEVICE",
                (160, 190),
                note("corr_id", 1),
                note("copy_bytes", 4096),
                note("dst_agent", "Agent-4"),
            ),
            slice_(
                20,
                "kernel_dispatch",
                "gemm",
                (240, 300),
                note("corr_id", 2),
                note("agent", "Agent-4"),
                note("queue", 99),
            ),
        ]
    )


def test_a_trace_of_rocprofv3_gives_the_usual_tables(tmp_path):
    trace = read(rocprofv3(), tmp_path / "results.pftrace")
    columns = ["kind", "name", "start_ns", "duration_ns", "device", "stream"]
    work = trace.events.filter(pl.col("kind").is_in(WORK)).sort("start_ns").select(columns)
    assert work.rows() == [
        ("copy", "MEMORY_COPY_HOST_TO_DEVICE", 160, 30, 4, 0),
        ("kernel", "gemm", 240, 60, 4, 0),
    ]
    names = dict(trace.events.select("event", "name").iter_rows())
    links = trace.launches.select("event", "call").iter_rows()
    assert {names[work]: names[call] for work, call in links} == {
        "MEMORY_COPY_HOST_TO_DEVICE": "hipMemcpyAsync",
        "gemm": "hipLaunchKernel",
    }
    assert trace.args("memory_copy")["bytes"].to_list() == [4096]
    assert trace.diagnostics.select("code", "count").rows() == [("unknown_packet", 1)]


@pytest.mark.parametrize("write", [trace_viewer, xplane, perfetto])
def test_damaged_files_are_read_in_part_or_refused(write, tmp_path):
    content = write(simulate("training", seed=1, steps=2).events)
    dice = random.Random(5)  # noqa: S311
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(dice.randrange(1, 4)):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        cut = bytes(damaged[: dice.randrange(1, len(damaged))])
        try:
            trace = read(cut, tmp_path / "damaged")
        except longpole.TraceError:
            continue
        assert trace.status == "recovered" or trace.diagnostics.height or trace.n_events >= 0
        assert trace.launches.height >= 0


def test_counts_and_sums_are_those_of_the_schema_of_perfetto(tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    content = perfetto(simulate("random", seed=4).events)
    packets = [it for it in schema.Trace.FromString(content).packet if it.HasField("track_event")]
    signed = {1: -1, 2: 1}
    total_ns = sum(signed.get(it.track_event.type, 0) * it.timestamp for it in packets)
    trace = read(content, tmp_path / "trace.pftrace")
    assert trace.events["duration_ns"].sum() == total_ns
    assert trace.events.height == sum(it.track_event.type in {1, 3} for it in packets)
    assert trace.phases["E"] == sum(it.track_event.type == 2 for it in packets)
    n_flows = sum(
        len(it.track_event.flow_ids) + len(it.track_event.terminating_flow_ids) for it in packets
    )
    assert trace.flows.height == n_flows > 0


def test_hatchet_files_are_refused_with_what_to_record(tmp_path):
    frames = [{"children": [], "frame": {"name": "ROOT"}, "metrics": {"count": 0}}, {"CUDA": {}}]
    with pytest.raises(longpole.TraceError, match="Triton Proton"):
        read(json.dumps(frames).encode(), tmp_path / "proton.hatchet")


def test_a_timeline_of_tensorflow_1_is_refused_with_what_to_record(tmp_path):
    # As `tensorflow/python/client/timeline.py` lays it out.
    devices = ["/device:CPU:0", "/device:GPU:0/stream:all", "/device:GPU:0/memcpy"]
    events = [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": f"{device} Compute"}}
        for pid, device in enumerate(devices, start=1)
    ]
    for pid, name in [(1, "Const"), (2, "MatMul"), (3, "MEMCPYHtoD")]:
        args = {"name": f"dense/{name}", "op": name}
        event = {"ph": "X", "cat": "Op", "name": name, "pid": pid, "tid": 0, "ts": 9, "dur": 5}
        events.append(event | {"args": args})
    flow = {"ph": "s", "cat": "DataFlow", "name": "c", "id": 1, "pid": 1, "tid": 0, "ts": 9}
    events.append({"ph": "O", "cat": "Tensor", "name": "x", "id": 3, "pid": 1, "tid": 0, "ts": 9})
    with pytest.raises(longpole.TraceError, match="a timeline of TensorFlow 1") as refused:
        read(json.dumps({"traceEvents": [*events, flow]}).encode(), tmp_path / "timeline.json")
    assert "xplane.pb" in refused.value.hint


def test_gpu_activities_of_unitrace_are_known_by_name(tmp_path):
    names = ["gemm[SIMD32]", "zeCommandListAppendMemoryCopy(M2D)[64 bytes]"]
    names += ["zeCommandListAppendBarrier", "zeCommandListAppendMemoryFill(D)[64 bytes]"]
    events = [
        {"ph": "X", "cat": "gpu_op", "name": name, "pid": 1, "tid": 2, "ts": row, "dur": 1}
        for row, name in enumerate(names)
    ]
    trace = read(json.dumps({"traceEvents": events}).encode(), tmp_path / "unitrace.json")
    assert trace.events["kind"].to_list() == ["kernel", "copy", "device_task", "fill"]


@pytest.mark.parametrize("write", [xplane, perfetto])
def test_a_trace_that_is_no_json_converts_to_kineto(write, tmp_path):
    trace = read(write(simulate("random", seed=6).events), tmp_path / "trace")
    repair(tmp_path / "trace", tmp_path / "trace.json.gz")
    converted = longpole.read_trace(tmp_path / "trace.json.gz")
    assert converted.status == "ok"
    known = pl.col("kind").is_in(["derived", "other"]).not_()
    columns = ["kind", "name", "start_ns", "duration_ns", "correlation", "device", "stream"]
    rows = [it.events.filter(known).select(columns).rows() for it in (trace, converted)]
    assert rows[1] == rows[0]
    assert activities(converted, names=True) == activities(trace, names=True)
    assert converted.flows.height == trace.flows.height
    assert converted.steps["step"].to_list() == trace.steps["step"].to_list()
    assert path_of(converted) == path_of(trace)


def test_a_packed_trace_can_be_cut(tmp_path):
    run = simulate("training", seed=2, steps=4)
    run.write(tmp_path / "trace.json")
    plain = longpole.read_trace(tmp_path / "trace.json")
    packed = tmp_path / "trace.json.xz"
    packed.write_bytes(lzma.compress((tmp_path / "trace.json").read_bytes()))
    for source in (tmp_path / "trace.json", packed):
        trace = longpole.read_trace(source)
        window = longpole.choose_window(trace, 2)
        cut(trace, source, window, tmp_path / f"{source.suffix[1:]}.json")
    one, two = (longpole.read_trace(tmp_path / f"{it}.json") for it in ("json", "xz"))
    assert one.events.height < plain.events.height
    assert two.events.equals(one.events)


def test_state_clocks_counters_and_stages_of_perfetto(tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    trace = schema.Trace()

    def packet(**fields):
        made = trace.packet.add(trusted_packet_sequence_id=3)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    # Clock 64 counts on from 10 in units of 100 ns; the clock of the trace shows 5,000 ns then.
    first = packet(sequence_flags=1)
    first.clock_snapshot.clocks.add(clock_id=6, timestamp=5_000)
    first.clock_snapshot.clocks.add(
        clock_id=64, timestamp=10, is_incremental=True, unit_multiplier_ns=100
    )
    first.trace_packet_defaults.timestamp_clock_id = 64
    first.trace_packet_defaults.track_event_defaults.track_uuid = 20
    begin = packet(timestamp=2, sequence_flags=2)
    begin.interned_data.event_names.add(iid=1, name="gemm")
    begin.interned_data.event_categories.add(iid=1, name="kernel")
    begin.interned_data.debug_annotation_names.add(iid=1, name="grid")
    begin.track_event.type = schema.TrackEvent.TYPE_SLICE_BEGIN
    begin.track_event.name_iid = 1
    begin.track_event.category_iids.append(1)
    grid = begin.track_event.debug_annotations.add(name_iid=1)
    for size in (4, 1, 1):
        grid.array_values.add(int_value=size)
    packet(timestamp=3, sequence_flags=2).track_event.type = schema.TrackEvent.TYPE_SLICE_END
    sample = packet(timestamp=6_000, timestamp_clock_id=6)
    sample.track_event.type = schema.TrackEvent.TYPE_COUNTER
    sample.track_event.track_uuid = 30
    sample.track_event.counter_value = 7
    stage = packet(timestamp=6_500, timestamp_clock_id=6)
    stage.interned_data.gpu_specifications.add(iid=9, name="compute")
    stage.gpu_render_stage_event.duration = 40
    stage.gpu_render_stage_event.gpu_id = 1
    stage.gpu_render_stage_event.hw_queue_iid = 5
    stage.gpu_render_stage_event.stage_iid = 9
    stream = packet().track_descriptor
    stream.uuid, stream.name = 20, "device 2, stream 7"
    counter = packet().track_descriptor
    counter.uuid, counter.name, counter.counter.unit_multiplier = 30, "bytes", 1_024
    # Behind a loss the names are unknown until the state is cleared.
    lost = packet(timestamp=1, sequence_flags=2, previous_packet_dropped=1)
    lost.track_event.type = schema.TrackEvent.TYPE_INSTANT
    packed = schema.Trace()
    packed.packet.add().compressed_packets = zlib.compress(trace.SerializeToString())
    for name, content in (("plain", trace), ("packed", packed)):
        found = read(content.SerializeToString(), tmp_path / name)
        columns = ["kind", "name", "start_ns", "duration_ns", "device", "stream"]
        assert found.events.select(columns).rows() == [
            ("kernel", "gemm", 5_200, 300, 2, 7),
            ("kernel", "compute", 6_500, 40, 1, 5),
        ]
        assert found.args("kernel")["grid"].to_list() == ["[4, 1, 1]"]
        assert found.counters.select("name", "time_ns", "value").rows() == [
            ("bytes", 6_000, 7_168.0)
        ]
        counts = dict(found.diagnostics.select("code", "count").iter_rows())
        assert counts == {"lost_packet": 1, "missing_state": 1}


def test_durations_that_cannot_be_right_are_counted(tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    trace = schema.Trace()

    def slice_of(name, duration_us):
        packet = trace.packet.add(trusted_packet_sequence_id=3, timestamp=2_000)
        packet.track_event.name = name
        packet.track_event.legacy_event.phase = ord("X")
        if duration_us is not None:
            packet.track_event.legacy_event.duration_us = duration_us

    for name, duration_us in [("a", 5), ("b", -5), ("c", 1 << 61), ("d", 1 << 53), ("e", None)]:
        slice_of(name, duration_us)
    for duration_ns in (40, 1 << 62, (1 << 64) - 1):
        packet = trace.packet.add(trusted_packet_sequence_id=3, timestamp=2_000)
        packet.gpu_render_stage_event.duration = duration_ns
    found = read(trace.SerializeToString(), tmp_path / "trace")
    durations = [5_000, -5_000, None, None, None, 40, None, None]
    assert found.events["duration_ns"].to_list() == durations
    counts = dict(found.diagnostics.select("code", "count").iter_rows())
    assert {code: counts[code] for code in counts if code.endswith("duration")} == {
        "negative_duration": 1,
        "huge_duration": 4,
        "missing_duration": 1,
    }


def test_durations_of_xplane_that_cannot_be_right_are_counted(tmp_path):
    # An event (4) of a line (3) that begins at the last time there is, and one that ends before.
    late = message(4, number(1, 1), number(2, 0), number(3, 5_000))
    backwards = message(4, number(1, 1), number(2, 0), number(3, -5_000))
    line = message(3, number(1, 1), number(3, (1 << 62) - 1), late, backwards)
    named = message(4, number(1, 1), message(2, number(1, 1), text(2, "a")))
    found = read(message(1, text(2, "/host:CPU"), line, named), tmp_path / "xplane.pb")
    assert found.events["duration_ns"].to_list() == [None, -5]
    counts = dict(found.diagnostics.select("code", "count").iter_rows())
    assert counts == {"negative_duration": 1, "huge_duration": 1}


def test_a_folder_of_xprof_is_read_from_the_file_with_all_events(run, tmp_path, capsys, said):
    folder = tmp_path / "log" / "plugins" / "profile" / "2026_01_31"
    folder.mkdir(parents=True)
    (folder / "vm.trace.json.gz").write_bytes(gzip.compress(trace_viewer(run.events)))
    (folder / "vm.xplane.pb").write_bytes(xplane(run.events))
    for given in (tmp_path / "log", folder.parent, folder):
        assert longpole.read_trace(given).path == folder / "vm.xplane.pb"
    assert program.run(["summary", str(tmp_path / "log")]) in {0, 4}
    sentence = capsys.readouterr().err
    said.within(sentence)
    names = [path.name for path in folder.iterdir()]
    codes = {name: [found.code for found in longpole.check(folder / name)] for name in names}
    assert "other_timeline" in codes["vm.xplane.pb"]
    assert "limited_timeline" in codes["vm.trace.json.gz"]


def test_two_runs_of_xprof_in_one_folder_are_not_chosen_between(run, tmp_path):
    for date in ("2026_01_30", "2026_01_31"):
        folder = tmp_path / "plugins" / "profile" / date
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(xplane(run.events))
    with pytest.raises(longpole.TraceError, match="2 timelines") as several:
        longpole.read_trace(tmp_path)
    assert "2026_01_30" in str(several.value)
