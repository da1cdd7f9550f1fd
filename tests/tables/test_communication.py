"""Collectives: their bandwidth by the formulas of nccl-tests, and how hidden they are."""

from __future__ import annotations

import pytest

import longpole
from longpole.testing import TraceBuilder

ELEMENTS = 1_000


def collective(operation, *, group=8, start=100, elements=ELEMENTS):
    """Build a collective of 100 us, a kernel that computes during half of it, and a program."""
    builder = (
        TraceBuilder()
        .python("train.py(7): step", (0, 400))
        .python("torch/distributed/distributed_c10d.py(2806): all_reduce", (10, 60))
        .operator("c10d::allreduce_", (20, 50))
        .call("cudaLaunchKernel", (30, 40), correlation=1)
    )
    args = {
        "device": 0,
        "stream": 9,
        "correlation": 1,
        "Collective name": operation,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "dtype": "Float",
        "Group size": group,
        "Process Group Name": "0",
    }
    builder.event(
        ph="X",
        cat="kernel",
        name="ncclDevKernel_AllReduce_Sum_f32",
        pid=0,
        tid=9,
        ts=start,
        dur=100,
        args=args,
    )
    return builder.kernel("gemm", (start - 50, start + 50), stream=7)


def only_row(builder):
    trace = builder.read()
    window = longpole.choose_window(trace, whole=True)
    [row] = longpole.communication(trace, window).to_dicts()
    return row


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("allreduce", 2 * 7 / 8),
        ("all_gather", 7 / 8),
        ("reduce_scatter", 7 / 8),
        ("all_to_all", 7 / 8),
        ("broadcast", 1),
        ("reduce", 1),
    ],
)
def test_the_bandwidth_of_a_link_does_not_depend_on_the_number_of_ranks(operation, factor):
    row = only_row(collective(operation))
    assert row["bytes"] == 4 * ELEMENTS
    assert row["algorithm_gb_per_s"] == pytest.approx(4 * ELEMENTS / 100_000)
    assert row["bus_gb_per_s"] == pytest.approx(factor * 4 * ELEMENTS / 100_000)


def test_a_collective_is_hidden_while_a_kernel_computes():
    row = only_row(collective("allreduce"))
    times = row["duration_ns"], row["hidden_ns"], row["exposed_ns"]
    assert times == (100_000, 50_000, 50_000)


def test_it_is_given_to_the_operator_and_the_line_of_the_program():
    row = only_row(collective("allreduce"))
    assert (row["operator_name"], row["python"]) == ("c10d::allreduce_", "train.py(7): step")
    assert (row["operation"], row["named_by"], row["group_size"]) == ("all_reduce", "record", 8)


def test_what_the_trace_does_not_say_has_no_bandwidth():
    builder = TraceBuilder().launch("ncclDevKernel_AllReduce_Sum_f32", call=(0, 1), work=(2, 9))
    row = only_row(builder)
    figures = ("bytes", "group_size", "algorithm_gb_per_s", "bus_gb_per_s", "python")
    assert [row[figure] for figure in figures] == [None] * 5


def test_the_window_and_the_condition_choose():
    trace = collective("allreduce").read()
    early = longpole.choose_window(trace, between=(0, 50_000))
    assert longpole.communication(trace, early).is_empty()
    whole = longpole.choose_window(trace, whole=True)
    assert longpole.communication(trace, whole, where="bus_gb_per_s > 1").is_empty()
    assert longpole.communication(trace, whole, where="\"group\" = '0'").height == 1
