"""Launch times of runtime API calls."""

from __future__ import annotations

import longpole
from longpole.testing import TraceBuilder


def test_a_call_that_launches_a_graph_counts_once_and_with_all_that_it_launched():
    builder = TraceBuilder().call("cudaGraphLaunch", (0, 60), correlation=7)
    for node in range(4):
        start = 200 + 30 * node
        builder.kernel("gemm", (start, start + 20), correlation=7, stream=7)
    builder.launch("add", call=(70, 80), work=(81, 84))
    rows = longpole.launches(builder.read(), by="call").select(
        "call_name", "n_calls", "count", "n_short", "n_slow_calls", "n_delayed"
    )
    assert rows.rows() == [
        ("cudaGraphLaunch", 1, 4, 0, 1, 1),
        ("cudaLaunchKernel", 1, 1, 1, 0, 0),
    ]


def test_the_delay_of_a_graph_ends_where_its_first_node_begins():
    builder = TraceBuilder().call("cudaGraphLaunch", (0, 60), correlation=7)
    builder.kernel("second", (200, 220), correlation=7).kernel("first", (70, 90), correlation=7)
    row = longpole.launches(builder.read(), by="call").row(0, named=True)
    assert row["delay_mean_ns"] == row["delay_max_ns"] == 10_000
    assert (row["call_mean_ns"], row["activity_max_ns"]) == (60_000, 20_000)
