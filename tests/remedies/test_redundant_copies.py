"""Copies of too many bytes, and repeated copies: the trace, the gain and the sentence."""

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
HTOD = "Memcpy HtoD (Pinned -> Device)"
LAYERS = 4
CONVERTED_US = 2_600
NARROWED_US = 1_800


# Repeated copies


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


def test_copies_of_one_size_with_work_between_them_are_at_the_most_gone(said):
    found = remedy_of("redundant_copies", steps(1_640, layers(3)))
    assert abs(found.gain.high - LAYERS * 100 / 1_640) < 0.02, found
    said(found.advice)
    said(found.evidence)


def test_copies_that_follow_each_other_are_those_of_a_batch():
    assert remedy_of("redundant_copies", steps(1_640, layers(0))) is None


def test_small_copies_are_left_alone():
    assert remedy_of("redundant_copies", steps(1_640, layers(3, n_bytes=4_096))) is None


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

    found = remedy_of("redundant_copies", steps(2_010, fill))
    # the host launches, and spends 100 us on each copy; without its operator, none
    assert abs(found.gain.high - LAYERS * 100 / 2_010) < 0.02, found


# Tensors that the CPU converts before their copy


def converted_batch(
    source: str = "unsigned char", between: str = "aten::empty_strided", n_bytes=N_BYTES
):
    """Return what fills a step with a conversion of 1 ms, a copy of 1 ms and a kernel of 0.5 ms."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        converted = tensors(("float", *SHAPE), (source, *SHAPE))
        copied = tensors(("float", *SHAPE), ("float", *SHAPE))
        builder.operator("aten::to", (begin, begin + 1_005))
        builder.operator("aten::copy_", (begin + 2, begin + 1_002), **converted)
        builder.operator(between, (begin + 1_006, begin + 1_008))
        builder.operator("aten::copy_", (begin + 1_010, begin + 2_025), **copied)
        call, work = (begin + 1_011, begin + 2_011), (begin + 1_015, begin + 2_010)
        name = "Memcpy HtoD (Pageable -> Device)"
        builder.launch(name, call=call, work=work, by="cudaMemcpyAsync", n_bytes=n_bytes)
        builder.call("cudaStreamSynchronize", (begin + 2_012, begin + 2_020))
        call, work = (begin + 2_030, begin + 2_035), (begin + 2_040, begin + 2_540)
        builder.launch("gemm", call=call, work=work)

    return fill


def converted_in(**choices):
    return remedy_of("redundant_copies", steps(CONVERTED_US, converted_batch(**choices)))


def test_a_batch_that_is_copied_before_it_is_converted_saves_most_of_both(said):
    found = converted_in()
    said(found.advice)
    said(found.evidence)
    assert found.effort == "one_line"
    # Of 2.6 ms, 1 ms less a launch goes, and three quarters of 1 ms; the GPU needs 87 us more.
    assert 0.62 < found.gain.low < 0.64
    assert 0.65 < found.gain.high < 0.68


def test_a_batch_of_the_same_or_a_larger_type_is_left_alone():
    assert converted_in(source="float") is None
    assert converted_in(source="double") is None


def test_a_batch_that_the_host_computes_with_is_left_alone():
    assert converted_in(between="aten::div") is None


def test_another_tensor_is_left_alone():
    assert converted_in(n_bytes=N_BYTES // 2) is None


def test_a_conversion_on_the_gpu_is_left_alone():
    def fill(builder: TraceBuilder, begin: int) -> None:
        converted_batch()(builder, begin)
        builder.launch("cast", call=(begin + 10, begin + 15), work=(begin + 20, begin + 30))

    assert remedy_of("redundant_copies", steps(CONVERTED_US, fill)) is None


# Tensors that the GPU converts after their copy


def narrowed_batch(
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


def narrowed_in(**choices):
    return remedy_of("redundant_copies", steps(NARROWED_US, partial(narrowed_batch, **choices)))


def test_a_batch_that_is_converted_after_its_copy_has_half_the_bytes(said):
    found = narrowed_in()
    said(found.advice)
    said(found.evidence)
    assert found.effort == "code"
    # Half of the copy of 1 ms goes; at most also the conversion of 0.1 ms.
    assert found.gain.low == pytest.approx(0.5 / 1.8, abs=0.01)
    assert found.gain.high == pytest.approx(0.6 / 1.8, abs=0.01)


def test_a_larger_or_an_equal_type_saves_nothing():
    assert narrowed_in(target="double") is None
    assert narrowed_in(target="int") is None


@pytest.mark.parametrize("also", ["aten::mean", "aten::view", "aten::conv2d"])
def test_a_batch_that_others_may_read_in_its_own_type_is_left_alone(also):
    assert narrowed_in(also=also) is None
    assert narrowed_in(also="aten::slice") is not None


def test_another_tensor_that_the_gpu_converts_is_left_alone():
    assert narrowed_in(n_bytes=N_BYTES // 2) is None
