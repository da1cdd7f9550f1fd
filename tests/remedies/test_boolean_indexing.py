"""Elements chosen by a mask: the trace, the gain and the sentence."""

from __future__ import annotations

from longpole.testing import TraceBuilder


def steps(outer: str) -> TraceBuilder:
    """Build steps of 1 ms of kernel and 0.5 ms of host work after it, with a `nonzero` between."""
    builder, now = TraceBuilder(), 0
    for number in range(4):
        first = now
        builder.launch("gemm", call=(now, now + 10), work=(now + 15, now + 1_015))
        now += 10
        builder.operator(outer, (now, now + 1_050))
        builder.operator("aten::nonzero", (now, now + 1_030))
        builder.launch(
            "DeviceSelectSweep", call=(now + 5, now + 10), work=(now + 1_006, now + 1_009)
        )
        builder.launch(
            "Memcpy DtoH (Device -> Pinned)",
            call=(now + 12, now + 15),
            work=(now + 1_010, now + 1_012),
            by="cudaMemcpyAsync",
        )
        builder.call("cudaStreamSynchronize", (now + 16, now + 1_020))
        builder.launch(
            "index_kernel", call=(now + 1_035, now + 1_045), work=(now + 1_050, now + 1_055)
        )
        builder.operator("aten::linear", (now + 1_060, now + 1_600))
        builder.launch("gemm", call=(now + 1_590, now + 1_600), work=(now + 1_605, now + 1_610))
        now += 1_620
        builder.step(number, (first, now))
    return builder


def test_an_index_by_a_mask_gains_the_wait_for_its_size(said):
    rows = steps("aten::index").read().verdict().remedies
    [found] = [row for row in rows if row.remedy == "boolean_indexing"]
    # without the wait the host works during the kernel: about 1 ms a step instead of 1.6 ms
    assert 0.3 < found.gain.low <= found.gain.high < 0.4, found
    said(found.advice)
    said(found.evidence)


def test_indices_that_the_program_asks_for_are_left_alone():
    rows = steps("aten::argwhere").read().verdict().remedies
    assert "boolean_indexing" not in {row.remedy for row in rows}
