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
