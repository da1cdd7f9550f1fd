"""Conversions around convolutions: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernel_steps import kernel, named, steps, tensors

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

IMAGE, WEIGHT = ("c10::Half", 32, 64, 56, 56), ("c10::Half", 64, 64, 3, 3)


def convolutions(strides: list[list[int]] | None = None) -> TraceBuilder:
    """Build steps of convolutions of 1 ms, before each of which images are converted for 1 ms."""
    by, inputs = "aten::cudnn_convolution", tensors(IMAGE, WEIGHT, strides=strides)
    convert = kernel(
        "aten::cudnn_convolution", "cudnn::ops::nchwToNhwcKernel<half>", 1_000, **inputs
    )
    convolve = kernel(by, "sm80_xmma_fprop_implicit_gemm", 1_000, **inputs)
    return steps([convert, convolve] * 2)


def test_conversions_of_images_are_gone_with_channels_last(said):
    [found, *_] = convolutions().read().verdict().remedies
    assert (found.remedy, found.name) == ("channels_last", "aten::cudnn_convolution")
    assert abs(found.gain.low - 0.45) < 0.01, found
    assert abs(found.gain.high - 0.5) < 0.01, found
    said(found.evidence)


def test_images_that_are_channels_last_are_left_alone():
    strides = [[200704, 1, 3584, 64], [576, 1, 192, 64]]
    assert "channels_last" not in named(convolutions(strides))


def test_batch_norms_in_nchw_may_reach_the_bandwidth_of_memory():
    inputs = tensors(IMAGE, WEIGHT)
    convert = kernel("aten::cudnn_convolution", "nchwToNhwcKernel<half>", 1_000, **inputs)
    norm = kernel("aten::native_batch_norm", "batch_norm", 1_000, **tensors(IMAGE))
    [found, *_] = steps([convert, norm] * 2).read().verdict().remedies
    # 12.8 MB five times at 30 % of 2,039 GB/s take 105 us of 1 ms, at 60 % 52 us
    assert found.gain.low == pytest.approx(1 - (0.1 + 0.105) / 2, abs=0.01)
    assert found.gain.high == pytest.approx(1 - 0.052 / 2, abs=0.01)
