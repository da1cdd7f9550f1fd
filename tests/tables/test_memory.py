"""Peak memory, its contents, and the operators that allocate most."""

from __future__ import annotations

import gzip
import json
import pickle

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.cli import program
from longpole.engine.windows import Window
from longpole.testing import TraceBuilder
from real_traces import SHARED

MIB = 1 << 20
TIMELINE = SHARED / "traces" / "memory_timeline.raw.gz"
OF_HTA = SHARED / "hta_results" / "memory_timeline" / "memory_timeline.json"
CATEGORIES = ("parameter", "optimizer state", "input", "temporary", "activation", "gradient")


class Changes:
    """A trace that allocates and frees, with the totals that torch would record."""

    def __init__(self):
        self.builder = TraceBuilder()
        self.allocated = 0

    def __call__(self, at, n_bytes, address, *, reserved=64, kind=1, number=0):
        self.allocated += n_bytes
        args = {
            "Bytes": n_bytes,
            "Addr": address,
            "Total Allocated": self.allocated,
            "Total Reserved": reserved,
            "Device Type": kind,
            "Device Id": number,
        }
        event = {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event"}
        self.builder.event(**event, pid=100, tid=1, ts=at, args=args)
        return self


def forward():
    changes = Changes()
    changes.builder = (
        TraceBuilder()
        .python("model.py(7): forward", (0, 100))
        .operator("aten::mm", (0, 20))
        .python("<built-in method mm of type object at 0x7f>", (20, 40))
        .operator("aten::relu", (20, 40))
        .operator("aten::empty", (22, 30))
    )
    changes.allocated = 5  # from before the recording
    return changes(10, 10, 1)(25, 20, 2)(35, -10, 1)(60, 3, 1)(70, -20, 2)


def test_the_peak_is_held_by_what_was_allocated_and_not_freed():
    found = longpole.memory(forward().builder.read())
    assert found.devices.select(
        "device", "start_bytes", "peak_bytes", "peak_time_ns", "end_bytes"
    ).row(0) == ("cuda:0", 5, 35, 25_000, 8)
    assert found.at_peak.select("operator", "function", "n_blocks", "n_bytes", "known").rows() == [
        ("aten::empty", "model.py(7): forward", 1, 20, True),
        ("aten::mm", "model.py(7): forward", 1, 10, True),
        (None, None, None, 5, False),
    ]


def test_the_stack_of_what_is_live_can_be_asked_for():
    trace = forward().builder.read()
    found = longpole.memory(trace).at_peak
    stack = trace.stack_of(found["inside"][0])
    assert stack["name"].to_list()[0] == "model.py(7): forward"
    assert stack["name"].to_list()[-1] == "aten::empty"


def test_the_function_of_an_allocation_is_one_of_the_program():
    changes = Changes()
    changes.builder = (
        TraceBuilder()
        .python("train.py(3): step", (0, 100))
        .python("torch/nn/functional.py(9): relu", (10, 90))
        .operator("aten::relu", (20, 80))
    )
    at_peak = longpole.memory(changes(30, 8, 1).builder.read()).at_peak
    assert at_peak.select("operator", "function").row(0) == ("aten::relu", "train.py(3): step")


def test_fragmentation_is_what_is_reserved_and_not_used_at_the_peak():
    row = longpole.memory(forward().builder.read()).devices.row(0, named=True)
    assert (row["unused_bytes"], row["fragmentation"]) == (64 - 35, (64 - 35) / 64)


def test_churn_is_counted_by_operator():
    churn = longpole.memory(forward().builder.read(), by="operator")
    columns = ("operator", "n_allocations", "allocated_bytes", "n_frees", "freed_bytes")
    assert churn.select(columns).rows() == [
        ("aten::empty", 1, 20, 0, 0),
        ("aten::mm", 1, 10, 0, 0),
        (None, 1, 3, 1, 20),
        ("aten::relu", 0, 0, 1, 10),
    ]


def test_a_window_has_its_own_peak():
    trace = forward().builder.read()
    window = longpole.Window("trace", None, 50_000, 100_000, "for the test")
    found = longpole.memory(trace, window)
    assert found.devices.select("start_bytes", "peak_bytes").row(0) == (25, 28)
    assert found.at_peak["n_bytes"].sum() == 28


def test_devices_do_not_know_each_other_and_a_cpu_reserves_nothing():
    changes = forward()
    changes.allocated = 0
    changes(80, 7, 9, kind=0, number=-1, reserved=0)
    found = longpole.memory(changes.builder.read())
    assert found.devices.select("device", "peak_bytes", "fragmentation").rows()[0] == (
        "cpu",
        7,
        None,
    )
    only = longpole.memory(changes.builder.read(), where="device = 'cpu'")
    assert only.devices["device"].to_list() == ["cpu"]


def test_a_trace_without_memory_says_what_to_record():
    found = longpole.memory(TraceBuilder().operator("aten::mm", (0, 5)).read())
    assert "profile_memory=True" in found.blocks()[0].text


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 100), st.integers(0, 3)), min_size=1),
    st.integers(0, 1000),
)
def test_what_was_live_at_the_peak_sums_to_it(steps, before):
    """Against a dictionary of what lives at each address."""
    changes, live = Changes(), {}
    changes.allocated, peak, at_peak = before, -1, 0
    for at, (address, n_bytes, _) in enumerate(steps):
        if address in live:
            changes(at, -live.pop(address), address)
        else:
            live[address] = n_bytes
            changes(at, n_bytes, address)
        if changes.allocated > peak:
            peak, at_peak = changes.allocated, sum(live.values())
    found = longpole.memory(changes.builder.read())
    assert found.devices["peak_bytes"].to_list() == [peak]
    assert found.at_peak.filter("known")["n_bytes"].sum() == at_peak
    assert found.at_peak["n_bytes"].sum() == peak


def written(path, document):
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["timeline.raw.json.gz", "timeline.raw.json"])
def test_a_timeline_is_read_by_category(name, tmp_path):
    rows = [[-1, 1, 100, 0], [5, 2, 50, 7], [6, 3, -50, 7], [6, 3, 50, 4], [9, 4, -50, 4]]
    recording = longpole.read_memory(written(tmp_path / name, rows))
    found = longpole.memory(recording)
    assert found.devices.select("peak_bytes", "peak_time_ns", "end_bytes").row(0) == (150, 5, 100)
    assert found.at_peak.select("category", "n_bytes").rows() == [
        ("parameter", 100),
        ("unknown", 50),
    ]
    assert found.churn.select("category", "n_allocations", "n_frees").rows() == [
        ("unknown", 1, 0),
        ("activation", 0, 1),
    ]


def test_a_timeline_starts_with_what_was_there_before_the_recording(tmp_path):
    rows = [[-1, 1, 100, 0], [-1, 1, 30, 7], [5, 2, 50, 7], [6, 4, -100, 0]]
    recording = longpole.read_memory(written(tmp_path / "timeline.raw.json", rows))
    (row,) = longpole.memory(recording).devices.to_dicts()
    assert (row["start_bytes"], row["peak_bytes"], row["end_bytes"]) == (130, 180, 80)
    later = longpole.memory(recording, longpole.Window("time_range", None, 6, 9, "for the test"))
    assert later.devices["start_bytes"].item() == 180


def test_sizes_are_shown_with_the_digits_that_are_known(tmp_path, capsys):
    rows = [[-1, 1, 2_940 * MIB, 0], [5, 2, 62_398 * MIB, 7], [6, 2, MIB // 4, 3]]
    assert program.run(["table", str(written(tmp_path / "timeline.raw.json", rows)), "memory"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("  device  "))
    sizes = next(line for line in out.splitlines() if line.startswith("  device  63")).split()
    assert sizes[1:7] == ["63.81", "GiB", "2.871", "GiB", "63.81", "GiB"], row
    shown = [line.split()[-4:-2] for line in out.splitlines() if "temporary" in line]
    assert shown == [["256", "KiB"]] * 2


@pytest.mark.skipif(not OF_HTA.is_file(), reason=f"no answers of HTA in {OF_HTA}")
def test_a_real_timeline_has_the_bytes_that_hta_gives_each_category():
    events = longpole.read_memory(TIMELINE).events
    theirs = json.loads(OF_HTA.read_text())
    moments = dict(zip(theirs["times"], theirs["sizes"], strict=True))
    ours = events.filter(pl.col("time_ns").is_not_null())
    for time_ns in ours["time_ns"].unique().gather_every(500):
        so_far = events.filter(pl.col("time_ns").is_null() | (pl.col("time_ns") <= time_ns))
        sums = dict(so_far.group_by("category").agg(pl.col("n_bytes").sum()).iter_rows())
        assert [sums.get(name, 0) for name in CATEGORIES] == moments[time_ns][: len(CATEGORIES)]


def snapshot():
    frames = [
        {"filename": "/site-packages/torch/nn/functional.py", "line": 9, "name": "relu"},
        {"filename": "/home/me/train.py", "line": 3, "name": "step"},
    ]
    trace = [
        {"action": "segment_alloc", "addr": 1, "size": 4 * MIB, "time_us": 1, "frames": []},
        {"action": "alloc", "addr": 1, "size": 2 * MIB, "time_us": 2, "frames": frames},
        {"action": "alloc", "addr": 9, "size": 1 * MIB, "time_us": 3, "frames": []},
        {"action": "free_requested", "addr": 1, "size": 2 * MIB, "time_us": 4, "frames": []},
        {"action": "free_completed", "addr": 1, "size": 2 * MIB, "time_us": 5, "frames": []},
        {"action": "snapshot", "time_us": 6},
    ]
    blocks = [
        {"address": 1, "size": 2 * MIB, "state": "inactive", "frames": []},
        {"address": 9, "size": 1 * MIB, "state": "active_allocated", "frames": []},
        {"address": 10, "size": 1 * MIB, "state": "inactive", "frames": []},
    ]
    segment = {"device": 0, "address": 1, "total_size": 4 * MIB, "blocks": blocks}
    return {"segments": [segment], "device_traces": [trace]}


def test_a_snapshot_in_json_is_read_with_the_lines_of_the_program(tmp_path):
    found = longpole.memory(longpole.read_memory(written(tmp_path / "snapshot.json", snapshot())))
    columns = (
        "device",
        "start_bytes",
        "peak_bytes",
        "peak_time_ns",
        "end_bytes",
        "peak_reserved_bytes",
    )
    assert found.devices.select(columns).row(0) == (
        "cuda:0",
        0,
        3 * MIB,
        3_000,
        1 * MIB,
        4 * MIB,
    )
    assert found.at_peak.select("function", "n_bytes").rows() == [
        ("/home/me/train.py(3): step", 2 * MIB),
        (None, 1 * MIB),
    ]
    assert found.free_blocks.row(0) == ("cuda:0", 2, 3 * MIB, 2 * MIB)


def test_a_pickle_is_refused_by_name_and_never_opened(tmp_path, capsys):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(longpole.TraceError, match="pickle") as caught:
        longpole.read_memory(path)
    assert "json.dump" in caught.value.hint
    assert program.run(["table", str(path), "memory"]) == 3
    assert "[pickle]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "document",
    [{"other": 1}, [[1, 2]], [[1, 9, 3, 4]], [[1, 2, 3, 99]], {"segments": [{}]}, 7],
    ids=str,
)
def test_what_is_neither_is_refused(document, tmp_path):
    path = written(tmp_path / "file.json", document)
    with pytest.raises(longpole.TraceError) as caught:
        longpole.read_memory(path)
    assert caught.value.code == "not_a_memory_file"


def test_a_file_that_breaks_off_is_refused(tmp_path):
    path = tmp_path / "timeline.raw.json.gz"
    path.write_bytes(gzip.compress(b"[[1, 2, 3, 4], [1,")[:-4])
    with pytest.raises(longpole.TraceError, match="JSON"):
        longpole.read_memory(path)


def test_the_command_answers_about_a_timeline_and_refuses_its_steps(tmp_path, capsys):
    path = str(written(tmp_path / "timeline.raw.json", [[5, 2, MIB, 4]]))
    assert program.run(["table", path, "memory", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["devices"][0]["peak_bytes"] == MIB
    assert program.run(["table", path, "memory", "--step", "3"]) == 2


@pytest.mark.parametrize("name", ["timeline.raw.json.gz", "snapshot.json.gz"])
def test_a_memory_file_given_as_a_trace_is_answered_or_named_with_its_command(
    name, tmp_path, capsys
):
    document = snapshot() if "snapshot" in name else [[5, 2, MIB, 4]]
    path = str(written(tmp_path / name, document))
    assert program.run([path]) == 0
    bare = capsys.readouterr().out
    assert program.run(["table", path, "memory"]) == 0
    assert capsys.readouterr().out == bare
    assert program.run(["table", path, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["rows"]
    assert [row["table"] for row in rows] == ["memory"]
    assert program.run(["path", path]) == 3
    assert f"hint: `longpole table {path} memory` shows its peak" in capsys.readouterr().err


def test_the_peak_is_told_with_its_time_and_what_ran(tmp_path, capsys, said):
    builder = forward().builder.step(3, (0, 100))
    assert program.run(["table", str(builder.write(tmp_path / "trace.json")), "memory"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)
    said.within(told)
    said.within(told)
    said.within(told)
    assert program.run([str(written(tmp_path / "snapshot.json", snapshot()))]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)
    said.within(told)
    assert "_record_memory_history" not in told


def test_the_largest_memory_at_chosen_changes_is_not_called_the_peak(tmp_path, capsys, said):
    timeline = [[5, 2, 3 * MIB, 4], [6, 4, -3 * MIB, 4], [9, 2, MIB, 3]]
    path = str(written(tmp_path / "timeline.raw.json", timeline))
    assert program.run(["table", path, "memory", "--where", "category = 'temporary'"]) == 0
    said.within(capsys.readouterr().out)
    assert program.run(["table", path, "memory"]) == 0
    said.within(capsys.readouterr().out)


def test_a_change_of_memory_has_its_time_from_the_start(tmp_path):
    timeline = [[-1, 1, MIB, 0], [5, 2, MIB, 4], [9, 4, -MIB, 4]]
    read = longpole.read_memory(written(tmp_path / "timeline.raw.json", timeline))
    assert longpole.memory(read, by="time")["offset_ns"].to_list() == [None, 0, 4]


def test_the_functions_that_reach_the_peak_of_a_snapshot_are_its_stack(tmp_path, capsys, said):
    document = snapshot()
    frames = [
        {"filename": "/site-packages/torch/nn/functional.py", "line": 9, "name": "relu"},
        {"filename": "/home/me/model.py", "line": 7, "name": "forward"},
        {"filename": "/home/me/train.py", "line": 3, "name": "step"},
    ]
    document["device_traces"][0][2]["frames"] = frames
    assert program.run([str(written(tmp_path / "snapshot.json", document))]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)


def test_a_device_with_next_to_nothing_is_only_mentioned(tmp_path, capsys, said):
    changes = Changes()
    changes.builder.operator("aten::mm", (0, 9))
    changes(1, 8, 9, kind=0, number=-1, reserved=0)
    changes.allocated = 0
    changes(2, 300 * MIB, 1, reserved=400 * MIB)
    assert program.run(["table", str(changes.builder.write(tmp_path / "t.json")), "memory"]) == 0
    out = capsys.readouterr().out
    said.within(out)
    assert [line for line in out.splitlines() if line.startswith("  cpu")] == []


def test_an_answer_with_nothing_to_show_is_inconclusive(tmp_path, capsys, said):
    path = str(TraceBuilder().launch("gemm", call=(0, 1), work=(1, 9)).write(tmp_path / "t.json"))
    assert program.run(["table", path, "memory"]) == 4
    assert program.run(["table", path, "roofline", "--by", "type"]) == 4
    assert program.run(["table", path, "communication"]) == 0, "there is none"
    timeline = str(written(tmp_path / "timeline.raw.json", [[5, 2, MIB, 4]]))
    assert program.run(["table", timeline, "memory", "--where", "n_bytes < 0"]) == 4
    assert program.run(["table", timeline, "memory", "--window", "0..9"]) == 2
    said.within(capsys.readouterr().err)


def test_changes_of_the_wrong_form_are_counted_and_the_rest_is_answered(tmp_path):
    rows = [[1, 1, 8, 0], [2, 1, 1e300, 0], [3, 9, 8, 0], [4, 1, 2**63, 0], "x", [5, 1, 8, 0]]
    recording = longpole.read_memory(written(tmp_path / "timeline.raw.json", rows))
    assert recording.events["allocated_bytes"].to_list() == [8, 16]
    found = longpole.memory(recording)
    assert found.n_damaged == recording.n_damaged == 4
    assert "4 changes" in found.blocks()[0].text


def test_damaged_blocks_and_events_of_a_snapshot_are_counted(tmp_path):
    document = snapshot()
    document["segments"][0]["blocks"].append({"size": "8", "state": "inactive"})
    document["segments"].append({"device": 0, "total_size": []})
    document["device_traces"][0].append({"action": "alloc", "size": 2**70})
    path = written(tmp_path / "snapshot.json", document)
    sound = longpole.read_memory(written(tmp_path / "sound.json", snapshot()))
    damaged = longpole.read_memory(path)
    assert damaged.n_damaged == 3
    assert damaged.events.equals(sound.events)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" + ",".join(["[]"] * 200_000) + "]", "100,000"),
        ("[" * 5_000 + "]" * 5_000, "nested too deep"),
        ("[[" + "1," * 5_000_000 + "1]]", "longer than"),
    ],
    ids=["many", "deep", "long"],
)
def test_a_file_that_would_take_all_memory_is_refused(tmp_path, text, reason):
    path = tmp_path / "timeline.raw.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(longpole.TraceError, match=reason) as caught:
        longpole.read_memory(path)
    assert caught.value.code == "limit_reached"


def test_memory_of_a_device_that_reserved_nothing_has_no_fragmentation(tmp_path, capsys):
    document = snapshot()
    document["segments"][0]["total_size"] = 0
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(document))
    assert program.run(["table", str(path), "memory", "--json"]) == 0
    text = capsys.readouterr().out
    assert "Infinity" not in text
    [device] = json.loads(text)["data"]["devices"]
    assert (device["peak_reserved_bytes"], device["fragmentation"]) == (0, None)


def of_2021(kind, *changes):
    """Build a trace with the instants of 2021: no category, no address, no total."""
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 90))
    builder.operator("aten::mm", (0, 50))
    for at, n_bytes in changes:
        args = {"Device Type": kind, "Device Id": 0, "Bytes": n_bytes}
        event = {"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 1}
        builder.event(**event, ts=at, args=args)
    return builder


def test_changes_without_totals_are_summed_from_the_start(tmp_path, capsys, said):
    builder = of_2021(1, (10, 5 * MIB), (20, 3 * MIB), (30, -5 * MIB))
    [device] = longpole.memory(builder.read()).devices.to_dicts()
    assert (device["peak_bytes"], device["start_bytes"], device["end_bytes"]) == (
        8 * MIB,
        0,
        3 * MIB,
    )
    path = builder.write(tmp_path / "trace.json")
    assert program.run(["table", str(path), "memory"]) == 0
    said.within(capsys.readouterr().out.replace("\n  ", " "))


def test_a_trace_with_memory_of_the_cpu_alone_says_so():
    def shown(kind):
        return [block.text for block in memory_blocks(of_2021(kind, (10, 5)).read())]

    assert any("GPU memory is not in this trace" in text for text in shown(0))
    assert not any("GPU memory is not in this trace" in text for text in shown(1))


def memory_blocks(trace):
    return [block for block in longpole.memory(trace).blocks() if hasattr(block, "text")]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_sizes_that_add_up_to_more_than_64_bits_are_left_out(sizes):
    trace = of_2021(1, *((10 + at, n_bytes) for at, n_bytes in enumerate(sizes))).read()
    held = longpole.memory(trace).devices["peak_bytes"].to_list()
    assert all(abs(n_bytes) <= 2**61 for n_bytes in held)


def test_memory_of_a_step_whose_gpu_work_is_late_is_that_of_its_host_part():
    builder = TraceBuilder()
    for step in range(3):
        start = 100 * step
        builder.step(step, (start, start + 90))
        builder.launch(
            "gemm", call=(start + 5, start + 9), work=(400 * step + 20, 400 * step + 410)
        )
        args = {"Device Type": 1, "Device Id": 0, "Bytes": 7, "Total Allocated": 7 * step + 7}
        event = {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 100, "tid": 1}
        builder.event(**event, ts=start + 6, args=args)
    trace = builder.read()
    [of_step] = trace.steps.filter(step=2).to_dicts()
    start_ns, end_ns = of_step["window_start_ns"], of_step["window_end_ns"]
    assert start_ns > of_step["start_ns"] + of_step["duration_ns"]
    found = longpole.memory(trace, Window("step", 2, start_ns, end_ns, "the last step"))
    assert found.devices["peak_step"].to_list() == [2]
