"""Tensors that the GPU converts to a smaller type: the trace, the gain and the sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

from kernel_steps import tensors

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

SHAPE = (16, 3, 256, 256)
N_BYTES = 4 * 16 * 3 * 256 * 256
STEP_US = 1_800


def batch(
    builder: TraceBuilder,
    begin: int,
    *,
    target: str = "c10::BFloat16",
    also: str | None = None,
    n_bytes: int = N_BYTES,
) -> None:
    """Add a pinned copy of 1 ms, its conversion in 0.1 ms, and a kernel of 0.5 ms."""
    sent = tensors(("float", *SHAPE), ("float", *SHAPE))
    builder.operator("aten::copy_", (begin, begin + 20), **sent)
    call, work = (begin + 5, begin + 15), (begin + 20, begin + 1_020)
    name = "Memcpy HtoD (Pinned -> Device)"
    builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", n_bytes=n_bytes)
    builder.operator("aten::to", (begin + 30, begin + 60), **tensors(("float", *SHAPE)))
    cast = tensors((target, *SHAPE), ("float", *SHAPE))
    builder.operator("aten::copy_", (begin + 35, begin + 55), **cast)
    builder.launch("cast", call=(begin + 40, begin + 50), work=(begin + 1_025, begin + 1_125))
    if also is not None:
        builder.operator(also, (begin + 70, begin + 90), **tensors(("float", *SHAPE)))
        builder.launch("any", call=(begin + 75, begin + 85), work=(begin + 1_126, begin + 1_130))
    builder.launch("gemm", call=(begin + 100, begin + 110), work=(begin + 1_140, begin + 1_640))
    builder.call("cudaDeviceSynchronize", (begin + 120, begin + 1_650))


def found_in(**choices):
    return remedy_of("narrowed_copies", steps(STEP_US, partial(batch, **choices)))


def test_a_batch_that_is_converted_after_its_copy_has_half_the_bytes():
    found = found_in()
    assert found.advice == (
        "Load the data as bfloat16, or convert it in workers, before it is copied"
    )
    assert found.evidence == ("1 copy of 12.6 MB a step in float32, which the GPU then converts")
    # Half of the copy of 1 ms goes; at most also the conversion of 0.1 ms.
    assert found.gain_low == pytest.approx(0.5 / 1.8, abs=0.01)
    assert found.gain_high == pytest.approx(0.6 / 1.8, abs=0.01)


def test_a_larger_or_an_equal_type_saves_nothing():
    assert found_in(target="double") is None
    assert found_in(target="int") is None


@pytest.mark.parametrize("also", ["aten::mean", "aten::view", "aten::conv2d"])
def test_a_batch_that_others_may_read_in_its_own_type_is_left_alone(also):
    assert found_in(also=also) is None
    assert found_in(also="aten::slice") is not None


def test_another_tensor_is_left_alone():
    assert found_in(n_bytes=N_BYTES // 2) is None
