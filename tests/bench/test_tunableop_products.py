"""Matrix products of torch are named as TunableOp names them."""

import json

import pytest

from longpole.bench import tunableop
from longpole.bench.tunableop.coverage import Tuned
from longpole.bench.tunableop.inputs import Argument, recorded
from longpole.bench.tunableop.matmul import gemms_of

HEADER = b"Validator,PT_VERSION,2.9.1\n"

# As torch 2.15 recorded them, in a trace.
KINETO_SCALED = [
    (
        '["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float", "{bias}", "", "Scalar",'
        ' "Scalar"]'
    ),
    '["", "", "", "", "", "", "{out}", "{fast}"]',
]


def scaled(left, right, scales, *, bias="", out="15", fast="False"):
    """Return the arguments of a scaled product of 8-bit floats."""
    shapes = [left, right, *scales, [48] if bias else [], [], [], []]
    strides = [[left[1], 1], [1, right[0]], *([1] * len(scale) for scale in scales), [], [], [], []]
    types, values = KINETO_SCALED
    return recorded(
        json.dumps(shapes),
        json.dumps(strides),
        types.replace("{bias}", bias),
        values.replace("{out}", out).replace("{fast}", fast),
    )


@pytest.mark.parametrize(
    ("arguments", "rocm", "cuda"),
    [
        (
            scaled([12288, 2048], [2048, 64], [[12288, 1], [1, 64]]),
            # A real row.
            (
                "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,"
                "tn_64_12288_2048_ld_2048_2048_64_rw_1_bias_None"
            ),
            (
                "_a_Float8_e4m3fn_b_Float8_e4m3fn_c_BFloat16_as_Float_bs_Float"
                "_ast_1_bst_1_dscale_0_fast_0_bias_None"
            ),
        ),
        (
            scaled([32, 64], [64, 48], [[], []], bias="c10::BFloat16", fast="True"),
            (
                "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,"
                "tn_48_32_64_ld_64_64_48_rw_0_bias_BFloat16"
            ),
            (
                "_a_Float8_e4m3fn_b_Float8_e4m3fn_c_BFloat16_as_Float_bs_Float"
                "_ast_0_bst_0_dscale_0_fast_1_bias_BFloat16"
            ),
        ),
        (
            # No type was asked for: that of the first factor.
            scaled([32, 64], [64, 48], [[], []], out=""),
            (
                "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_Float8_e4m3fn_TN,"
                "tn_48_32_64_ld_64_64_48_rw_0_bias_None"
            ),
            (
                "_a_Float8_e4m3fn_b_Float8_e4m3fn_c_Float8_e4m3fn_as_Float_bs_Float"
                "_ast_0_bst_0_dscale_0_fast_0_bias_None"
            ),
        ),
        (
            # Blocks of 1x128 on the left and 128x128 on the right, which BLAS counts first.
            scaled([64, 256], [256, 384], [[64, 2], [2, 3]]),
            (
                "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,"
                "tn_384_64_256_ld_256_256_384_rw_0_bias_None"
            ),
            (
                "_a_Float8_e4m3fn_b_Float8_e4m3fn_c_BFloat16_as_Float_bs_Float"
                "_ast_5_bst_4_dscale_0_fast_0_bias_None"
            ),
        ),
    ],
)
def test_a_scaled_product_is_named_as_torch_names_it(arguments, rocm, cuda):
    found = gemms_of("aten::_scaled_mm", arguments)
    assert ",".join(found[0].key) == rocm
    assert found[1].tail == cuda
    file = tunableop.read(",".join([*found[1].key, "Default"]).encode())
    assert file.results.height == 1


def test_a_scaled_product_is_named_alike_from_an_execution_trace():
    types = (
        '["Tensor(c10::Float8_e4m3fn)", "Tensor(c10::Float8_e4m3fn)", "Tensor(float)",'
        ' "Tensor(float)", "None", "None", "Int", "Bool"]'
    )
    values = '[[4,5,0,2048,1,"cpu"], [6,7,0,3072,1,"cpu"], [8,9,0,1,4,"cpu"], [8,9,0,1,4,"cpu"],'
    shapes = "[[32, 64], [64, 48], [], [], [], [], [], []]"
    strides = "[[64, 1], [1, 64], [], [], [], [], [], []]"
    found = recorded(shapes, strides, types, values + ' "<None>", "<None>", 15, false]')
    traced = scaled([32, 64], [64, 48], [[], []])
    assert gemms_of("aten::_scaled_mm", found) == gemms_of("aten::_scaled_mm", traced)


def test_the_second_scaled_product_says_how_it_is_scaled():
    types = ["c10::Float8_e4m3fn"] * 2 + ["TensorList", *["ScalarList"] * 2] * 2
    types += ["", "Scalar", "ScalarList", "Scalar"]
    shapes = [[32, 64], [64, 48], [[32, 1]], [], [], [[1, 48]], *[[]] * 6]
    strides = [[64, 1], [1, 64], [[1, 1]], [], [], [[48, 1]], *[[]] * 6]

    def named(kind, stored):
        values = ["", "", "", kind, stored, "", kind, stored, "", "15", "[]", "False"]
        texts = (json.dumps(each) for each in (shapes, strides, types, values))
        return gemms_of("aten::_scaled_mm_v2", recorded(*texts))

    rows = scaled([32, 64], [64, 48], [[32, 1], [1, 48]])
    assert named("[1]", "[0]") == gemms_of("aten::_scaled_mm", rows)
    assert named("[3]", "[0]") == []  # microscaled
    assert named("[1]", "[1]") == []  # scales that are rearranged


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        scaled([32, 64], [64, 48], [[32, 2], [3, 48]]),
        scaled([32, 64], [64, 48], [[], []], out="45"),
        scaled([32, 64], [64, 48], [[], []])[:6],
        [each._replace(value=None) for each in scaled([32, 64], [64, 48], [[], []])],
    ],
)
def test_a_scaled_product_that_is_not_known_has_no_name(arguments):
    assert gemms_of("aten::_scaled_mm", arguments) == []


def test_a_results_file_of_cuda_names_scaled_products_as_cuda_does():
    arguments = scaled([32, 64], [64, 48], [[], []])
    names = gemms_of("aten::_scaled_mm", arguments)
    validators = b"Validator,PT_VERSION,2.15.0\nValidator,CUBLASLT_VERSION,1\n"
    assert Tuned(HEADER).look_up(names).key == names[0].key
    assert Tuned(validators).look_up(names).key == names[1].key
    row = ",".join([*names[1].key, "Default"]).encode()
    assert Tuned(validators + row).look_up(names).kind == "tuned"


def test_a_product_of_floats_may_be_tuned_as_tf32():
    x, weight = Argument((36, 128), (128, 1), "float"), Argument((128, 768), (1, 128), "float")
    names = gemms_of("aten::mm", [x, weight])
    row = b"GemmTunableOp_tf32_TN,tn_768_36_128_ld_128_128_768,Default"
    assert Tuned(row).look_up(names).kind == "tuned"


def test_a_product_into_a_tensor_that_is_stored_by_columns_has_no_name():
    left, right = Argument((8, 16), (16, 1), "float"), Argument((16, 32), (32, 1), "float")
    assert gemms_of("aten::addmm_", [Argument((8, 32), (1, 8), "float"), left, right]) == []
    [name, _] = gemms_of("aten::addmm_", [Argument((8, 32), (32, 1), "float"), left, right])
    assert name.key == ("GemmTunableOp_float_NN", "nn_32_8_16_ld_32_16_32")


@pytest.mark.parametrize(
    ("name", "tensors", "expected"),
    [
        # The real rows of a Linear layer, an attention score, and its product with the values.
        (
            "aten::mm",
            [((36, 128), (128, 1)), ((128, 768), (1, 128))],
            "GemmTunableOp_float_TN,tn_768_36_128_ld_128_128_768",
        ),
        (
            "aten::bmm",
            [((12, 1370, 64), (64, 768, 1)), ((12, 64, 1370), (64, 1, 768))],
            "GemmStridedBatchedTunableOp_float_TN,tn_1370_1370_64_B_12_ld_768_768_1370",
        ),
        (
            "aten::bmm",
            [((12, 1370, 1370), (1876900, 1370, 1)), ((12, 1370, 64), (64, 2304, 1))],
            "GemmStridedBatchedTunableOp_float_NN,nn_64_1370_1370_B_12_ld_2304_1370_64",
        ),
        (
            "aten::addmm",
            [((1000,), (1,)), ((1024, 12544), (12544, 1)), ((12544, 1000), (1, 12544))],
            "GemmAndBiasTunableOp_float_TN,tn_1000_1024_12544_ld_12544_12544_1000",
        ),
        # A gradient of a weight: the first factor is a transposed view.
        (
            "aten::mm",
            [((768, 36), (1, 768)), ((36, 128), (128, 1))],
            "GemmTunableOp_float_NT,nt_128_768_36_ld_128_768_128",
        ),
        # A slice of a wider matrix keeps the distance of its rows.
        (
            "aten::mm",
            [((8, 16), (64, 1)), ((16, 32), (32, 1))],
            "GemmTunableOp_float_NN,nn_32_8_16_ld_32_64_32",
        ),
    ],
)
def test_a_product_is_named_as_torch_names_it(name, tensors, expected):
    inputs = [Argument(shape, strides, "float") for shape, strides in tensors]
    assert ",".join(gemms_of(name, inputs)[0].key) == expected
