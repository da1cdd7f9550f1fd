"""The overlay for Perfetto decodes with the published schema into the pieces of the path."""

import json
import os
import zipfile

import pytest

import longpole
from longpole.files.writing import new_file
from tiny_traces import call, frame, kernel, launch, operator, read

WAITING = [
    *(operator("A", 0, 1), launch(1, 2, 1), call("cudaDeviceSynchronize", 10, 40)),
    *(kernel("K", 4, 35, 1), operator("after", 40, 45)),
]


def slices(data):
    """Decode an overlay: (begin us, end us, track, name, arguments) and arrows, by slice."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    trace = schema.Trace.FromString(data)
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    found, arrows, still_open = [], [], {}
    for packet in trace.packet:
        event = packet.track_event
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in still_open
            still_open[event.track_uuid] = (packet.timestamp, event)
            arrows.append((list(event.terminating_flow_ids), list(event.flow_ids)))
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            begin_ns, begun = still_open.pop(event.track_uuid)
            track = tracks[event.track_uuid].removeprefix("critical path: ")
            times = (begin_ns / 1_000, packet.timestamp / 1_000)
            found.append((*times, track, begun.name, arguments(begun)))
    assert not still_open
    return found, arrows


def arguments(event):
    return {
        argument.name: argument.string_value or argument.int_value
        for argument in event.debug_annotations
    }


def test_slices_tile_the_window_on_the_lanes_of_their_events(tmp_path):
    read(WAITING).critical_path(whole=True).to_perfetto(tmp_path / "path.pftrace")
    found, arrows = slices((tmp_path / "path.pftrace").read_bytes())
    host, device = "process 1, thread 1", "device 0, stream 7"
    assert [slice_[:4] for slice_ in found] == [
        (0, 1, host, "operator: A"),
        (1, 2, host, "runtime: cudaLaunchKernel"),
        (2, 4, device, "launch: K"),
        (4, 35, device, "kernel: K"),
        (35, 40, host, "sync_return: cudaDeviceSynchronize"),
        (40, 45, host, "operator: after"),
    ]
    assert found[3][4] == {"evidence": "order", "position": 3, "slack_ns": 0}
    assert found[4][4]["evidence"] == "inferred"
    assert arrows == [([], [1]), ([1], [2]), ([2], [3]), ([3], [4]), ([4], [5]), ([5], [])]


def test_frames_around_the_events_shift_no_mark(tmp_path):
    """HTA counts events, and with frames of Python among them marks the wrong ones."""
    frames = [frame(f"f{number}", 0, 45) for number in range(50)]
    read([*frames, *WAITING]).critical_path(whole=True).to_perfetto(tmp_path / "path.pftrace")
    found, _ = slices((tmp_path / "path.pftrace").read_bytes())
    marked = [([*frames, *WAITING][slice_[4]["position"]]["name"], slice_[3]) for slice_ in found]
    assert marked == [(name.split(": ")[1], name) for _, name in marked]
    assert ("K", "kernel: K") in marked


def test_time_of_nobody_has_a_track_of_its_own(tmp_path):
    trace = read([operator("A", 0, 10), operator("B", 15, 20)])
    trace.critical_path(whole=True).to_perfetto(tmp_path / "path.pftrace")
    found, _ = slices((tmp_path / "path.pftrace").read_bytes())
    assert found[1][:4] == (10, 15, "time without an event", "host_gap")


def test_the_trace_may_lie_beside_and_stays_as_it_is(tmp_path):
    original = tmp_path / "trace.json"
    original.write_bytes(b"{}")
    path = read(WAITING).critical_path(whole=True)
    path.to_perfetto(tmp_path / "both.zip", beside=original)
    with zipfile.ZipFile(tmp_path / "both.zip") as archive:
        assert archive.namelist() == ["trace.json", "critical_path.pftrace"]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert max(entry.extract_version for entry in archive.infolist()) < 45  # zip64 is refused
        assert archive.read("trace.json") == original.read_bytes() == b"{}"
        assert slices(archive.read("critical_path.pftrace"))[0]


def test_nothing_is_overwritten_unless_asked_for(tmp_path):
    path = read(WAITING).critical_path(whole=True)
    target = tmp_path / "trace.json"
    target.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"trace\.json exists"):
        path.to_perfetto(target)
    assert target.read_bytes() == b"precious"
    path.to_perfetto(target, force=True)
    assert target.read_bytes() != b"precious"
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]


def test_the_trace_itself_is_never_written_over(tmp_path):
    original = tmp_path / "trace.json"
    original.write_text(json.dumps({"traceEvents": WAITING}))
    path = longpole.read_trace(original).critical_path(whole=True)
    changed = path.what_if(longpole.Drop(kind="launch")).critical_path
    for found in (path, changed):
        with pytest.raises(FileExistsError, match="is an input, which is never replaced"):
            found.to_perfetto(original, force=True)
    with pytest.raises(FileExistsError, match="is an input, which is never replaced"):
        read(WAITING).critical_path(whole=True).to_perfetto(original, beside=original, force=True)
    assert json.loads(original.read_text())["traceEvents"] == WAITING


def test_a_pipe_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        pytest.raises(FileExistsError, match="is not a regular file and is never replaced"),
        new_file(pipe, force=True) as unfinished,
    ):
        unfinished.write_text("answer")
    assert pipe.is_fifo()
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]
