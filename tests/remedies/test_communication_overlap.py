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


@pytest.mark.parametrize(
    ("other", "of_bytes"),
    # 100 us for 2 MB more: 150 us for 3 MB, and 250 us for 5 MB. Otherwise all of both, at most.
    [(5_000_000, 150 + 250), (3_000_000, 300 + 300)],
)
def test_what_depends_on_bytes_is_known_by_their_sizes(other, of_bytes):
    def fill(builder, begin):
        end = begin + 60
        for n_bytes, time in ((3_000_000, 300), (other, 400)):
            call = begin + end % 50
            builder.call("cudaLaunchKernel", (call, call + 10), correlation=end)
            builder.kernel(
                REDUCE,
                (end, end + time),
                stream=13,
                correlation=end,
                **{"In msg nelems": n_bytes // 4, "dtype": "Float"},
            )
            end += time
        builder.call("cudaDeviceSynchronize", (begin + 100, begin + 770))

    found = steps(800, fill).read().verdict().remedies
    bytes_ = next(row for row in found if row.name == "half of the bytes")
    assert bytes_.gain.high == pytest.approx(of_bytes / 2 / 800, abs=0.01)
    assert bytes_.evidence.startswith(f"at most {of_bytes} µs of 700 µs a step depend on")
