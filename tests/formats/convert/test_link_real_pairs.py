"""Linking the real pairs: at least what Chakra links, the rest with its reason."""

from __future__ import annotations

import polars as pl
import pytest

from longpole import PairError, WindowError
from real_traces import link, needs_pairs

pytestmark = needs_pairs

# What Chakra links (nodes, GPU operators), and where it needs adapted files or fails.
CHAKRA = {
    "alexnet_synth": (367, 95),
    "resnet_a100": (1_310, 323),
    "torch213_ddp2_rank0": (8_147, 0),
    "torch213_ddp2_rank1": (8_147, 0),
    "linear": (928, 220),
    **{f"dlrm/rank{rank}": (1_672, 261) for rank in range(4)},
}
BY_NUMBER = ("alexnet_synth", "torch213_ddp2_rank0", "torch213_ddp2_rank1")


@pytest.mark.parametrize("name", CHAKRA)
def test_a_pair_is_linked_at_least_as_far_as_chakra_links_it(name):
    linked = link(name)
    nodes = linked.nodes
    n_device = nodes.filter(pl.col("kind") == "device").height
    assert linked.method == ("record_function_id" if name in BY_NUMBER else "thread_order")
    assert linked.n_linked >= CHAKRA[name][0]
    assert n_device >= CHAKRA[name][1]
    operators = nodes.filter(pl.col("kind") == "operator")
    without = operators.filter(pl.col("event").is_null())["node"]
    reasons = linked.unlinked
    assert sorted(reasons["node"].drop_nulls()) == sorted(without)
    work = linked.trace.events.filter(
        pl.col("kind").cast(pl.String).is_in(["kernel", "copy", "fill", "memcpy", "memset"])
    )
    explained = [*nodes.filter(pl.col("kind") == "device")["event"], *reasons["event"].drop_nulls()]
    assert sorted(explained) == sorted(work["event"])


@pytest.mark.parametrize("name", CHAKRA)
def test_no_dependency_contradicts_the_measured_times(name):
    linked = link(name)
    times = linked.nodes.select(
        "node", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    found = linked.dependencies.join(times, on="node").join(
        times, left_on="depends_on", right_on="node", suffix="_source"
    )
    must_be_over = found.filter(pl.col("after") == "end")
    assert must_be_over.filter(pl.col("end_ns_source") > pl.col("start_ns")).height == 0
    assert found.filter(pl.col("start_ns_source") > pl.col("start_ns")).height == 0


@pytest.mark.parametrize("name", CHAKRA)
def test_the_replay_reproduces_the_measured_time(name):
    replay = link(name).replay()
    assert replay.stuck == 0
    assert replay.error == pytest.approx(0, abs=0.05)


def test_files_of_different_runs_are_refused_with_the_figures():
    with pytest.raises(PairError, match=r"14389 an External id \(581 the name\)"):
        link("resnet_a100", "wrong_pair_with_resnet_a100")


def test_each_thread_of_a_rank_is_linked_to_one_thread():
    linked = link("dlrm/rank0")
    threads = linked.nodes.filter(pl.col("kind").cast(pl.String) == "operator")["thread"]
    assert sorted(threads.drop_nulls().value_counts()["count"]) == [684, 988]


def test_every_iteration_of_the_linear_pair_has_its_own_backward():
    iterations = link("linear").iterations
    assert iterations.height == 39
    assert (iterations["n_nodes"] == 928).all()
    ends = iterations["start_ns"] + iterations["duration_ns"]
    assert (ends[:-1] <= iterations["start_ns"][1:]).all()


def test_the_iterations_that_fit_are_listed_and_one_is_chosen():
    linked = link("resnet_a100")
    assert linked.iterations.height == 19
    chosen = linked.iterations.filter("chosen").row(0, named=True)
    durations = sorted(linked.iterations["duration_ns"])
    assert chosen["duration_ns"] == durations[9]
    assert link("resnet_a100", iteration=4).iterations.filter("chosen")["iteration"][0] == 4
    with pytest.raises(WindowError, match="there is no iteration 19: 19 match"):
        link("resnet_a100", iteration=19)
