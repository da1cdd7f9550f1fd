"""Batch norms of inference, which a compiler fuses or folds."""

from __future__ import annotations

import json

import pytest

from kernel_steps import kernel, steps, tensors

IMAGES = ("c10::Half", 32, 128, 64, 64)
CHANNELS = ("c10::Half", 128)
WEIGHT = ("c10::Half", 128, 128, 3, 3)


def norm(*, is_training: bool = False):
    inputs = tensors(IMAGES, *[CHANNELS] * 4, *[("Scalar",)] * 3)
    values = ["", "", "", "", "", str(is_training), "0.1", "1e-05"]
    inputs["Concrete Inputs"] = json.dumps(values)
    name = "batch_norm_transform_input_channels_last_kernel"
    return kernel("aten::native_batch_norm", name, 120, **inputs)


CONVOLUTION = kernel("aten::cudnn_convolution", "implicit_gemm", 200, **tensors(IMAGES, WEIGHT))
RELU = kernel("aten::relu_", "clamp", 80, **tensors(IMAGES))
BIAS = kernel("aten::add_", "add", 80, **tensors(IMAGES, CHANNELS))
POOL = kernel("aten::max_pool2d_with_indices", "max_pool", 80, **tensors(IMAGES))
NODE = kernel("autograd::engine::evaluate_function: ReluBackward0", "relu", 80, **tensors(IMAGES))


def found_in(kernels):
    remedies = steps(kernels).read().verdict().remedies
    return next((row for row in remedies if row.remedy == "folded_batch_norm"), None)


def test_a_batch_norm_of_inference_takes_no_pass_of_its_own(said):
    found = found_in([CONVOLUTION, norm(), RELU] * 4)
    # At least, one kernel of 120 us does the work of both; at most, the batch norm is gone.
    assert found.gain.value == pytest.approx(80 / 400, abs=0.01)
    unmeasured = 0.3 * found.gain.value
    assert found.gain.high == pytest.approx(120 / 400 + unmeasured, abs=0.01)
    assert found.named
    said(found.evidence)


@pytest.mark.parametrize("before", [[CONVOLUTION], [CONVOLUTION, BIAS]])
def test_without_an_elementwise_operator_only_folding_gains(before):
    found = found_in([*before, norm(), POOL] * 4)
    total_us = sum(it.duration_us for it in before) + 200
    assert (found.gain.low, found.gain.high) == pytest.approx((0, 120 / total_us), abs=0.01)


@pytest.mark.parametrize(
    "kernels",
    [
        [CONVOLUTION, norm(is_training=True), RELU],
        [CONVOLUTION, norm(), RELU, NODE],
        [POOL, norm(), RELU, CONVOLUTION],
    ],
    ids=["training", "backward", "no convolution before"],
)
def test_other_batch_norms_are_left_alone(kernels):
    assert found_in(kernels * 4) is None
