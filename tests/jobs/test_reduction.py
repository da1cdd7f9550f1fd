"""The reduced graph of all ranks comes out as the joint graph of all their events."""

from __future__ import annotations

from collections import deque
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from longpole import Scale, read_traces
from longpole.rows.frames import frame_of
from oracles.simulator.ranks import RankClock, write_ranks
from oracles.simulator.ranks_programs import PATTERNS, random_ranks


class JointGraph:
    """Every node and edge of every rank, as plain Python."""

    def __init__(self, ranks, changes):
        self.nodes = {}
        self.edges = {}
        self.paths = {
            rank: ranks.trace(rank).critical_path(whole=True) for rank in ranks.rank_numbers
        }
        for rank, path in self.paths.items():
            place = ranks.rank_numbers.index(rank)
            for row in path.nodes.iter_rows(named=True):
                node = (rank, row["node"])
                self.nodes[node] = ranks.solution.common_ns(place, row["time_ns"])
                self.edges[node] = []
            factors = {change.kind: Fraction(change.by) for change in changes.get(rank, ())}
            for row in path.edges.iter_rows(named=True):
                lag = round(row["minimum_latency_ns"] * factors.get(str(row["kind"]), 1))
                edge = ((rank, row["source"]), lag, row["role"])
                self.edges[rank, row["target"]].append(edge)
        self.sides = {
            (rank, *key): node
            for rank, path in self.paths.items()
            for *key, node in path.nodes.select("event", "side", "node").iter_rows()
        }
        for call in ranks.calls["call"]:
            self._join(ranks.members.filter(pl.col("call") == call))

    def _join(self, members):
        arrivals = {}
        for rank, event in members.select("rank", "event").iter_rows():
            arrivals[rank] = [(rank, self.sides[rank, event, side]) for side in ("start", "end")]
        last = max(self.nodes[start] for start, _ in arrivals.values())
        for start, end in arrivals.values():
            others = [edge for edge in self.edges[end] if edge[0] != start]
            at = max([last, *(self.nodes[source] for source, _, _ in others)])
            lag = max(self.nodes[end] - at, 0)
            self.edges[end] = [*others, *((one, lag, "call") for one, _ in arrivals.values())]

    def times(self):
        targets = {node: [] for node in self.nodes}
        n_open = {node: len(edges) for node, edges in self.edges.items()}
        for node, edges in self.edges.items():
            for source, _, _ in edges:
                targets[source].append(node)
        times = dict(self.nodes)
        ready = deque(node for node, count in n_open.items() if not count)
        while ready:
            node = ready.popleft()
            if self.edges[node]:
                times[node] = max(times[source] + lag for source, lag, _ in self.edges[node])
            for target in targets[node]:
                n_open[target] -= 1
                if not n_open[target]:
                    ready.append(target)
        assert not any(n_open.values())
        return times


def boundary_times(ranks, solution):
    """Return the times of the arrivals and ends of all members in the reduced graph."""
    found = {}
    for place, rank in enumerate(ranks.rank_numbers):
        for node, is_of_call, time in frame_of(solution.node_times(place)).iter_rows():
            if is_of_call:
                found[rank, node] = time
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@given(seed=st.integers(0, 10_000), factor=st.sampled_from([0.0, 0.5, 2.0]))
@settings(max_examples=settings.default.max_examples // 8, phases=[Phase.generate])
def test_the_reduced_graph_is_timed_as_the_joint_graph_of_all_events(
    tmp_path_factory, pattern, seed, factor
):
    folder = tmp_path_factory.mktemp("ranks")
    run = random_ranks(seed, n_ranks=4, pattern=pattern, n_steps=2)
    clocks = [RankClock(clock.offset_ns) for clock in run.clocks]
    write_ranks(run.job, run.job.times_ns(), clocks, folder)
    ranks = read_traces(folder)
    assert (ranks.clocks["drift"] == 0).all()
    assert ranks.solution.n_early_ends == 0
    changes = {
        0: [Scale(by=factor, kind="kernel"), Scale(by=0.5, kind="operator")],
        2: [Scale(by=factor, kind="data_loading")],
    }
    observed = JointGraph(ranks, {}).times()
    found = boundary_times(ranks, ranks.solution)
    assert found == {node: observed[node] for node in found}
    joint = JointGraph(ranks, changes).times()
    changed = ranks.changed(changes)
    found = boundary_times(ranks, changed)
    assert found == {node: joint[node] for node in found}


def test_a_rank_takes_few_bytes_for_each_call(tmp_path):
    run = random_ranks(3, n_ranks=4, pattern="expert", n_steps=30)
    write_ranks(run.job, run.job.times_ns(), run.clocks, tmp_path)
    ranks = read_traces(tmp_path)
    for place in range(len(ranks)):
        reduced = ranks._reduced(place)
        assert reduced.n_members > 100
        assert reduced.n_bytes <= 400 * reduced.n_members
