"""Much data that every step copies to the GPU at the rate of the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

STEP = 86_000
COPY = 40_000


def loading(n_bytes: int, copy_us: int = COPY) -> TraceBuilder:
    """Build steps that each copy twice to the GPU before a kernel."""

    def fill(builder, begin):
        for place in range(2):
            call, start = begin + 20 * place, begin + 50 + copy_us * place
            builder.launch(
                "Memcpy HtoD (Pinned -> Device)",
                by="cudaMemcpyAsync",
                call=(call, call + 10),
                work=(start, start + copy_us),
                n_bytes=n_bytes // 2,
            )
        end = begin + 50 + 2 * copy_us
        builder.launch("gemm", call=(begin + 50, begin + 59), work=(end, end + 5_000))
        builder.call("cudaDeviceSynchronize", (begin + 60, end + 5_010))

    return steps(STEP, fill)


def test_weights_that_every_step_loads_are_found(said):
    found = remedy_of("repeated_uploads", loading(2_000_000_000))
    assert found is not None
    said(found.evidence)
    assert (found.gain.low, found.gain.high) == pytest.approx((40 / 86, 80 / 86), abs=0.02)


@pytest.mark.parametrize("n_bytes", [33_000_000, 600_000_000])
def test_a_batch_and_slow_copies_are_left_alone(n_bytes):
    assert remedy_of("repeated_uploads", loading(n_bytes)) is None
