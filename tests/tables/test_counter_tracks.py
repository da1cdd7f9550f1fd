"""Queue lengths and bandwidths as counters that decode with Perfetto's schema."""

from __future__ import annotations

import pytest

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder


@pytest.fixture
def builder():
    return (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(10, 20))
        .launch("gemm", call=(5, 6), work=(20, 30))
        .event(
            ph="X",
            cat="gpu_memcpy",
            name="Memcpy HtoD (Pageable -> Device)",
            pid=0,
            tid=9,
            ts=2,
            dur=2,
            args={"device": 0, "stream": 9, "bytes": 8000},
        )
    )


def samples(data):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    names, found = {}, {}
    for packet in schema.Trace.FromString(data).packet:
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            if described.HasField("counter"):
                names[described.uuid] = described.name
        elif packet.track_event.type == schema.TrackEvent.TYPE_COUNTER:
            event = packet.track_event
            point = (packet.timestamp, event.double_counter_value)
            found.setdefault(names[event.track_uuid], []).append(point)
    return found


EXPECTED = {
    "queue length: device 0, stream 7": [(0, 1), (5_000, 2), (10_000, 1), (20_000, 0)],
    "copies (GB/s): device 0, Memcpy HtoD": [(2_000, 4), (4_000, 0)],
}


def test_each_stream_and_direction_is_a_track(builder):
    assert samples(longpole.counter_tracks(builder.read())) == EXPECTED


def test_the_overlay_holds_them_beside_the_path(builder, tmp_path):
    trace = builder.write(tmp_path / "trace.json")
    output = tmp_path / "path.pftrace"
    assert program.run(["convert", str(trace), "--counters", "-o", str(output)]) == 0
    assert samples(output.read_bytes()) == EXPECTED
    assert b"critical path" in output.read_bytes()
