"""Workers that the launching thread waits for: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder


def loading(iterator: str, load_us: int):
    """Return what fills a step with the time of a data loader, and a kernel of 1 ms."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        name = f"enumerate(DataLoader)#{iterator}.__next__"
        builder.annotation(name, (begin, begin + load_us))
        now = begin + load_us
        builder.launch("gemm", call=(now + 1, now + 6), work=(now + 8, now + 1_008))
        builder.call("cudaDeviceSynchronize", (now + 10, now + 1_015))

    return fill


def test_a_wait_for_workers_goes_by_three_quarters_or_by_all(said):
    found = remedy_of(
        "loader_prefetch", steps(4_020, loading("_MultiProcessingDataLoaderIter", 3_000))
    )
    assert abs(found.gain.low - 2_250 / 4_020) < 0.01, found
    assert abs(found.gain.high - 3_000 / 4_020) < 0.01, found
    said(found.advice)
    said(found.evidence)


@pytest.mark.parametrize("name", ["loader_prefetch", "loader_workers"])
def test_batches_of_workers_and_of_the_launching_thread_are_told_apart(name: str):
    iterator = {
        "loader_prefetch": "_SingleProcessDataLoaderIter",
        "loader_workers": "_MultiProcessingDataLoaderIter",
    }
    assert remedy_of(name, steps(4_020, loading(iterator[name], 3_000))) is None
