"""Pairs without common numbers: operators that began in the same tick, and which iteration."""

from __future__ import annotations

import json

import polars as pl
import pytest

from longpole import PairError, link_execution_trace
from longpole.testing import TraceBuilder


def execution(*threads):
    """Make an execution trace of (id, name, parent) for each thread, without numbers."""
    nodes = [{"id": 1, "name": "[pytorch|profiler|execution_graph|process]", "parent": 1}]
    for tid, (root, *rows) in enumerate(threads, 1):
        name = "[pytorch|profiler|execution_graph|thread]"
        nodes.append({"id": root, "name": name, "parent": 1, "tid": tid})
        nodes += [
            {"id": id_, "name": name, "parent": parent, "tid": tid} for id_, name, parent in rows
        ]
    return json.dumps({"schema": "1.0.1", "pid": 1, "nodes": nodes}).encode()


def operators(*rows):
    builder = TraceBuilder()
    for name, span in rows:
        builder.operator(name, span)
    return builder


def spans(linked):
    """Return start and length of each node in microseconds, by id."""
    us = pl.col("start_ns", "duration_ns") // 1_000
    found = linked.nodes.filter(
        pl.col("kind").cast(pl.String) == "operator", ~pl.col("event").is_null()
    )
    return {node: (start, length) for node, start, length in found.select("node", us).rows()}


ITEM = [
    (3, "aten::item", 2),
    (4, "aten::_local_scalar_dense", 3),
    (5, "aten::select", 2),
    (6, "aten::as_strided", 5),
]


def test_operators_of_one_stamp_are_matched_as_a_set():
    # The profiler's clock has whole microseconds: the scalar is read in no time at all, and the
    # next operator begins in the same tick and lasts.
    trace = operators(
        ("aten::item", (3, 5)),
        ("aten::_local_scalar_dense", (5, 5)),
        ("aten::select", (5, 8)),
        ("aten::as_strided", (7, 8)),
    )
    linked = link_execution_trace(execution([2, *ITEM]), trace.to_bytes())
    assert linked.method == "thread_order"
    assert spans(linked) == {3: (3, 2), 4: (5, 0), 5: (5, 3), 6: (7, 1)}


def test_of_one_name_the_node_around_others_gets_the_event_that_lasts():
    trace = operators(
        ("aten::empty", (5, 5)),
        ("aten::empty", (5, 9)),
        ("aten::inner", (6, 8)),
        ("aten::end", (10, 12)),
    )
    rows = [
        (3, "aten::empty", 2),
        (4, "aten::empty", 2),
        (5, "aten::inner", 4),
        (6, "aten::end", 2),
    ]
    found = spans(link_execution_trace(execution([2, *rows]), trace.to_bytes()))
    assert (found[3], found[4]) == ((5, 0), (5, 4))


def test_an_operator_swapped_across_stamps_is_a_difference():
    trace = operators(
        ("aten::item", (3, 4)),
        ("aten::select", (5, 8)),
        ("aten::as_strided", (7, 8)),
        ("aten::_local_scalar_dense", (9, 9)),
    )
    with pytest.raises(PairError, match="in the same order"):
        link_execution_trace(execution([2, *ITEM]), trace.to_bytes())


def test_iterations_may_meet_within_a_stamp():
    rows = [(3, "aten::a", 2), (4, "aten::b", 2), (5, "aten::c", 2)]
    trace = operators(
        ("aten::a", (0, 1)),
        ("aten::b", (2, 3)),
        ("aten::c", (5, 5)),
        ("aten::a", (5, 6)),
        ("aten::b", (7, 8)),
        ("aten::c", (9, 9)),
    )
    linked = link_execution_trace(execution([2, *rows]), trace.to_bytes(), iteration=1)
    assert linked.iterations.height == 2
    assert spans(linked) == {3: (5, 1), 4: (7, 1), 5: (9, 0)}


@pytest.mark.parametrize("n_names", [1, 7])
def test_a_hundred_thousand_operators_of_one_stamp_are_linked(n_names):
    n = 100_000
    builder = TraceBuilder()
    for number in range(n):
        builder.operator(f"aten::op{number % n_names}", (5, 5))
    rows = [(3 + k, f"aten::op{(n - 1 - k) % n_names}", 2) for k in range(n)]
    linked = link_execution_trace(execution([2, *rows]), builder.to_bytes())
    assert linked.n_linked == n


def test_a_hundred_thousand_operators_that_nest_from_one_stamp_are_linked():
    n = 100_000
    builder = TraceBuilder()
    for depth in range(n):
        builder.operator("aten::op", (5, 5 + n - depth))
    rows = [(3 + depth, "aten::op", 2 + depth) for depth in range(n)]
    linked = link_execution_trace(execution([2, *rows]), builder.to_bytes())
    assert linked.nodes.filter(pl.col("duration_ns") == n * 1_000)["node"].to_list() == [3]
    assert linked.replay().error == 0


def iterations_with_backward():
    """Three iterations: forward, a wait for the longer backward thread, then the optimizer."""
    builder = TraceBuilder()
    for number in range(3):
        at = 200 * number
        builder.operator("aten::linear", (at, at + 20))
        for place in range(4):
            begin = at + 30 + 20 * place
            builder.operator(f"Backward{place}", (begin, begin + 18), thread=2)
        builder.operator("aten::add_", (at + 110, at + 120))
    return builder


FORWARD = [2, (3, "aten::linear", 2), (9, "aten::add_", 2)]
BACKWARD = [4, *((5 + place, f"Backward{place}", 4) for place in range(4))]


def test_the_forward_that_began_first_belongs_to_the_backward_that_followed():
    trace = iterations_with_backward().to_bytes()
    linked = link_execution_trace(execution(FORWARD, BACKWARD), trace)
    assert linked.iterations["n_nodes"].to_list() == [6, 6, 6]
    assert linked.iterations["duration_ns"].to_list() == [120_000] * 3
    found = spans(linked)
    assert found[3] < found[5] < found[9]
    assert linked.replay().error == pytest.approx(0, abs=0.05)


def test_a_search_that_was_stopped_is_said_in_the_refusal():
    # Every second operator may be the first, and each place differs in the middle only.
    n = 6_500
    names = [*("ab" * n), *"aaabbb", *("ab" * n)]
    rows = [(number, name, 2) for number, name in enumerate(names, 3)]
    trace = operators(
        *((name, (10 * tick, 10 * tick + 1)) for tick in range(4 * n) for name in "ab")
    )
    with pytest.raises(PairError, match="search was stopped at 1,000 comparisons for each event"):
        link_execution_trace(execution([2, *rows]), trace.to_bytes())
    with pytest.raises(PairError) as error:
        link_execution_trace(execution([2, *ITEM]), trace.to_bytes())
    assert "stopped" not in str(error.value)
