"""The table of collectives of one trace."""

from __future__ import annotations

import polars as pl
import pytest

from longpole import read_trace
from longpole.testing import TraceBuilder
from real_traces import SHARED


def test_arguments_of_a_kernel_become_columns():
    builder = TraceBuilder().header(
        distributedInfo={
            "rank": 1,
            "pg_config": [{"pg_name": "7", "pg_desc": "tp", "pg_size": 2, "ranks": [1, 0]}],
        }
    )
    builder.event(
        ph="X",
        cat="kernel",
        name="ncclDevKernel_Generic",
        pid=0,
        tid=20,
        ts=5,
        dur=10,
        args={
            "device": 0,
            "stream": 20,
            "Collective name": "_allgather_base",
            "Process Group Name": "7",
            "Group size": 2,
            "dtype": "BFloat16",
            "In msg nelems": 8,
            "Out msg nelems": 16,
            "Seq": 3,
        },
    )
    [row] = builder.read().collectives.rows(named=True)
    wanted = {
        "operation": "all_gather",
        "named_by": "record",
        "group": "7",
        "group_size": 2,
        "group_ranks": "0 1",
        "sequence": 3,
        "data_type": "bfloat16",
        "bytes": 32,
        "call": None,
        "coalesced": False,
    }
    assert {name: row[name] for name in wanted} == wanted


@pytest.mark.skipif(not SHARED.exists(), reason="the real traces are not here")
def test_the_range_around_a_launch_counts_before_the_name_of_the_kernel():
    trace = read_trace(SHARED / "traces" / "two_ranks" / "sampled_rank-0.json.gz")
    found = trace.collectives.join(trace.events.select("event", "name"), on="event")
    counts = dict(found["operation"].value_counts().rows())
    assert counts == {"all_to_all": 4, "all_reduce": 4, "all_gather": 2}
    reduces = found.filter(pl.col("operation") == "all_reduce")["name"].cast(pl.String)
    assert reduces.str.contains("SendRecv").all()
    assert found.filter(pl.col("operation") == "all_gather")["bytes"].to_list() == [1 << 30] * 2
