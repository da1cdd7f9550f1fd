"""Communication that kernels could hide, and what fewer bytes would save apart from that."""

from __future__ import annotations

import pytest
from steps import steps

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
REDUCING = 700
COMPUTING = 200
STEP = 1_000


@pytest.mark.parametrize(("stream", "own"), [(7, ", on a stream of its own"), (13, "")])
def test_kernels_hide_no_more_than_they_take_and_bytes_are_a_line_of_their_own(stream, own):
    def fill(builder, begin):
        builder.launch("gemm", call=(begin, begin + 10), work=(begin + 20, begin + 220))
        call, work = (begin + 230, begin + 240), (begin + 250, begin + 250 + REDUCING)
        builder.launch(REDUCE, call=call, work=work, stream=stream)
        builder.call("cudaDeviceSynchronize", (begin + 245, begin + 990))

    found = steps(STEP, fill).read().verdict().remedies
    overlap, bytes_ = (row for row in found if row.remedy == "communication_overlap")
    assert overlap.advice == f"Start communication earlier, while kernels run{own}"
    told = "it takes 700 µs a step, with the wait for other ranks"
    assert overlap.evidence.startswith(told)
    assert overlap.evidence.endswith("and other kernels can hide 200 µs of it")
    assert overlap.gain.high == pytest.approx(COMPUTING / STEP, abs=0.01)
    assert overlap.gain.low == pytest.approx(COMPUTING / STEP / 2, abs=0.01)
    assert (bytes_.name, bytes_.named) == ("half of the bytes", False)
    assert (bytes_.gain.low, bytes_.gain.high) == pytest.approx((0, REDUCING / STEP / 2), abs=0.01)
