"""What a comparison shows, in which order, and what it leaves out."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import longpole
from longpole.cli import program
from longpole.diffs.sentences import sentence
from longpole.diffs.values import PathChange
from longpole.testing import TraceBuilder
from oracles.rewriting import (
    launch_names,
    run_of,
    slowed,
)
from oracles.simulator.programs import training


def on_machine(path, **fields):
    """Return a copy of a trace that was recorded elsewhere."""
    trace = json.loads(path.read_text())
    for name, value in fields.items():
        trace[name] = {**trace[name], **value} if isinstance(value, dict) else value
    other = path.with_name(f"elsewhere_{path.name}")
    other.write_text(json.dumps(trace))
    return other


def test_other_devices_are_said_before_any_cause(read, a_program, tmp_path, capsys, said):
    name = min(name for name in launch_names(a_program) if not name.startswith("Mem"))
    read(run_of(a_program, 1), "base.json")
    read(slowed(a_program, name, 9, 1.5), "new.json")
    devices = [[{"id": 0, "name": device}] for device in ("NVIDIA A100", "Tesla V100")]
    sides = [
        on_machine(
            tmp_path / file,
            deviceProperties=properties,
            distributedInfo={"world_size": size},
            cuda_runtime_version=cuda,
        )
        for file, properties, size, cuda in zip(
            ("base.json", "new.json"), devices, (8, 2), (11080, 12040), strict=True
        )
    ]
    found = longpole.diff(*map(longpole.read_trace, sides))
    where = "across devices and world sizes (NVIDIA A100, 8 ranks, against Tesla V100, 2 ranks): "
    assert found.sentence.startswith(f"{found.verdict.capitalize()} {where}")
    said.within(found.sentence)
    assert "What changed most: " not in found.sentence
    assert found.reasons[0].startswith("The sides have different devices and world sizes")
    differing = {setup.what: (setup.base, setup.new) for setup in found.setups if setup.differs}
    assert differing == {
        "device": ("NVIDIA A100", "Tesla V100"),
        "world size": ("8", "2"),
        "CUDA runtime": ("11.8", "12.4"),
    }
    for form in ("text", "md", "html", "json"):
        program.run(["diff", *map(str, sides), "--format", form])
        printed = " ".join(capsys.readouterr().out.split())
        assert where.split(" (", maxsplit=1)[0] in printed
        assert "CUDA runtime" in printed


def test_what_one_side_does_not_record_is_no_difference(base, tmp_path):
    other = longpole.read_trace(on_machine(tmp_path / "base.json", deviceProperties=[]))
    found = longpole.diff(base, other)
    assert not any(setup.differs for setup in found.setups)
    assert found.sentence.startswith("Neutral: ")


def test_other_shapes_are_told(read, tmp_path):
    programs = [training(3, steps=5, layers=4, world_size=1) for _ in range(2)]
    runs = [run_of(each, seed, shapes=True) for seed, each in enumerate(programs)]
    traces = [read(run, f"{n}.json") for n, run in enumerate(runs)]
    assert {change.relation for change in longpole.diff(*traces).changes} == {"same"}
    path = tmp_path / "1.json"
    path.write_text(path.read_text().replace("[64, 512]", "[96, 512]"))
    found = longpole.diff(traces[0], longpole.read_trace(path, args=["Input Dims"]))
    shaped = [change for change in found.changes if change.relation == "reshaped"]
    assert shaped
    kernels = [change for change in shaped if change.kind == "kernel"]
    assert kernels[0].base_shapes == ("[[64,512],[64,512]]",)
    assert kernels[0].new_shapes == ("[[96,512],[96,512]]",)


def test_names_of_a_trace_stay_text(tmp_path, asked):
    def trace(name, work):
        builder = TraceBuilder()
        for step in range(6):
            begin = 1_000 * step
            builder.step(step, (begin, begin + 900))
            builder.launch(name, call=(begin, begin + 5), work=(begin + 10, begin + work))
        return builder.write(tmp_path / f"{work}.json")

    name = "<script>alert(1)</script>|`x`"
    for form in ("md", "html"):
        _, output = asked(trace(name, 300), trace(name, 800), "--format", form)
        assert "<script>alert" not in output
        assert "alert" in output


def test_where_one_step_has_another_path_than_all_together_both_are_told(tmp_path, asked, said):
    trace = TraceBuilder()
    for number in range(1, 6):
        start = 100 * number
        trace.step(number, (start, start + 100)).operator("aten::mm", (start + 1, start + 99))
        trace.launch("gemm", call=(start + 50, start + 55), work=(start + 55, start + 110))
    path = trace.write(tmp_path / "trace.json")
    found = longpole.diff(*[longpole.read_trace(path)] * 2)
    kernel = next(row for row in found.path if row.kind == "kernel")
    assert (kernel.base_ns, kernel.base_alone_ns) == (13_750, 55_000)
    again = path.with_name("again.json")
    again.write_bytes(path.read_bytes())
    text = " ".join(asked(path, again, "--top", 5)[1].split())
    said.within(text)
    said.within(text)


def timed_apart(path, *factors):
    """Write times of steps without the profiler, as factors of the recorded step, to a trace."""
    document = json.loads(path.read_text())
    recorded_ns = longpole.read_trace(path).recording_cost()["recorded_step_ns"]
    times = [round(factor * recorded_ns) for factor in factors]
    document["longpole"] = {"step_time_ns": {"before": times, "after": []}}
    return longpole.read_trace(json.dumps(document).encode())


def test_steps_timed_without_the_profiler_have_their_range(base, tmp_path):
    path = tmp_path / "base.json"
    timed = timed_apart(path, 0.8, 0.85, 0.9)
    cost = timed.recording_cost()
    assert cost["status"] == "measured"
    found = longpole.diff(timed, timed)
    bounds = cost["least_step_ns"], cost["most_step_ns"]
    assert (found.base.range_source, found.base.range_ns) == ("measured", bounds)
    assert "measured range" in str(found.blocks()[1])
    mixed = longpole.diff(base, timed)
    assert [mixed.base.range_source, mixed.new.range_source] == ["estimated", "measured"]
    assert "(measured " in mixed.sentence
    assert "possible range" in str(mixed.blocks()[1])


def test_a_mean_step_outside_the_measured_range_is_said(base):
    found = longpole.diff(base, base)
    for bounds, number in (((0.5, 1.5), 0), ((0.5, 0.9), 1)):
        range_ns = tuple(bound * found.base.mean_ns for bound in bounds)
        timed = replace(found.base, range_ns=range_ns, range_source="measured")
        changed = replace(found, base=timed, change=-0.1, n_differences=1)
        assert str(changed.blocks()[-1]).count("in base; the timed steps take ") == number
        assert sentence(changed).count("(measured ") == 1 - number


def test_times_that_do_not_fit_the_recorded_steps_are_said(base, tmp_path, said):
    unfit = timed_apart(tmp_path / "base.json", 1.5)
    notes = str(longpole.diff(base, unfit).blocks()[-1])
    said.within(notes)
    assert "Of the base: " not in notes


def test_the_range_of_a_step_without_the_profiler_is_shown(base):
    found = longpole.diff(base, base)
    low, high = found.base.range_ns
    assert low < found.base.mean_ns < high
    assert longpole.diff(base, base, as_recorded=True).base.range_ns is None


def test_a_kind_that_only_moved_onto_the_path_is_not_called_slower(base, said):
    found = longpole.diff(base, base)
    mean_ns = found.base.mean_ns
    moved = PathChange("kernel", 0.0, mean_ns / 2, 0.0, 0.0, mean_ns / 2, mean_ns / 2)
    slower = PathChange("copy", 0.0, mean_ns / 2, 0.0, 0.0, 0.0, mean_ns / 2)
    notes = str(replace(found, path=(moved, slower)).blocks()[-1])
    said.within(notes)
    assert "memcpy" not in notes


def test_the_effect_is_shown_on_a_narrow_terminal(tmp_path, asked, a_program, monkeypatch):
    name = max(launch_names(a_program), key=launch_names(a_program).count)
    run_of(a_program, 1).write(tmp_path / "base.json")
    slowed(a_program, name, 9, 8.0).write(tmp_path / "slow.json")
    monkeypatch.setenv("COLUMNS", "80")
    output = asked(tmp_path / "base.json", tmp_path / "slow.json")[1]
    [title] = [line for line in output.splitlines() if line.strip().startswith("what changed")]
    assert title.split()[-4:-1] == ["base", "new", "effect"] or title.endswith("effect")
    assert max(map(len, output.splitlines()[1:])) <= 80


def _many_changes(factor):
    """Build steps of many operators and kernels, all of which take `factor` times as long."""
    builder = TraceBuilder()
    for step in range(8):
        begin = 20_000 * step
        builder.step(step, (begin, begin + 19_000))
        for nth in range(20):
            at, length = begin + 900 * nth, (300 + 10 * nth + step) * factor
            builder.operator(f"aten::op{nth}", (at, at + length))
            builder.launch(f"work{nth}", call=(at + 5, at + 9), work=(at + 10, at + length))
    return builder


def test_a_comparison_fits_on_one_screen_and_says_what_it_leaves_out(tmp_path, asked):
    paths = [_many_changes(factor).write(tmp_path / f"{factor}.json") for factor in (1, 2)]
    text, whole = asked(*paths)[1], asked(*paths, "--top", 60)[1]
    assert len(text.splitlines()) <= 40
    [left_out] = re.findall(r"Left out: .*?\.\n", text, re.DOTALL)
    n_more, n_all = map(int, re.search(r"(\d+) changes.*--top (\d+)", left_out, re.DOTALL).groups())
    assert n_all == n_more + 5
    for name in ("the gains of both sides", "the numbers of launches and operators"):
        assert name in " ".join(left_out.split())
    tables = ("shorter without, up to", "mean number in a step")
    assert all(name in whole and name not in text for name in tables)
    assert "Left out: " not in whole
    assert "Verdict on new: " in whole
    data = json.loads(asked(*paths, "--format", "json")[1])["data"]
    assert len([row for row in data["changes"] if row["stands_out"]]) >= n_all


def test_what_holds_for_one_side_comes_after_what_holds_for_both(base, tmp_path):
    unfit = timed_apart(tmp_path / "base.json", 1.5)
    notes = longpole.diff(base, unfit).blocks()[-1].items
    [place] = [number for number, told in enumerate(notes) if told.startswith("Of the new side")]
    assert all("both" in told or "Left out" in told for told in notes[place + 1 :])
