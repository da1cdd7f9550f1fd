"""A trace that was written for Perfetto reads back as the same tables, in the same order.

Some columns count anew: positions of events, how often and where last a statement stands, and
lanes, for one without events is not written. The phases and what was found while reading are those
of the new file.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from ascend_profiles import late_peer
from longpole.cli import program
from longpole.formats.convert.cut import cut
from longpole.formats.convert.perfetto import write_perfetto
from longpole.testing import TraceBuilder
from oracles.simulator import simulate
from oracles.simulator.nsight import write_nsight
from oracles.simulator.perfetto import perfetto
from oracles.simulator.rocpd import write_rocpd
from oracles.simulator.xprof import xplane
from real_traces import real_traces
from strategies import traces
from styles import STYLES, document

TABLES = ("events", "flows", "asynchronous", "counters", "metadata_events")
ANSWERS = (*TABLES, "launches", "steps", "self_times")
COUNTED_ANEW = ("position", "count", "last_position", "lane")
HEADER = ("rank", "world_size", "base_time_ns", "categories", "metadata")


def rows(frame):
    kept = [column for column in frame.columns if column not in COUNTED_ANEW]
    return {column: repr(frame[column].to_list()) for column in kept}


def assert_same_tables(one, two, header=HEADER):
    """Compare every column of every table; bits of floats count, so that NaN is NaN."""
    for name in ANSWERS:
        assert rows(getattr(two, name)) == rows(getattr(one, name)), name
    for category in one.categories:
        assert rows(two.args(category)) == rows(one.args(category)), category
    for name in header:
        assert getattr(two, name) == getattr(one, name), name


def written(trace, folder, window=None):
    path = folder / "trace.perfetto-trace"
    write_perfetto(trace, path, window, force=True)
    return longpole.read_trace(path)


def path_of(trace):
    return trace.critical_path(whole=True).segments.rows()


@pytest.mark.parametrize("seed", range(12))
def test_a_program_has_the_same_tables_path_and_verdict(seed, tmp_path):
    simulate("random", seed=seed).write(tmp_path / "trace.json")
    trace = longpole.read_trace(tmp_path / "trace.json")
    back = written(trace, tmp_path)
    assert back.format == "perfetto"
    assert_same_tables(trace, back)
    assert path_of(back) == path_of(trace)
    assert str(back.verdict()) == str(trace.verdict())


@given(events=traces(), style=st.sampled_from(sorted(STYLES)))
def test_events_of_any_shape_come_back(events, style, tmp_path_factory):
    folder = tmp_path_factory.mktemp("perfetto")
    source = folder / "trace.json"
    source.write_bytes(document(events, STYLES[style], distributedInfo={"rank": 2}, note="x\ty"))
    trace = longpole.read_trace(source)
    assert_same_tables(trace, written(trace, folder))


@given(
    spans=st.lists(
        st.tuples(st.integers(-5, 12), st.integers(0, 9), st.sampled_from([7, 7, 7, 9])),
        max_size=60,
    )
)
def test_overlapping_events_of_a_stream_stay_on_it(spans, tmp_path_factory):
    folder = tmp_path_factory.mktemp("perfetto")
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": f"k{row}",
            "pid": 0,
            "tid": stream,
            "ts": start / 1000,
            "dur": lasts / 1000,
            "args": {"device": 0, "stream": stream},
        }
        for row, (start, lasts, stream) in enumerate(spans)
    ]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    trace = longpole.read_trace(folder / "trace.json")
    back = written(trace, folder)
    assert_same_tables(trace, back)
    assert back.diagnostics.is_empty()
    assert_slices_nest(folder / "trace.perfetto-trace", spans)


def assert_slices_nest(path, spans):
    """Pair begins and ends as Perfetto does: by time, and in the order of the file."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    names, events = {}, []
    for packet in schema.Trace.FromString(path.read_bytes()).packet:
        names |= {it.iid: it.name for it in packet.interned_data.event_names}
        if packet.track_event.type:
            events.append((packet.timestamp, packet.track_event))
    stacks, found = {}, {}
    for time_ns, event in sorted(events, key=lambda event: event[0]):
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((time_ns, names[event.name_iid]))
        else:
            begin_ns, name = stack.pop()
            found[name] = (begin_ns, time_ns - begin_ns)
    first_ns = min([0, *(start for start, _, _ in spans)])
    assert found == {
        f"k{row}": (start - first_ns, lasts) for row, (start, lasts, _) in enumerate(spans)
    }
    assert not any(stacks.values())


@pytest.mark.parametrize("form", ["kineto", "xplane", "perfetto", "nsight", "rocpd"])
def test_perfetto_knows_every_field_number_and_arrow(form, tmp_path):
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    run, path = simulate("training", seed=3, steps=3), tmp_path / "run"
    of_bytes = {"xplane": xplane, "perfetto": perfetto}
    if form in of_bytes:
        path.write_bytes(of_bytes[form](run.events))
    else:
        {"kineto": type(run).write, "nsight": write_nsight, "rocpd": write_rocpd}[form](run, path)
    trace = longpole.read_trace(path)
    written(trace, tmp_path)
    known, tracks, arrows = {}, set(), {}
    for packet in schema.Trace.FromString((tmp_path / "trace.perfetto-trace").read_bytes()).packet:
        event, texts = packet.track_event, packet.interned_data
        assert not [*UnknownFieldSet(packet), *UnknownFieldSet(event), *UnknownFieldSet(texts)]
        if packet.sequence_flags & 1:
            known = {}
        for field in ("event_names", "event_categories", "debug_annotation_names"):
            known |= {(field, it.iid): it.name for it in getattr(texts, field)}
        tracks.add(packet.track_descriptor.uuid)
        if not packet.HasField("track_event"):
            continue
        assert event.track_uuid in tracks
        name = known["event_names", event.name_iid] if event.name_iid else None
        categories = [known["event_categories", iid] for iid in event.category_iids]
        assert all(
            ("debug_annotation_names", it.name_iid) in known for it in event.debug_annotations
        )
        if chr(event.legacy_event.phase) in "stf":
            # Perfetto joins the ends of an arrow that agree in these.
            key = (*categories, name, event.legacy_event.unscoped_id)
            arrows.setdefault(key, set()).add(chr(event.legacy_event.phase))
    n_whole = trace.flows.group_by("flow").agg(pl.col("phase").n_unique())["phase"].eq(2).sum()
    assert sum(len(phases) == 2 for phases in arrows.values()) == n_whole
    assert n_whole > 0 or form not in ("kineto", "perfetto")


def test_thousands_of_events_that_overlap_come_back(tmp_path):
    builder = TraceBuilder()
    for row in range(3_000):
        builder.kernel(f"k{row}", (row, row + 1_500))
    trace = builder.read()
    assert_same_tables(trace, written(trace, tmp_path))


def test_an_event_that_ends_before_it_begins_changes_no_other(tmp_path):
    builder = TraceBuilder().operator("outer", (0, 10)).kernel("backwards", (5, 3))
    builder.operator("backwards", (5, 3)).operator("inner", (6, 8))
    trace = builder.read()
    back = written(trace, tmp_path)
    assert_same_tables(trace, back)
    assert back.diagnostics["code"].to_list() == ["negative_duration"]


def test_texts_are_written_anew_after_the_state_was_cleared(tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    builder = TraceBuilder()
    for row in range(2_500):
        builder.operator(f"{row}" * 1_000, (row * 10, row * 10 + 5))
        builder.operator("often", (row * 10 + 6, row * 10 + 7))
    trace = builder.read()
    assert_same_tables(trace, written(trace, tmp_path))
    packets = schema.Trace.FromString((tmp_path / "trace.perfetto-trace").read_bytes()).packet
    named = [it.name for packet in packets for it in packet.interned_data.event_names]
    n_cleared = sum(packet.sequence_flags == 1 for packet in packets)
    assert named.count("often") == n_cleared > 1


def test_what_stands_on_a_track_is_named_for_people(tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    simulate("training", seed=1, steps=2).write(tmp_path / "trace.json")
    written(longpole.read_trace(tmp_path / "trace.json"), tmp_path)
    packets = schema.Trace.FromString((tmp_path / "trace.perfetto-trace").read_bytes()).packet
    tracks = [it.track_descriptor for it in packets if it.HasField("track_descriptor")]
    assert "device 0, stream 7" in {track.name for track in tracks}
    assert any(track.thread.pid and track.thread.tid for track in tracks)
    uuids = {track.uuid for track in tracks}
    assert len(uuids) == len(tracks)
    assert {track.parent_uuid for track in tracks} <= uuids | {0}
    assert {it.track_event.track_uuid for it in packets if it.HasField("track_event")} <= uuids


def test_an_ascend_profile_keeps_its_kinds_and_rank(tmp_path):
    folder = tmp_path / "rank3_ascend_pt"
    late_peer().write(folder / "ASCEND_PROFILER_OUTPUT/trace_view.json")
    trace = longpole.read_trace(folder)
    back = written(trace, tmp_path)
    assert back.rank == trace.rank is not None
    assert_same_tables(trace, back, header=("base_time_ns", "categories"))
    assert str(back.verdict()) == str(trace.verdict())


@pytest.mark.parametrize("form", ["nsight", "rocpd", "xplane"])
def test_other_formats_come_back_with_their_profiler(form, tmp_path):
    run, path = simulate("random", seed=5), tmp_path / "run.sqlite"
    if form == "xplane":
        path.write_bytes(xplane(run.events))
    else:
        {"nsight": write_nsight, "rocpd": write_rocpd}[form](run, path)
    trace = longpole.read_trace(path)
    back = written(trace, tmp_path)
    assert_same_tables(trace, back, header=("rank", "base_time_ns", "categories"))
    assert back.core.profiler == trace.core.profiler
    assert str(back.verdict()) == str(trace.verdict())


def test_a_whole_trace_is_written_without_polars(tmp_path):
    source = TraceBuilder().step(1, (0, 9)).write(tmp_path / "trace.json")
    words = ["convert", str(source), "-o", str(tmp_path / "a.perfetto-trace")]
    program_text = (
        "import sys; from longpole.cli import program;"
        f"code = program.run({words!r}); sys.exit(code or 'polars' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program_text], check=True)


def test_a_step_holds_what_the_step_as_json_holds(tmp_path):
    source = tmp_path / "trace.json"
    simulate("training", seed=2, steps=4).write(source)
    trace = longpole.read_trace(source)
    window = longpole.choose_window(trace, 2)
    cut(trace, source, window, tmp_path / "step.json")
    back = written(trace, tmp_path, window)
    assert back.events.height < trace.events.height
    assert_same_tables(longpole.read_trace(tmp_path / "step.json"), back)


def test_the_command_writes_plain_and_packed_files(tmp_path, capsys):
    source = tmp_path / "trace.json"
    simulate("training", seed=2, steps=3).write(source)
    plain, packed = tmp_path / "a.perfetto-trace", tmp_path / "b.perfetto-trace.gz"
    assert program.run(["convert", str(source), "-o", str(plain)]) == 0
    assert program.run(["convert", str(source), "-o", str(packed)]) == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert_same_tables(longpole.read_trace(source), longpole.read_trace(plain))
    step = tmp_path / "step.perfetto-trace"
    assert program.run(["convert", str(source), "--step", "1", "-o", str(step)]) == 0
    assert longpole.read_trace(step).steps["step"].to_list() == [0, 1]
    assert program.run(["convert", str(source), "-o", str(plain)]) != 0
    assert "exists" in capsys.readouterr().err
    assert program.run(["convert", str(source), "--where", "x", "-o", str(step)]) == 2


@pytest.mark.parametrize("source", real_traces(slow_bytes=200_000))
def test_real_traces_come_back(source, tmp_path):
    if not source.is_file():
        pytest.skip("no real traces beside the project")
    trace = longpole.read_trace(source)
    back = written(trace, tmp_path)
    assert_same_tables(trace, back)
    assert back.verdict() == trace.verdict()


def test_arguments_that_were_not_read_are_not_written(tmp_path):
    simulate("training", seed=1, steps=2).write(tmp_path / "trace.json")
    trace = longpole.read_trace(tmp_path / "trace.json", args="ids")
    assert "grid" in longpole.read_trace(tmp_path / "trace.json").args("kernel")
    assert "grid" not in written(trace, tmp_path).args("kernel")
