"""One tensor copied in every layer: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

HTOD = "Memcpy HtoD (Pinned -> Device)"
LAYERS = 4


def layers(n_kernels: int, n_bytes: int = 1_000_000):
    """Return what fills a step with copies of 100 us, each followed by kernels of 50 us."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        now, free = begin, begin + 20
        for _ in range(LAYERS):
            builder.launch(
                HTOD,
                call=(now, now + 5),
                work=(free, free + 100),
                by="cudaMemcpyAsync",
                n_bytes=n_bytes,
            )
            now, free = now + 6, free + 100
            for _ in range(n_kernels):
                builder.launch("gemm", call=(now, now + 5), work=(free, free + 50))
                now, free = now + 6, free + 50
        builder.launch("gemm", call=(now, now + 5), work=(free, free + 600))
        builder.call("cudaDeviceSynchronize", (now + 6, free + 605))

    return fill


def test_copies_of_one_size_with_work_between_them_are_at_the_most_gone():
    found = remedy_of("repeated_copies", steps(1_640, layers(3)))
    assert abs(found.gain_high - LAYERS * 100 / 1_640) < 0.02, found
    assert found.advice == (
        "Keep this tensor on the GPU, if it is the same each time (`register_buffer`)"
    )
    assert found.evidence == "4 copies of 1.0 MB a step, with work between them"


def test_copies_that_follow_each_other_are_those_of_a_batch():
    assert remedy_of("repeated_copies", steps(1_640, layers(0))) is None


def test_small_copies_are_left_alone():
    assert remedy_of("repeated_copies", steps(1_640, layers(3, n_bytes=4_096))) is None


def test_the_operators_of_the_copies_go_with_them():
    def fill(builder: TraceBuilder, begin: int) -> None:
        now = begin
        for _ in range(LAYERS):
            builder.operator("aten::to", (now, now + 100))
            call, work = (now + 90, now + 95), (now + 96, now + 190)
            builder.launch(HTOD, call=call, work=work, by="cudaMemcpyAsync", n_bytes=1_000_000)
            for number in range(3):
                start = now + 200 + 100 * number
                builder.launch("gemm", call=(start, start + 5), work=(start + 6, start + 30))
            now += 500
        builder.call("cudaDeviceSynchronize", (now, now + 5))

    found = remedy_of("repeated_copies", steps(2_010, fill))
    # the host launches, and spends 100 us on each copy; without its operator, none
    assert abs(found.gain_high - LAYERS * 100 / 2_010) < 0.02, found
