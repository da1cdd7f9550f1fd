"""Several ranks as one Perfetto trace: aligned, whole, with the path across them."""

from __future__ import annotations

import gzip
import json
import shutil
from itertools import pairwise

import pytest

from longpole import merge, read_trace, read_traces
from longpole.cli import program
from longpole.testing import TraceBuilder
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks


@pytest.fixture
def run(tmp_path):
    found = random_ranks(3, n_ranks=4, pattern="data", n_stragglers=1, n_steps=2)
    folder = tmp_path / "traces"
    folder.mkdir()
    write_ranks(found.job, found.job.times_ns(), found.clocks, folder)
    return folder


class Decoded:
    """The slices and arrows of a Perfetto trace."""

    def __init__(self, data):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

        packets = schema.Trace.FromString(data).packet
        self.tracks = {
            packet.track_descriptor.uuid: packet.track_descriptor
            for packet in packets
            if packet.HasField("track_descriptor")
        }
        self.slices = []
        self.flows = []
        names = {}
        still_open = {}
        # As Perfetto does: by time, and in the order of the file.
        for packet in sorted(packets, key=lambda packet: packet.timestamp):
            sequence = packet.trusted_packet_sequence_id
            for name in packet.interned_data.event_names:
                names[sequence, name.iid] = name.name
            event = packet.track_event
            stack = still_open.setdefault(event.track_uuid, [])
            if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
                assert not stack or stack[-1][0] <= packet.timestamp
                name = event.name or names.get((sequence, event.name_iid))
                call = {it.name: it.int_value for it in event.debug_annotations}.get("call")
                stack.append((packet.timestamp, name, call))
                self.flows.append((list(event.terminating_flow_ids), list(event.flow_ids)))
            elif event.type == schema.TrackEvent.TYPE_SLICE_END:
                start, name, call = stack.pop()
                row = (self.process(event.track_uuid), start, packet.timestamp, name, call)
                self.slices.append(row)
        assert not any(still_open.values())

    def process(self, track):
        descriptor = self.tracks[track]
        if descriptor.HasField("process"):
            return descriptor.process.process_name
        return self.process(descriptor.parent_uuid)

    def of(self, process):
        return [row[1:] for row in self.slices if row[0] == process]


def test_every_event_of_every_rank_is_there_on_the_common_clock(run, tmp_path):
    ranks = read_traces(run)
    merge(ranks, tmp_path / "run.perfetto-trace")
    decoded = Decoded((tmp_path / "run.perfetto-trace").read_bytes())
    for place, rank in enumerate(ranks.rank_numbers):
        events = ranks.trace(rank).events.select("start_ns", "duration_ns", "name")
        common = [
            (
                ranks.solution.common_ns(place, start),
                ranks.solution.common_ns(place, start + length),
                str(name),
            )
            for start, length, name in events.iter_rows()
        ]
        found = [row[:3] for row in decoded.of(f"rank {rank} on host{rank}")]
        assert sorted(found) == sorted(common)


def test_members_of_a_call_end_together_and_bear_its_number(run, tmp_path):
    ranks = read_traces(run)
    merge(ranks, tmp_path / "run.perfetto-trace")
    decoded = Decoded((tmp_path / "run.perfetto-trace").read_bytes())
    ends = {}
    for _, _, end, _, call in decoded.slices:
        if call is not None:
            ends.setdefault(call, []).append(end)
    assert len(ends) == ranks.calls.height
    bound = ranks.clocks["bound_ns"].max()
    assert all(len(times) == 4 and max(times) - min(times) <= 2 * bound for times in ends.values())


def test_the_path_is_a_process_of_its_own_with_arrows(run, tmp_path):
    ranks = read_traces(run)
    merge(ranks, tmp_path / "run.perfetto-trace")
    decoded = Decoded((tmp_path / "run.perfetto-trace").read_bytes())
    found = sorted(row[:2] for row in decoded.of("critical path across ranks"))
    assert found == list(ranks.path().select("start_ns", "end_ns").iter_rows())
    arrows = [flow for flow in decoded.flows if flow != ([], [])]
    assert all(one[1] == other[0] for one, other in pairwise(arrows))
    assert len(arrows) == len(found)


def test_events_that_cross_go_to_tracks_of_their_own(tmp_path):
    for rank in (0, 1):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 2})
        builder.operator("outer", (0, 20)).operator("crosses", (10, 30))
        builder.launch("ncclDevKernel_AllReduce", call=(30, 33), work=(35, 50))
        builder.write(tmp_path / f"rank{rank}.json")
    merge(read_traces(tmp_path), tmp_path / "run.perfetto-trace")
    decoded = Decoded((tmp_path / "run.perfetto-trace").read_bytes())
    rows = {name: (start, end) for start, end, name, _ in decoded.of("rank 1")}
    assert (rows["outer"], rows["crosses"]) == ((0, 20_000), (10_000, 30_000))


def test_any_number_of_events_may_cross(tmp_path):
    for rank in (0, 1):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 2})
        for row in range(80):
            builder.kernel(f"k{row}", (row, row + 40 + row % 3))
        builder.launch("ncclDevKernel_AllReduce", call=(200, 203), work=(205, 210))
        builder.write(tmp_path / f"rank{rank}.json")
    merge(read_traces(tmp_path), tmp_path / "run.perfetto-trace")
    decoded = Decoded((tmp_path / "run.perfetto-trace").read_bytes())
    found = {name: (start, end) for start, end, name, _ in decoded.of("rank 1")}
    for row in range(80):
        assert found[f"k{row}"] == (row * 1_000, (row + 40 + row % 3) * 1_000)


def test_the_command_writes_a_packed_trace_and_replaces_nothing(run, tmp_path, capsys, said):
    output = tmp_path / "run.perfetto-trace.gz"
    assert program.run(["convert", str(run), "-o", str(output), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert data["bytes"] == output.stat().st_size
    assert Decoded(gzip.decompress(output.read_bytes())).slices
    first = output.read_bytes()
    assert program.run(["convert", str(run), "-o", str(output)]) != 0
    assert "exists" in capsys.readouterr().err
    assert program.run(["convert", str(run), "-f", "-o", str(output)]) == 0
    assert output.read_bytes() == first
    assert program.run(["convert", str(run), "-o", str(tmp_path / "run.json")]) == 2
    said.within(capsys.readouterr().err)
    with pytest.raises(ValueError, match=r"must end in \.perfetto-trace or \.perfetto-trace\.gz"):
        merge(read_traces(run), tmp_path / "run.zip")


def test_a_folder_a_pattern_and_files_name_the_same_ranks(run, tmp_path):
    files = sorted(map(str, run.iterdir()))
    ways = ([str(run)], [str(run / "rank?.json")], files)
    for number, given in enumerate(ways):
        output = tmp_path / f"{number}.perfetto-trace"
        assert program.run(["convert", *given, "--workers", "1", "-o", str(output)]) == 0
    merge(read_traces(run), tmp_path / "whole.perfetto-trace")
    assert len({path.read_bytes() for path in tmp_path.glob("*.perfetto-trace")}) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--step", "1"], "a window has no meaning for several ranks"),
        (["--table", "kernels"], "--table has no meaning for several ranks"),
    ],
)
def test_what_several_ranks_do_not_have_is_refused(run, tmp_path, words, told, capsys):
    output = str(tmp_path / "run.perfetto-trace")
    assert program.run(["convert", str(run), "-o", output, *words]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_or_pattern_of_one_trace_is_that_trace(tmp_path):
    (tmp_path / "one").mkdir()
    TraceBuilder().step(1, (0, 9)).write(tmp_path / "one" / "trace.json")
    for given in (tmp_path / "one", tmp_path / "one" / "t*.json"):
        assert program.run(["convert", str(given), "-fo", str(tmp_path / "x.json")]) == 0
    assert read_trace(tmp_path / "x.json").n_events == 1


@pytest.mark.skipif(
    shutil.which("trace_processor_shell") is None, reason="trace_processor_shell is not in PATH"
)
def test_perfetto_itself_reads_the_slices_and_arrows(run, tmp_path):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    ranks = read_traces(run)
    merge(ranks, tmp_path / "run.perfetto-trace")
    config = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"))
    with TraceProcessor(trace=str(tmp_path / "run.perfetto-trace"), config=config) as processor:

        def one(query):
            [row] = processor.query(query)
            return row.n

        n_events = sum(ranks.ranks["events"])
        n_segments = ranks.path().height
        assert one("select count(*) as n from slice") == n_events + n_segments
        assert one("select count(*) as n from flow") == n_segments - 1
        assert one("select count(*) as n from stats where severity = 'error' and value > 0") == 0
        assert one("select count(*) as n from process where name like 'rank %'") == len(ranks)
