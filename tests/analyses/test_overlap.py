"""How much communication and copying is hidden behind kernels."""

from __future__ import annotations

import longpole
from longpole.testing import TraceBuilder


def rows(builder, **options):
    trace = builder.read()
    found = longpole.overlap(trace, longpole.choose_window(trace, **options))
    return {row.activity: (row.duration_ns, row.exposed_ns) for row in found.rows}


def test_communication_beside_a_kernel_is_hidden_and_the_rest_is_exposed():
    builder = (
        TraceBuilder()
        .launch("gemm", call=(0, 1), work=(1, 30))
        .launch("ncclDevKernel_AllReduce", call=(1, 2), work=(20, 60), stream=9)
        .launch("Memcpy DtoH", call=(2, 3), work=(50, 80), stream=11)
    )
    assert rows(builder) == {"communication": (40_000, 30_000), "copy": (30_000, 20_000)}


def test_a_step_counts_only_what_runs_in_it():
    builder = (
        TraceBuilder()
        .step(1, (0, 20))
        .launch("gemm", call=(0, 1), work=(1, 20))
        .step(2, (20, 60))
        .launch("ncclDevKernel_AllReduce", call=(21, 22), work=(30, 60))
    )
    assert rows(builder, step=1)["communication"] == (0, 0)
    assert rows(builder, step=2)["communication"] == (30_000, 30_000)


def test_where_nothing_is_communicated_no_share_is_made_up():
    trace = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30)).read()
    assert {row.hidden_share for row in longpole.overlap(trace).rows} == {None}
