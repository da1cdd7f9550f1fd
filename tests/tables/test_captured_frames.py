"""Operators and modules that captured a CUDA graph have the times of its kernels."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.cli.program import run as run_command
from longpole.formats.profiles import captures_of, captures_of_rank
from longpole.testing import TraceBuilder
from real_traces import SHARED

LAUNCH = {"ph": "X", "cat": "cuda_runtime", "pid": 100, "tid": 1, "name": "cudaLaunchKernel"}


def capture_of(*names, size=None, mark=None):
    """Capture a kernel in each operator of a module, 10 us apart."""
    builder = TraceBuilder()
    if mark is not None:
        builder.annotation(f"capture_{size}_{mark}", (0, 900))
    builder.call("cudaStreamBeginCapture", (0, 1)).python("nn.Module: Net_0", (2, 800))
    for place, name in enumerate(names):
        start = 10 * place + 5
        dims = {"Input Dims": [[size or place + 1, 4]], "Input type": ["float"]}
        builder.python(f"nn.Module: Layer_{place}", (start - 1, start + 8))
        builder.operator("outer", (start, start + 8)).operator(name, (start + 1, start + 7), **dims)
        builder.event(**LAUNCH, ts=start + 2, dur=3, args={"correlation": 50 + place})
    return builder.call("cudaStreamEndCapture", (801, 802))


def replays(lengths_us, *, starts=(1000,), launcher=None, mark=None):
    """Replay a graph of kernels of given lengths, each 20 us after the one before."""
    builder = TraceBuilder().operator("aten::mm", (900, 990))
    builder.launch("eager", call=(910, 920), work=(930, 940), stream=7)
    for number, start in enumerate(starts):
        if mark is not None:
            builder.annotation(mark, (start, start + 400))
        if launcher is not None:
            builder.operator(launcher, (start, start + 12))
        builder.call("cudaGraphLaunch", (start + 1, start + 10), correlation=7 + number)
        for place, length in enumerate(lengths_us):
            arguments = {"device": 0, "stream": 7, "correlation": 7 + number}
            where = {"ts": start + 20 + 20 * place, "dur": length, "pid": 0, "tid": 7}
            builder.event(ph="X", cat="kernel", name=f"k{place}", args=arguments, **where)
    return builder


def times(found):
    return {row["name"] or row["row"]: row for row in found.rows.to_dicts()}


def whole(trace):
    return longpole.choose_window(trace, whole=True)


def test_operators_of_a_capture_have_the_kernels_of_each_replay():
    capture = capture_of("aten::mm", "aten::add").read()
    trace = replays([5, 3], starts=(1000, 1500)).read(capture_traces=[capture])
    found = times(longpole.operators(trace, whole(trace)))
    of_mm, of_add = found["aten::mm"], found["aten::add"]
    assert (of_mm["count"], of_mm["n_activities"], of_mm["device_self_ns"]) == (1, 3, 20_000)
    assert (of_add["count"], of_add["self_ns"], of_add["device_self_ns"]) == (0, 0, 6_000)
    assert (found["outer"]["device_self_ns"], found["outer"]["device_ns"]) == (0, 16_000)
    assert found["outside"]["n_activities"] == 0


def test_without_the_capture_the_kernels_stay_outside_all_operators():
    trace = replays([5, 3]).read()
    found = times(longpole.operators(trace, whole(trace)))
    assert found["outside"]["device_ns"] == 8_000


def test_the_operator_that_launches_a_graph_contains_its_kernels_once():
    capture = capture_of("aten::mm", "aten::add").read()
    trace = replays([5, 3], launcher="outer").read(capture_traces=[capture])
    outer = times(longpole.operators(trace, whole(trace)))["outer"]
    assert (outer["count"], outer["device_self_ns"], outer["device_ns"]) == (1, 0, 8_000)
    assert outer["n_activities"] == 2


def test_captured_operators_have_their_own_shapes():
    capture = capture_of("aten::mm", "aten::mm").read()
    trace = replays([5, 3]).read(capture_traces=[capture])
    rows = longpole.operators(trace, whole(trace), shapes=True).rows
    named = rows.filter(pl.col("name") == "aten::mm", pl.col("shapes").is_not_null())
    assert dict(named.select(pl.col("shapes").list.first().list.first(), "device_ns").rows()) == {
        1: 5_000,
        2: 3_000,
    }


def test_modules_are_those_around_the_captured_calls():
    capture = capture_of("aten::mm", "aten::add").read()
    trace = replays([5, 3]).read(capture_traces=[capture])
    found = times(longpole.modules(trace, whole(trace), by="path"))
    assert found["Net_0"]["device_ns"] == 8_000
    assert found["Net_0/Layer_1"]["device_self_ns"] == 3_000
    assert found["outside"]["device_ns"] == 10_000  # the eager kernel


@given(
    lengths=st.lists(st.integers(1, 19), min_size=1, max_size=6),
    names=st.lists(st.sampled_from(["aten::mm", "aten::add", "outer"]), min_size=6, max_size=6),
    starts=st.sampled_from([(1000,), (1000, 1500), (1000, 1400, 1900)]),
    launcher=st.sampled_from([None, "outer", "replay"]),
    flags=st.tuples(st.booleans(), st.booleans()),
)
@settings(deadline=None, max_examples=40)
def test_device_times_add_up_to_those_without_a_capture(lengths, names, starts, launcher, flags):
    part, shapes = flags
    capture = capture_of(*names[: len(lengths)]).read()
    builder = replays(lengths, starts=starts, launcher=launcher)
    seen, alone = builder.read(capture_traces=[capture]), builder.read(capture_traces=[])
    window = whole(seen)
    if part:
        window = longpole.choose_window(seen, between=(window.start_ns, window.end_ns - 25_000))
    for table, options in ((longpole.operators, {"shapes": shapes}), (longpole.modules, {})):
        with_graphs, without = table(seen, window, **options), table(alone, window, **options)
        assert with_graphs.rows["device_self_ns"].sum() == without.rows["device_self_ns"].sum()
        assert with_graphs.rows["self_ns"].sum() == without.rows["self_ns"].sum()
        assert with_graphs.device_ns == without.device_ns
        assert (with_graphs.rows["device_ns"] <= with_graphs.device_ns).all()
        rest = with_graphs.rows.filter(pl.col("row") == "outside")["device_ns"].sum()
        assert rest == (0 if table is longpole.operators else 10_000)


# Where servers write captures


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("capture_traces", "graph_capture_rank_0.1700.pt.trace.json.gz"),
        ("capture_traces", "bs_8_rank0.json.gz"),
        ("graph_capture_profile", "cuda_graph_capture-DecodeCudaGraphRunner-TP-0.json.gz"),
        ("graph_capture_profile", "DecodeCudaGraphRunner_bs_8_rank0.json.gz"),
    ],
)
def test_captures_that_servers_write_beside_a_trace_are_found(tmp_path, folder, name):
    (tmp_path / folder).mkdir()
    capture_of("aten::mm", "aten::add").write(tmp_path / folder / name)
    path = replays([5, 3], mark="step[DECODE bs=7]").write(tmp_path / "1700-TP-0.trace.json.gz")
    trace = longpole.read_trace(path)
    assert times(longpole.operators(trace, whole(trace)))["aten::add"]["device_ns"] == 3_000


def test_of_a_capture_for_each_batch_size_only_the_needed_ones_are_read(tmp_path):
    folder = tmp_path / "capture_traces"
    folder.mkdir()
    for size in (1, 2, 4, 8, 16):
        for rank in (0, 1):
            capture = capture_of("aten::mm", "aten::add", size=size)
            capture.write(folder / f"bs_{size}_rank{rank}.json.gz")
    path = replays([5, 3], mark="step[DECODE bs=3]").write(tmp_path / "rank0.json.gz")
    trace = longpole.read_trace(path)
    # The trace names no rank, and two were captured: none is chosen.
    assert trace.capture_traces == ()
    for each in folder.glob("*_rank1.json.gz"):
        each.unlink()
    trace = longpole.read_trace(path)
    assert [it.path.name for it in trace.capture_traces] == ["bs_4_rank0.json.gz"]
    shapes = longpole.operators(trace, whole(trace), shapes=True).rows
    named = shapes.filter(pl.col("name") == "aten::add")
    assert named["shapes"].to_list() == [[[4, 4]]]


def test_captures_belong_to_their_rank():
    names = ["a_rank0.json.gz", "a_rank_1.json.gz", "b-TP-1.json.gz", "c.json.gz"]
    paths = [*map(Path, names)]
    assert [it.name for it in captures_of_rank(paths, 1)] == names[1:]
    assert [it.name for it in captures_of_rank(paths, None)] == names[3:]
    assert [it.name for it in captures_of_rank(paths[:1], 5)] == names[:1]


def test_a_file_named_like_the_trace_comes_first(tmp_path):
    (tmp_path / "capture_traces").mkdir()
    capture_of("aten::mm").write(tmp_path / "capture_traces" / "graph_capture_rank_0.json.gz")
    trace = replays([5]).write(tmp_path / "x.json.gz")
    assert [it.name for it in captures_of(trace)] == ["graph_capture_rank_0.json.gz"]
    capture_of("aten::mm").write(tmp_path / "x.capture.json.gz")
    assert [it.name for it in captures_of(trace)] == ["x.capture.json.gz"]


@pytest.mark.parametrize(
    "command", [["table", "operators"], ["table", "modules"], ["summary"], ["whatif"]]
)
def test_the_option_names_a_capture(tmp_path, capsys, command):
    replay = replays([5, 3]).write(tmp_path / "replay.json")
    capture = capture_of("aten::mm", "aten::add").write(tmp_path / "capture.json")
    name, *table = command
    asked = [name, str(replay), *table, "--window", "all", "--capture-trace", str(capture)]
    assert run_command(asked) == 0
    told = capsys.readouterr().out
    if "operators" in command:
        assert "aten::add" in told
        assert "ran while a graph was captured that launched them" in " ".join(told.split())


def test_launches_without_a_fitting_capture_are_said(said):
    capture = capture_of("aten::mm").read()
    trace = replays([5, 3]).read(capture_traces=[capture])
    found = longpole.operators(trace, whole(trace))
    said.within(found.hint or "")


@pytest.mark.parametrize("table", [longpole.operators, longpole.modules, longpole.roofline])
def test_graphs_without_a_capture_are_said_with_their_share(table, said):
    trace = replays([5, 3]).read()
    told = " ".join(getattr(it, "text", "") for it in table(trace, whole(trace)).blocks())
    said.within(told)
    few = replays([0.1]).read()
    told = " ".join(getattr(it, "text", "") for it in table(few, whole(few)).blocks())
    assert "Graphs ran" not in told


# Recordings of servers


@pytest.mark.parametrize(
    ("name", "known", "bounded", "outside"),
    [("sglang_decode", 0.996, 0.0, 0.002), ("vllm_decode_full", 0.212, 0.067, 0.001)],
)
def test_the_work_of_a_recorded_server_is_known_through_its_graphs(name, known, bounded, outside):
    """Shares of the kernel time. Of vLLM's experts, the recording has no weights."""
    path = SHARED / "open_answers" / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    trace = longpole.read_trace(path)
    work = longpole.roofline(trace, whole(trace))
    assert work.known_ns >= known * work.kernel_ns
    assert work.bounded_ns >= bounded * work.kernel_ns
    found = longpole.operators(trace, whole(trace))
    rest = found.rows.filter(pl.col("row") == "outside")["device_ns"].sum()
    assert rest <= outside * found.device_ns
    alone = longpole.read_trace(path, capture_traces=[])
    known_alone = longpole.roofline(alone, whole(alone)).known_ns
    assert known_alone < 0.05 * work.kernel_ns
