"""What operators compute and move: each formula against a case counted by hand."""

from __future__ import annotations

import pytest

from longpole.flops import Call, Tensor, work_of


def tensor(*shape, dtype="float", strides=None):
    return Tensor(shape, strides, dtype)


def call(name, *arguments):
    """Make a call: tensors, lists of tensors, and the values of everything else."""
    tensors, values = [], []
    for argument in arguments:
        group = argument if isinstance(argument, list) and argument else [argument]
        is_tensors = isinstance(group[0], Tensor)
        tensors.append(tuple(group) if is_tensors else ())
        values.append("" if is_tensors or argument is None else str(argument))
    return Call(name, tuple(tensors), tuple(values))


def flops(name, *arguments):
    work = work_of(call(name, *arguments))
    return None if work is None else work.flops


X, WEIGHT = tensor(2, 6, 10, 8), tensor(4, 3, 3, 5)  # groups = 2
HEADS = [tensor(2, 4, 5, 8), tensor(2, 4, 7, 8), tensor(2, 4, 7, 16)]


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        # 2 m n k
        (("aten::mm", tensor(3, 5), tensor(5, 7)), 2 * 3 * 7 * 5),
        (("aten::addmm", tensor(7), tensor(3, 5), tensor(5, 7), 1, 1), 2 * 3 * 7 * 5),
        (("aten::bmm", tensor(4, 3, 5), tensor(4, 5, 7)), 4 * 2 * 3 * 7 * 5),
        (("aten::baddbmm", tensor(4, 3, 7), tensor(4, 3, 5), tensor(4, 5, 7)), 4 * 2 * 3 * 7 * 5),
        (("aten::linear", tensor(2, 9, 5), tensor(7, 5), tensor(7)), 2 * (2 * 9) * 7 * 5),
        # 10 x 8 with a kernel of 3 x 5, padding 1 x 2: 10 x 8 again; 3 channels of each group
        (
            ("aten::convolution", X, WEIGHT, None, [1, 1], [1, 2], [1, 1], False, [0, 0], 2),
            2 * (2 * 4 * 10 * 8) * (3 * 3 * 5),
        ),
        # stride 2, no padding: (10 - 3) // 2 + 1 = 4 by (8 - 5) // 2 + 1 = 2
        (
            ("aten::convolution", X, WEIGHT, None, [2], [0], [1], False, [0], 2),
            2 * (2 * 4 * 4 * 2) * (3 * 3 * 5),
        ),
        # dilation 2: a kernel of 5 x 9 on 10 x 12 gives 6 x 4
        (
            (
                "aten::cudnn_convolution",
                tensor(2, 3, 10, 12),
                WEIGHT,
                [0, 0],
                [1, 1],
                [2, 2],
                1,
            ),
            2 * (2 * 4 * 6 * 4) * (3 * 3 * 5),
        ),
        # transposed: each of the 10 x 8 inputs times every weight of its channel
        (
            (
                "aten::convolution",
                tensor(2, 4, 10, 8),
                tensor(4, 3, 3, 5),
                None,
                [2, 2],
                [0, 0],
                [1, 1],
                True,
                [1, 1],
                1,
            ),
            2 * (2 * 4 * 10 * 8) * (3 * 3 * 5),
        ),
        # one dimension
        (
            (
                "aten::convolution",
                tensor(2, 3, 10),
                tensor(4, 3, 3),
                None,
                1,
                0,
                1,
                False,
                0,
                1,
            ),
            2 * (2 * 4 * 8) * (3 * 3),
        ),
        # scores 5 x 7 over 8, output over 16
        (("aten::_scaled_dot_product_flash_attention", *HEADS, 0.0, False), 2 * 8 * 35 * (8 + 16)),
        # a causal mask of 5 x 7 leaves 1 + 2 + 3 + 4 + 5 pairs
        (("aten::_scaled_dot_product_flash_attention", *HEADS, 0.0, True), 2 * 8 * 15 * (8 + 16)),
        # grouped queries: 4 heads share the keys of 2
        (
            (
                "aten::_scaled_dot_product_efficient_attention",
                tensor(2, 4, 5, 8),
                tensor(2, 2, 7, 8),
                tensor(2, 2, 7, 8),
                None,
                False,
                0.0,
                False,
            ),
            2 * 8 * 35 * (8 + 8),
        ),
        # heads behind the length, mask at the lower right: 3 + 4 + 5 + 6 + 7 pairs
        (
            (
                "flash_attn::_flash_attn_forward",
                tensor(2, 5, 4, 8),
                tensor(2, 7, 4, 8),
                tensor(2, 7, 4, 8),
                0.0,
                1.0,
                True,
            ),
            2 * 8 * 25 * (8 + 8),
        ),
        # scores again, and the gradients of scores, value, query and key
        (
            (
                "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                tensor(2, 4, 5, 16),
                *HEADS,
                tensor(2, 4, 5, 16),
                tensor(2, 4, 5),
                0.0,
                False,
            ),
            2 * 8 * 35 * (8 + 16 + 16 + 8 + 8),
        ),
        # elementwise: one for each element of the result
        (("aten::add", tensor(4, 1, 3), tensor(5, 1), 1), 4 * 5 * 3),
        (("aten::relu_", tensor(4, 3)), 12),
        (("aten::copy_", tensor(4, 3), tensor(4, 3), False), 0),
        (("aten::sum", tensor(4, 3), [1]), 12),
        (("aten::_softmax", tensor(4, 3), -1, False), 5 * 12),
        (("aten::native_layer_norm", tensor(4, 3), [3], tensor(3), tensor(3), 1e-5), 8 * 12),
        (("aten::embedding", tensor(100, 8), tensor(2, 5, dtype="long int")), 0),
        (("aten::_foreach_add_", [tensor(4), tensor(6)], [tensor(4), tensor(6)]), 10),
        (("triton_poi_fused_add_mul_relu_0", tensor(4, 3), tensor(4, 3), 12), 3 * 12),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_formula_counts_what_was_counted_by_hand(arguments, counted):
    assert flops(*arguments) == counted


@pytest.mark.parametrize(
    ("mask", "parts"), [("[True, True, True]", 2), ("[False, True, False]", 1)]
)
def test_the_backward_of_a_convolution_takes_a_forward_for_each_gradient(mask, parts):
    once = (X, WEIGHT, None, [1], [0], [1], False, [0], 2)
    forward = flops("aten::convolution", *once)
    grad = tensor(2, 4, 8, 4)
    settings = ([4], [1], [0], [1], False, [0], 2, mask)
    assert flops("aten::convolution_backward", grad, X, WEIGHT, *settings) == parts * forward


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        (("aten::mm", tensor(3, 5), tensor(5, 7)), 4 * (3 * 5 + 5 * 7 + 3 * 7)),
        # a bias that is stored once
        (
            ("aten::addmm", tensor(3, 7, strides=(0, 1)), tensor(3, 5), tensor(5, 7)),
            4 * (7 + 3 * 5 + 5 * 7 + 3 * 7),
        ),
        (("aten::add_", tensor(4, 3), tensor(3)), 4 * (12 + 3 + 12)),
        (("aten::copy_", tensor(4, 3), tensor(4, 3, dtype="c10::Half")), 4 * 12 + 2 * 12),
        (("aten::fill_", tensor(4, 3), 0), 4 * 12),
        (
            ("aten::embedding", tensor(100, 8), tensor(2, 5, dtype="long int")),
            10 * 8 + 2 * 10 * 8 * 4,
        ),
        (
            ("aten::index_select", tensor(9, 8), 0, tensor(4, dtype="long int")),
            4 * 8 + 2 * 4 * 8 * 4,
        ),
        (("aten::_softmax", tensor(4, 3, dtype="c10::BFloat16"), -1, False), 2 * 2 * 12),
        (("triton_per_fused_sum_1", tensor(4, 3), tensor(4)), 4 * (12 + 4)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_must_be_moved_is_each_input_and_output_once(arguments, counted):
    assert work_of(call(*arguments)).n_bytes == counted


BF16, FP32, BOOL, INT64 = "c10::BFloat16", "float", "bool", "long int"


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        # The number of `torch.float32` is 6, that of `torch.bfloat16` is 15.
        (("aten::_to_copy", tensor(6, dtype=BF16), 6), 6 * (2 + 4)),
        (("aten::_to_copy", tensor(6, dtype=FP32), 15), 6 * (4 + 2)),
        (("aten::_to_copy", tensor(6, dtype=FP32), None), 6 * (4 + 4)),
        (("aten::eq", tensor(6), tensor(6)), 6 * (4 + 4 + 1)),
        (("aten::gt", tensor(6, dtype=INT64), 0), 6 * (8 + 1)),
        (("aten::eq_", tensor(6), tensor(6)), 6 * (4 + 4 + 4)),
        (("aten::where", tensor(6, dtype=BOOL), tensor(6), tensor(6)), 6 * (1 + 4 + 4 + 4)),
        (("aten::add", tensor(6, dtype=BF16), tensor(6)), 6 * (2 + 4 + 4)),
        (("aten::add_", tensor(6, dtype=BF16), tensor(6)), 6 * (2 + 4 + 2)),
        (("aten::mul", tensor(6, dtype=BF16), tensor(dtype="double")), 6 * 2 + 8 + 6 * 2),
        (("aten::mul", tensor(6, dtype=INT64), 0.5), 6 * (8 + 4)),
        (("aten::div", tensor(6, dtype=INT64), 2), 6 * (8 + 4)),
        (("aten::native_dropout", tensor(6, dtype=BF16), 0.1, True), 6 * (2 + 2 + 1)),
        (("aten::masked_fill", tensor(6), tensor(6, dtype=BOOL), 0), 6 * (4 + 1 + 4)),
        (("aten::cat", [tensor(6, dtype=BF16), tensor(6)], 0), 6 * (2 + 4) + 12 * 4),
        (("aten::_softmax", tensor(6, dtype=BF16), -1, True), 6 * (2 + 4)),
        (("aten::_softmax_backward_data", tensor(6), tensor(6), -1, 15), 6 * (4 + 4 + 2)),
        (("aten::cumsum", tensor(6, dtype=BOOL), 0, None), 6 * (1 + 8)),
        (("aten::sum", tensor(6, 2, dtype=BF16), [1], False, 6), 12 * 2 + 6 * 4),
        (("aten::max", tensor(6, 2), 1, False), 12 * 4 + 6 * (4 + 8)),
        (("aten::_foreach_copy_", [tensor(6)], [tensor(6, dtype=BF16)]), 6 * (4 + 2)),
        (("aten::add", tensor(6, dtype="new"), tensor(6)), None),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_input_and_output_counts_in_its_own_type(arguments, counted):
    assert work_of(call(*arguments)).n_bytes == counted


@pytest.mark.parametrize(
    "arguments",
    [
        ("aten::mm", tensor(3, 5), tensor(6, 7)),
        ("aten::mm",),
        ("aten::convolution", X, WEIGHT, None, None, None, None, None, None, None),
        ("aten::convolution", X, WEIGHT, None, [1, 1, 1], [0], [1], False, [0], 1),
        ("aten::_scaled_dot_product_flash_attention", *HEADS, 0.0, None),
        (
            "aten::_flash_attention_forward",
            *[tensor(1, 9, 4, 8)] * 3,
            tensor(3, dtype="int"),
            tensor(3, dtype="int"),
            5,
            5,
            0.0,
            False,
        ),
        ("aten::add", tensor(4), tensor(3)),
        ("aten::nonzero", tensor(4)),
        ("my::kernel", tensor(4)),
    ],
    ids=lambda value: value[0],
)
def test_what_the_inputs_do_not_tell_is_not_made_up(arguments):
    assert flops(*arguments) is None


def test_a_type_that_is_not_known_has_flops_and_no_bytes():
    work = work_of(call("aten::mm", tensor(3, 5, dtype="new"), tensor(5, 7, dtype="new")))
    assert (work.flops, work.n_bytes) == (210, None)
