"""Simulated runs of several ranks, of which all is known: who is late, why, and when."""

from __future__ import annotations

import re

import pytest

import longpole
from longpole import read_traces
from longpole.cli import program
from longpole.testing import TraceBuilder
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_judge import judge, matched_pairs
from oracles.simulator.ranks_programs import PATTERNS, random_ranks

WORTH = 0.02


def judged(run, folder, **options):
    times = run.job.times_ns()
    rows = write_ranks(run.job, times, run.clocks, folder, **options)
    return judge(run, times, rows, read_traces(folder))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", [1])
def test_rank_and_cause_are_named_and_clocks_are_right(tmp_path, pattern, seed):
    found = judged(random_ranks(seed, pattern=pattern, n_stragglers=1), tmp_path)
    assert found.is_right, found
    assert found.n_clocks_within == found.n_clocks


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_run_without_straggler_is_quiet(tmp_path, pattern):
    found = judged(random_ranks(5, pattern=pattern, n_stragglers=0), tmp_path)
    assert found.n_remedies == 0


def test_waits_in_a_pipeline_without_straggler_are_no_rank_s_fault(tmp_path, capsys):
    run = random_ranks(5, pattern="pipeline", n_stragglers=0)
    write_ranks(run.job, run.job.times_ns(), run.clocks, tmp_path)
    found = longpole.ranks(read_traces(tmp_path))
    assert found.wait_share > 0.5
    nobody, *_, last = found.verdict()
    assert nobody.startswith("No rank makes the others wait")
    assert last.startswith("The work of no single rank explains these waits")
    [table] = [it for it in found.tables() if "ranks" in [column.title for column in it.columns]]
    place = [column.title for column in table.columns].index("ranks")
    members = {row[place] for row in table.rows}
    assert all(len(text.split(", ")) == 2 for text in members)
    assert program.run([*map(str, sorted(tmp_path.iterdir()))]) == 0
    told = " ".join(capsys.readouterr().out.partition("together")[2].split())
    assert told.startswith(" ".join(found.verdict()))


def test_two_stragglers_are_both_named(tmp_path):
    run = random_ranks(24, n_stragglers=2, pattern="data")
    true_ns = run.job.makespan_ns()
    worth = [(true_ns - run.without_ns(it)) / true_ns for it in run.stragglers]
    assert min(worth) > WORTH
    found = judged(run, tmp_path)
    assert [said for _, said in found.stragglers] == ["cause", "cause"]


@pytest.mark.parametrize(
    ("has_stacks", "cause", "name"),
    [
        (False, "host time outside operators", None),
        (True, "host functions", "train.py(9): augment"),
    ],
)
def test_time_outside_operators_is_named_by_the_function_if_it_was_recorded(
    tmp_path, has_stacks, cause, name
):
    for rank, gap in ((0, 10), (1, 10), (2, 500)):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 3})
        for step in range(3):
            at = 700 * step
            builder.step(step, (at, at + 650))
            if has_stacks:
                builder.python("train.py(5): main", (at, at + 650))
                builder.python("train.py(9): augment", (at + 1, at + 1 + gap))
            builder.operator("aten::mm", (at + gap + 2, at + gap + 20))
            call = (at + gap + 20, at + gap + 23)
            builder.launch("ncclDevKernel_AllReduce", call=call, work=(at + gap + 25, at + 600))
            builder.call("cudaDeviceSynchronize", (at + gap + 24, at + 602))
        builder.write(tmp_path / f"rank{rank}.json")
    [late] = read_traces(tmp_path).late_ranks()
    assert (late.rank, late.cause, late.name) == (2, cause, name)


@pytest.mark.parametrize(
    ("seed", "mended", "said"),
    [
        (
            12023,
            {"rank": 0, "cause": "slow core", "time_class": "threads"},
            "spends 13.4 ms on its threads; the median rank spends 8.3",
        ),
        (12130, {"rank": 5, "cause": "slow kernel", "name": "gemm_128x64"}, ""),
    ],
)
def test_what_is_slow_is_mended_and_nothing_beside_it(tmp_path, seed, mended, said):
    run = random_ranks(seed)
    [straggler] = run.stragglers
    write_ranks(run.job, run.job.times_ns(), run.clocks, tmp_path)
    [remedy] = read_traces(tmp_path).late_ranks()
    assert straggler.cause == mended["cause"]
    assert {name: getattr(remedy, name) for name in mended} == mended
    assert remedy.changed_ns == pytest.approx(run.without_ns(straggler), rel=0.03)
    assert said in remedy.sentence


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("absent", [{0}, {1, 2}])
def test_no_rank_is_said_to_wait_longer_than_it_did_where_ranks_are_absent(
    tmp_path, pattern, absent
):
    run = random_ranks(3, pattern=pattern, n_stragglers=1)
    times = run.job.times_ns()
    write_ranks(run.job, times, run.clocks, tmp_path)
    for file in tmp_path.iterdir():
        if int(re.search(r"(\d+)\.", file.name)[1]) in absent:
            file.unlink()
    waited_ns = dict.fromkeys(range(run.job.n_ranks), 0)
    for call in run.job.calls.values():
        last_ns = max(times[event.start] for event in call.members.values())
        for rank, event in call.members.items():
            waited_ns[rank] += last_ns - times[event.start]
    rows = longpole.ranks(read_traces(tmp_path)).records()
    least_ns = {row["rank"]: row["wait_at_least_ns"] for row in rows}
    assert set(least_ns) == set(waited_ns) - absent
    assert all(least_ns[rank] <= waited_ns[rank] for rank in least_ns)
    assert max(least_ns.values()) > 0 or pattern == "pipeline"


def errors_at_calls_ns(run, ranks):
    """Return how far the clock of each rank is off at the end of each of its calls."""
    times = run.job.times_ns()
    errors = {rank: [0] for rank in range(run.job.n_ranks)}
    for call in run.job.calls.values():
        for rank, event in call.members.items():
            shown_ns = run.clocks[rank].shown_ns(times[event.end])
            true_ns = run.clocks[0].shown_ns(times[event.end])
            errors[rank].append(abs(ranks.solution.common_ns(rank, shown_ns) - true_ns))
    return errors


@pytest.mark.parametrize(("seed", "steps"), [(15, 1), (17, 1), (11, 4)])
def test_clocks_are_right_at_calls_of_recordings_that_begin_far_apart(tmp_path, seed, steps):
    """Some ranks of a pipeline meet a second before all of them do: clocks drift until then."""
    run = random_ranks(seed, n_steps=steps, largest_entry_ns=2_000_000_000)
    write_ranks(run.job, run.job.times_ns(), run.clocks, tmp_path)
    ranks = read_traces(tmp_path)
    bounds_ns = ranks.clocks["bound_ns"].to_list()
    errors_ns = errors_at_calls_ns(run, ranks)
    assert all(max(errors_ns[rank]) <= bound_ns for rank, bound_ns in enumerate(bounds_ns))


def test_recordings_that_begin_two_seconds_apart_change_no_verdict(tmp_path):
    run = random_ranks(11, pattern="data", n_stragglers=1, largest_entry_ns=2_000_000_000)
    true = random_ranks(11, pattern="data", n_stragglers=1, largest_entry_ns=0)
    times = run.job.times_ns()
    write_ranks(run.job, times, run.clocks, tmp_path)
    ranks = read_traces(tmp_path)
    assert ranks.has_start_skew
    true_ns = true.job.makespan_ns()
    assert ranks.pace_ns == pytest.approx(true_ns, rel=0.03)
    late = {remedy.rank for remedy in ranks.late_ranks()}
    worth = (true_ns - true.without_ns(true.stragglers[0])) / true_ns
    assert late == ({run.stragglers[0].rank} if worth >= WORTH else set())


@pytest.mark.parametrize("pattern", ["data", "tensor", "expert"])
@pytest.mark.parametrize("seed", [5000, 5018])
def test_calls_without_numbers_are_matched_though_some_are_lost(pattern, seed):
    run = random_ranks(seed, pattern=pattern, n_steps=8)
    found = matched_pairs(run, read_traces, seed=seed, largest_offset_ns=200_000, lost=0.1)
    assert found.n_right >= 0.95 * found.n_true
    assert found.n_wrong <= 0.01 * found.n_right
