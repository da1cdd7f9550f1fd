"""Weights that are cast again in each call of their module: the trace, the gain, the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from steps import remedy_of, steps

from kernel_steps import tensors

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

STEP_US = 1_000
WEIGHT = (512, 256)


def calls(
    *,
    modules: str = "0000",
    casts: str = "1111",
    n_rows: int = 64,
    named: str = "nn.Module: Linear_",
    between: str = "aten::relu",
    before: str | None = None,
):
    """Return what fills a step with calls of modules, those of 1 with a cast of their weight."""
    cast = tensors(("c10::BFloat16", *WEIGHT), ("float", *WEIGHT))
    product = tensors(("c10::BFloat16", n_rows, 256), ("float", *WEIGHT))

    def fill(builder: TraceBuilder, begin: int) -> None:
        now, free = begin + 10, begin + 40
        for module, is_cast in zip(modules, casts, strict=True):
            builder.python(f"{named}{module}", (now, now + 50))
            if before:
                builder.operator(before, (now + 1, now + 2))
            builder.operator("aten::linear", (now + 3, now + 49), **product)
            if is_cast == "1":
                builder.operator("aten::to", (now + 4, now + 20))
                builder.operator("aten::_to_copy", (now + 5, now + 19))
                builder.operator("aten::copy_", (now + 6, now + 18), **cast)
                builder.launch("cast", call=(now + 7, now + 15), work=(free, free + 100))
                free += 100
            builder.operator("aten::addmm", (now + 21, now + 45))
            builder.launch("gemm", call=(now + 22, now + 30), work=(free, free + 50))
            builder.operator(between, (now + 51, now + 59))
            builder.launch("other", call=(now + 52, now + 58), work=(free + 50, free + 60))
            now, free = now + 60, free + 60
        builder.launch("gemm", call=(now, now + 8), work=(free, begin + STEP_US - 10))
        builder.call("cudaDeviceSynchronize", (now + 9, begin + STEP_US - 5))

    return fill


def test_casts_of_one_module_after_the_first_are_gone(said):
    found = remedy_of("repeated_weight_casts", steps(STEP_US, calls()))
    assert abs(found.gain.value - 300 / STEP_US) < 0.02, found
    bounds = (found.gain.low, found.gain.high)
    assert bounds == pytest.approx((0.5 * found.gain.value, 1.3 * found.gain.value))
    assert found.name == "nn.Module: Linear_0"
    said(found.advice)
    said(found.evidence)


@pytest.mark.parametrize(
    "near",
    [
        pytest.param({"casts": "1000"}, id="the cache is on"),
        pytest.param({"modules": "0123"}, id="other modules of one shape"),
        pytest.param({"n_rows": 512}, id="the input has the shape of the weight"),
        pytest.param({"named": "nn.Module: Experts_"}, id="a module with many weights"),
        pytest.param({"named": "forward"}, id="no modules are recorded"),
        pytest.param({"before": "aten::mul"}, id="a weight computed before each use"),
        pytest.param({"between": "autograd::engine::evaluate_function: N"}, id="a backward pass"),
    ],
)
def test_other_casts_are_left_alone(near: dict[str, Any]):
    assert remedy_of("repeated_weight_casts", steps(STEP_US, calls(**near))) is None
