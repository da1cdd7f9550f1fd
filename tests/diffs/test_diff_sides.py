"""Which runs, ranks and steps are the two sides of a comparison."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder
from oracles.rewriting import (
    run_of,
)


def test_several_runs_are_judged_by_run(read, a_program):
    runs = [read(run_of(a_program, seed), f"{seed}.json") for seed in range(8)]
    found = longpole.diff(runs[:4], runs[4:])
    assert (found.verdict, found.base.n_runs, found.new.n_runs) == ("neutral", 4, 4)
    assert found.base.run_noise is not None
    assert not any("One run a side" in reason for reason in found.reasons)
    few = longpole.diff(runs[:2], runs[2:4])
    assert few.verdict == "inconclusive"
    assert "too few" in few.reasons[0]


def test_ranks_of_a_run_are_one_run():
    def rank(number, period):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        for step in range(6):
            begin = period * step
            builder.step(step, (begin, begin + period))
            builder.launch("gemm", call=(begin, begin + 10), work=(begin + 10, begin + 200))
        return builder.read()

    found = longpole.diff([rank(0, 300), rank(1, 300)], [rank(0, 300), rank(1, 600)])
    assert (found.base.n_runs, found.base.ranks, found.new.rank) == (1, (0, 1), 1)
    with pytest.raises(ValueError, match="every rank"):
        longpole.diff([rank(0, 300), rank(0, 300), rank(1, 300)], rank(0, 300))


def test_sets_of_ranks_are_runs_and_the_same_as_their_traces(tmp_path):
    def rank(number, kernel_us):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        for step in range(4):
            begin = (kernel_us + 100) * step
            builder.step(step, (begin, begin + kernel_us + 90))
            builder.launch("gemm", call=(begin, begin + 10), work=(begin + 12, begin + kernel_us))
            builder.call("cudaDeviceSynchronize", (begin + 20, begin + kernel_us + 5))
        return builder

    sides = {}
    for side, slow_us in (("base", 500), ("new", 800)):
        (tmp_path / side).mkdir()
        for number, kernel_us in enumerate((400, slow_us)):
            (tmp_path / side / f"rank{number}.json").write_bytes(rank(number, kernel_us).to_bytes())
        sides[side] = longpole.read_traces(tmp_path / side)
    found = longpole.diff(sides["base"], sides["new"])
    assert (found.base.ranks, found.new.rank) == ((0, 1), 1)
    apart = [[side.trace(number) for number in side.rank_numbers] for side in sides.values()]
    assert found.to_dict() == longpole.diff(*apart).to_dict()
    assert longpole.diff([sides["base"]] * 2, [sides["new"]] * 2).base.n_runs == 2


def test_one_step_is_compared_with_the_others():
    builder, begin = TraceBuilder(), 0
    for step in range(8):
        end = begin + (1_500 if step == 5 else 500)
        builder.step(step, (begin, end + 10))
        builder.launch("gemm", call=(begin, begin + 10), work=(begin + 10, end))
        builder.call("cudaDeviceSynchronize", (begin + 20, end + 5))
        begin = end + 20
    trace = builder.read()
    found = longpole.diff_steps(trace, 5)
    assert found.changes[0].base_names == ("gemm",)
    assert found.new.steps == (5,)
    assert 5 not in found.base.steps
    other = longpole.diff_steps(trace, 5, 3)
    assert other.sentence.startswith("Inconclusive (fewer than 4 other steps): the mean step goes")
    assert other.base.steps == (3,)
    assert other.verdict == "inconclusive"
    with pytest.raises(longpole.WindowError):
        longpole.diff_steps(trace, 77)


@pytest.mark.parametrize("long", [1_500, 150])
def test_a_usual_step_does_not_differ_from_the_usual_ones(long):
    builder, begin = TraceBuilder(), 0
    for step in range(8):
        end = begin + (long if step in {2, 5} else 500)
        builder.step(step, (begin, end + 10))
        builder.launch("gemm", call=(begin, begin + 10), work=(begin + 10, end))
        builder.call("cudaDeviceSynchronize", (begin + 20, end + 5))
        begin = end + 20
    trace = builder.read()
    usual, unusual = (longpole.diff_steps(trace, step) for step in (3, 5))
    assert (usual.verdict, round(usual.change, 2)) == ("neutral", 0.0)
    assert any("Left out: steps 2 and 5" in reason for reason in usual.reasons)
    assert unusual.verdict == ("regression" if long > 500 else "improvement")
    assert any("Left out: step 2," in reason for reason in unusual.reasons)


def test_one_step_a_side_names_no_change(said):
    def one(end):
        builder = TraceBuilder().step(1, (0, end)).kernel("unlinked", (4, 9), correlation=7)
        return builder.launch("gemm", call=(0, 1), work=(10, end)).read()

    found = longpole.diff(one(100), one(200))
    said.within(found.sentence)
    assert {row.what: (row.base, row.new) for row in found.counts}["gpu_activities"] == (1, 1)


def test_directories_are_runs(tmp_path, asked, a_program):
    for side in ("main", "branch"):
        (tmp_path / side).mkdir()
        for seed in range(2):
            run_of(a_program, seed).write(tmp_path / side / f"{seed}.json")
    code, output = asked(tmp_path / "main", f"{tmp_path}/branch/*.json", "--json")
    assert code == 0
    data = json.loads(output)["data"]
    assert (data["base"]["n_runs"], data["verdict"]) == (2, "neutral")


@pytest.mark.parametrize(
    "arguments",
    [
        ("a.json",),
        ("a.json", "b.json", "--step", "3"),
        ("a.json", "--step", "3", "--step", "4", "--step", "5"),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_an_error_of_usage(arguments, asked):
    assert asked(*arguments)[0] == 2


def test_one_recording_is_not_two_runs(tmp_path, capsys, said):
    one = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 9)).write(tmp_path / "one.json")
    assert program.run(["diff", str(one), f"{one},{one}"]) == 2
    said.within(capsys.readouterr().err)


def test_commas_separate_the_traces_of_a_side(tmp_path, asked, a_program):
    paths = [tmp_path / f"{seed}.json" for seed in range(3)]
    for seed, path in enumerate(paths):
        run_of(a_program, seed).write(path)
    code, output = asked(f"{paths[0]},{paths[1]}", paths[2], "--json")
    assert code in (0, 4)
    data = json.loads(output)["data"]
    assert (data["base"]["n_runs"], data["new"]["n_runs"]) == (2, 1)


def test_a_path_with_a_comma_is_one_trace(tmp_path, asked, a_program):
    path, other = tmp_path / "a,b.json", tmp_path / "c.json"
    run_of(a_program, 0).write(path)
    run_of(a_program, 1).write(other)
    code, output = asked(path, other, "--json")
    assert code in (0, 4)
    assert json.loads(output)["data"]["base"]["n_runs"] == 1


def test_two_steps_are_compared_with_each_other(tmp_path, asked, a_program):
    path = tmp_path / "run.json"
    run_of(a_program, 0).write(path)
    trace = longpole.read_trace(path)
    first, second = (row["step"] for row in trace.steps.to_dicts()[1:3])
    code, output = asked(path, "--step", first, "--step", second, "--json")
    assert code in (0, 4)
    found = longpole.diff_steps(trace, first, second)
    assert json.loads(output)["data"]["sentence"] == found.sentence


def test_a_side_that_is_not_there_is_said(tmp_path, asked):
    assert asked(tmp_path / "none*.json", tmp_path)[0] == 3


def test_a_missing_side_or_a_gate_that_is_no_share_is_refused(base):
    with pytest.raises(ValueError, match="needs a trace"):
        longpole.diff(base, [])
    with pytest.raises(ValueError, match="a gate"):
        longpole.diff(base, base, gate=3.0)


def of_a_step(length: int) -> TraceBuilder:
    """Steps of which the kernel takes some time."""
    builder = TraceBuilder()
    for number in range(12):
        start = 1_000 * number
        builder.step(number, (start, start + 999)).operator("aten::mm", (start, start + 16))
        builder.call("cudaLaunchKernel", (start + 10, start + 15), correlation=number + 1)
        builder.call("cudaDeviceSynchronize", (start + 18, start + 998))
        builder.kernel("gemm", (start + 16, start + 16 + length), correlation=number + 1)
    return builder


def test_where_a_trace_is_cut_the_damage_is_said_and_no_cause(tmp_path, capsys, said):
    base, new = of_a_step(500).to_bytes(), of_a_step(900).to_bytes()
    found = longpole.diff(longpole.read_trace(base), longpole.read_trace(new[: len(new) // 2]))
    assert (found.verdict, found.changes, found.path) == ("inconclusive", (), ())
    assert found.sentence.startswith("The new trace is damaged (")
    assert "gemm" not in found.sentence
    for name, text in {"base": base, "new": new[: len(new) // 2]}.items():
        (tmp_path / f"{name}.json").write_bytes(text)
    command = ["diff", *(str(tmp_path / f"{name}.json") for name in ("base", "new"))]
    assert program.run(command) == 4
    message = capsys.readouterr().out
    said.within(message)
    assert "gemm" not in message
    program.run([*command, "--json"])
    data = json.loads(capsys.readouterr().out)["data"]
    assert [it["is_grave"] for it in data["new"]["damage"]] == [True]


def test_where_an_event_is_lost_the_damage_is_said_first():
    base, new = of_a_step(500).to_bytes(), of_a_step(900).to_bytes()
    lossy = new.replace(b'"name": "gemm"', b'"name": gem\x00', 1)
    assert lossy != new
    found = longpole.diff(longpole.read_trace(base), longpole.read_trace(lossy))
    assert found.sentence.startswith("The new trace is damaged (")
    assert found.new.damage
    assert found.is_lost == found.new.damage[0].is_grave


def test_a_step_of_a_damaged_trace_tells_the_damage_once():
    text = of_a_step(500).to_bytes()
    found = longpole.diff_steps(longpole.read_trace(text[: len(text) // 2]), 2)
    assert found.verdict == "inconclusive"
    assert found.sentence.count("is damaged") == 1


def of_ranks(*lengths: int, cut: int | None = None) -> list[longpole.Trace]:
    """Return a trace of each rank, one of them cut off."""
    texts = [
        of_a_step(length).header(distributedInfo={"rank": rank, "world_size": 3}).to_bytes()
        for rank, length in enumerate(lengths)
    ]
    return [
        longpole.read_trace(text[: len(text) // 2] if rank == cut else text)
        for rank, text in enumerate(texts)
    ]


def test_a_damaged_rank_is_left_out_on_both_sides_and_named():
    base, new = of_ranks(500, 600, 500), of_ranks(500, 900, 500, cut=1)
    found = longpole.diff(base, new)
    assert (found.left_out_ranks, found.base.ranks, found.new.ranks) == ((1,), (0, 2), (0, 2))
    assert found.verdict == "neutral"
    told = "A trace of rank 1 is damaged, so only 2 of 3 ranks are compared. "
    assert found.sentence.startswith(told)


def test_a_damaged_rank_is_not_left_out_if_no_other_is_whole():
    base, new = of_ranks(500, 600), of_ranks(500, 900, cut=1)
    found = longpole.diff(base[1:], new[1:])
    assert (found.verdict, found.left_out_ranks) == ("inconclusive", ())
    assert found.sentence.startswith("The new trace is damaged (")


def marked(slow_us):
    """Return a trace whose iterations `it` are half as long as its steps, one of them slower."""
    builder = TraceBuilder()
    for step in range(6):
        begin = 2_000 * step
        builder.step(step, (begin, begin + 1_990))
        for half in (0, 1):
            start = begin + 1_000 * half
            busy = 600 + (slow_us if half else 0)
            builder.annotation(f"it#{2 * step + half}", (start, start + 500))
            builder.launch("gemm", call=(start + 5, start + 10), work=(start + 12, start + busy))
            builder.call("cudaDeviceSynchronize", (start + 15, start + busy + 5))
    return builder.read()


def test_the_steps_that_a_name_marks_are_compared():
    found = longpole.diff(marked(0), marked(0), step_name=r"it#\d+", as_recorded=True)
    assert found.base.mean_ns == pytest.approx(1_000_000, rel=0.02)
    usual = longpole.diff(marked(0), marked(0), as_recorded=True)
    assert usual.base.mean_ns == pytest.approx(2_000_000, rel=0.02)


def test_a_window_of_both_sides_is_compared(tmp_path, capsys):
    for name, slow_us in (("base", 0), ("new", 200)):
        marked(slow_us).save(tmp_path / f"{name}.longpole")
    sides = [str(tmp_path / "base.longpole"), str(tmp_path / "new.longpole")]
    changes = {}
    for window in ("all", "it#4#0", "it#5#0", "4ms..5ms"):
        program.run(["diff", *sides, "--window", window, "--json"])
        found = json.loads(capsys.readouterr().out)["data"]
        changes[window] = found["new"]["mean_ns"] - found["base"]["mean_ns"]
    assert changes == {"all": 200_000, "it#4#0": 0, "it#5#0": 200_000, "4ms..5ms": 0}
    assert program.run(["diff", sides[0], "--step", "2", "--window", "step:3"]) == 2
    assert "exclude" in capsys.readouterr().err
