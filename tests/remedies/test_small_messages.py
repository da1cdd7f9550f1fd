"""Collectives one after another: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def reducing(n_kernels: int, n_messages: int = 20):
    """Return what fills a step with messages of 40 us, kernels after each, and one of 800 us."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        now, free = begin, begin + 20
        for _ in range(n_messages):
            builder.launch(REDUCE, call=(now, now + 5), work=(free, free + 40))
            now, free = now + 6, free + 40
            for _ in range(n_kernels):
                builder.launch("gemm", call=(now, now + 5), work=(free, free + 20))
                now, free = now + 6, free + 20
        builder.launch("gemm", call=(now, now + 5), work=(free, free + 800))
        builder.call("cudaDeviceSynchronize", (now + 6, free + 805))

    return fill


def test_messages_in_a_row_take_as_long_as_one_to_three():
    found = remedy_of("small_messages", steps(1_640, reducing(0)))
    # 800 us of messages; 120 or 40 stay
    assert abs(found.gain_low - 680 / 1_640) < 0.02, found
    assert abs(found.gain_high - 760 / 1_640) < 0.02, found
    assert found.advice == "Send small messages together (one flat buffer, larger buckets)"
    assert found.evidence.startswith(
        "20 collectives a step such as ncclDevKernel_AllReduce_Sum_f32"
    )
    assert found.evidence.endswith("follow each other without other work, 40 us each")


def test_messages_with_work_between_them_are_left_alone():
    assert remedy_of("small_messages", steps(2_060, reducing(1))) is None


def test_few_messages_are_left_alone():
    assert remedy_of("small_messages", steps(1_100, reducing(0, 4))) is None
