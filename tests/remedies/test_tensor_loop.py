"""Loops over tensors outside an optimizer: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of, steps

from kernel_steps import tensors

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

STEP_US = 2_000
SHAPES = [(64, 64), (64,)]


def loop(
    *names: str,
    n_tensors: int = 50,
    shapes: list[tuple[int, ...]] | None = SHAPES,
    between: str | None = None,
    around: str | None = None,
):
    """Return what fills a step: 8 us an operator and 2 us of Python, then a product."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        now = begin + 10
        for number in range(n_tensors):
            shape = shapes[number % len(shapes)] if shapes else ()
            inputs = tensors(("float", *shape)) if shapes else {}
            for name in (*names, *filter(None, [between])):
                builder.operator(name, (now, now + 8), **inputs)
                builder.launch("elementwise", call=(now + 1, now + 7), work=(now + 8, now + 10))
                now += 10
        if around:
            builder.annotation(around, (begin + 9, now))
        builder.operator("aten::mm", (now, now + 9))
        builder.launch("gemm", call=(now + 1, now + 8), work=(now + 9, begin + STEP_US - 10))
        builder.call("cudaDeviceSynchronize", (now + 9, begin + STEP_US - 5))

    return fill


def test_a_loop_saves_its_operators_and_at_most_the_python_between(said):
    found = remedy_of("tensor_loop", steps(STEP_US, loop("aten::mul_", "aten::add_")))
    assert abs(found.gain.low - 0.9 * 800 / STEP_US) < 0.02, found
    assert abs(found.gain.high - 0.96 * 998 / STEP_US) < 0.02, found
    said(found.name)
    said(found.advice)
    said(found.evidence)


def test_norms_of_gradients_are_a_loop_too():
    found = remedy_of("tensor_loop", steps(STEP_US, loop("aten::linalg_vector_norm")))
    assert found.advice.endswith("(`torch._foreach_norm`)")


def test_operators_for_all_tensors_are_left_alone():
    assert remedy_of("tensor_loop", steps(STEP_US, loop("aten::_foreach_mul_"))) is None


def test_one_tensor_that_changes_many_times_is_left_alone():
    for shapes in ([(64, 64)], None):
        assert remedy_of("tensor_loop", steps(STEP_US, loop("aten::mul_", shapes=shapes))) is None


def test_a_loop_with_other_work_or_of_few_launches_is_left_alone():
    for fill in (loop("aten::mul_", between="aten::mm"), loop("aten::mul_", n_tensors=39)):
        assert remedy_of("tensor_loop", steps(STEP_US, fill)) is None


def test_the_loop_of_an_optimizer_is_left_to_its_own_remedy():
    fill = loop("aten::mul_", "aten::add_", around="Optimizer.step#SGD.step")
    builder = steps(STEP_US, fill)
    assert remedy_of("tensor_loop", builder) is None
    assert remedy_of("optimizer_loop", builder) is not None
