"""What the operators of inference servers compute and move, counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.flops import Call, Lengths, Tensor, bounds_of, work_of
from longpole.flops.served.lengths import lengths_in, ragged_pairs

BF16, FP8, INT8, BYTE = "c10::BFloat16", "c10::Float8_e4m3fn", "signed char", "unsigned char"


def t(*shape, dtype=BF16):
    return Tensor(shape, None, dtype)


def call(name, *arguments):
    groups = tuple((it,) if isinstance(it, Tensor) else () for it in arguments)
    return Call(
        name,
        groups,
        tuple("" if it is None or groups[i] else str(it) for i, it in enumerate(arguments)),
    )


SCALE = t(1, dtype="float")
RAGGED = (t(6, 8, 64), t(6, 2, 64), t(6, 2, 64))
STARTS = t(2, dtype="int")
FLASH = (0.0, 0.1, True, -1, -1)

PRODUCTS = [
    # m n k of each
    (
        call(
            "_C::cutlass_scaled_mm", t(3, 7), t(3, 5, dtype=FP8), t(5, 7, dtype=FP8), SCALE, SCALE
        ),
        (3, 7, 5),
        FP8,
    ),
    (
        call(
            "_C::cutlass_scaled_fp4_mm",
            t(3, 7),
            t(3, 8, dtype=BYTE),
            t(7, 8, dtype=BYTE),
            SCALE,
            SCALE,
        ),
        (3, 7, 16),
        "fp4",
    ),
    (
        call(
            "_C::gptq_marlin_gemm",
            t(3, 64),
            None,
            t(4, 128, dtype="int"),
            None,
            t(2, 7),
            None,
            8,
            3,
            7,
            64,
        ),
        (3, 7, 64),
        BF16,
    ),
    (
        call("_C::gptq_gemm", t(3, 64), t(8, 7, dtype="int"), t(1, 1, dtype="int"), t(1, 7)),
        (3, 7, 64),
        BF16,
    ),
    (
        call("_C::awq_gemm", t(3, 64), t(64, 2, dtype="int"), t(1, 16), t(1, 2, dtype="int")),
        (3, 16, 64),
        BF16,
    ),
    (call("vllm::rocm_unquantized_gemm", t(3, 5), t(7, 5), t(7)), (3, 7, 5), BF16),
    (call("_rocm_C::wvSplitK", t(7, 5), t(3, 5), None, 304), (3, 7, 5), BF16),
    (call("_rocm_C::LLMM1", t(7, 5), t(1, 5), 4), (1, 7, 5), BF16),
    (
        call(
            "_rocm_C::wvSplitKQ",
            *(t(7, 16, dtype=FP8), t(3, 16, dtype=FP8), None, t(3, 7), SCALE, SCALE, 304),
        ),
        (3, 7, 16),
        FP8,
    ),
    (
        call("vllm::rocm_aiter_gemm_w8a8", t(3, 5, dtype=INT8), t(7, 5, dtype=INT8), SCALE, SCALE),
        (3, 7, 5),
        INT8,
    ),
    (
        call("sgl_kernel::fp8_scaled_mm", t(3, 5, dtype=FP8), t(5, 7, dtype=FP8), SCALE, SCALE, 15),
        (3, 7, 5),
        FP8,
    ),
    (
        call(
            "sgl_kernel::int8_scaled_mm", t(3, 5, dtype=INT8), t(5, 7, dtype=INT8), SCALE, SCALE, 15
        ),
        (3, 7, 5),
        INT8,
    ),
    (
        call("sgl_kernel::bmm_fp8", t(2, 3, 5, dtype=FP8), t(2, 5, 7, dtype=FP8), t(2, 3, 7)),
        (6, 7, 5),
        FP8,
    ),
    (
        call("sgl_kernel::dsv3_router_gemm", t(3, 7, dtype="float"), t(3, 5), t(7, 5)),
        (3, 7, 5),
        BF16,
    ),
    (
        call(
            "sglang::deep_gemm_fp8_fp8_bf16_nt",
            t(3, 5, dtype=FP8),
            SCALE,
            t(7, 5, dtype=FP8),
            SCALE,
            t(3, 7),
        ),
        (3, 7, 5),
        FP8,
    ),
    (call("trtllm::cublas_mm", t(3, 5), t(5, 7)), (3, 7, 5), BF16),
    (
        call("trtllm::fp8_block_scaling_bmm", t(2, 3, 5, dtype=FP8), t(2, 7, 5, dtype=FP8)),
        (2 * 3, 7, 5),
        FP8,
    ),
    (
        call("trtllm::nvfp4_gemm", t(3, 8, dtype=BYTE), t(7, 8, dtype=BYTE), SCALE, SCALE),
        (3, 7, 16),
        "fp4",
    ),
    (call("aiter::gemm_a16w16", t(3, 5), t(7, 5), None, 15), (3, 7, 5), BF16),
]


@pytest.mark.parametrize(
    ("product", "sizes", "dtype"), PRODUCTS, ids=lambda it: getattr(it, "name", "")
)
def test_a_product_of_a_server_costs_two_m_n_k(product, sizes, dtype):
    m, n, k = sizes
    work = work_of(product)
    assert (work.flops, work.dtype, work.is_matrix) == (2 * m * n * k, dtype, True)


@pytest.mark.parametrize(
    ("attention", "pairs", "width"),
    [
        # one causal sequence of 6: 6 * 7 / 2 pairs of 8 heads
        (
            call("flash_attn::_flash_attn_varlen_forward", *RAGGED, STARTS, STARTS, 6, 6, *FLASH),
            21,
            64,
        ),
        # not causal
        (
            call(
                "xformers_flash::flash_fwd", *RAGGED, STARTS, STARTS, None, 6, 6, 0.0, 0.1, "False"
            ),
            36,
            64,
        ),
        # two sequences as long as the longest, 3
        (
            call(
                "flash_attn::_flash_attn_varlen_forward",
                *RAGGED,
                t(3, dtype="int"),
                t(3, dtype="int"),
                3,
                3,
                *FLASH,
            ),
            12,
            64,
        ),
        # three queries and five keys of one request: 5 + 4 + 3
        (
            call(
                "aiter::mha_varlen_fwd",
                t(3, 8, 64),
                t(5, 2, 64),
                t(5, 2, 64),
                STARTS,
                STARTS,
                3,
                5,
                0,
                0.0,
                0.1,
                0.0,
                "False",
                "True",
                -1,
            ),
            12,
            64,
        ),
    ],
)
def test_lengths_that_the_inputs_determine_give_the_work(attention, pairs, width):
    assert work_of(attention).flops == 2 * 2 * pairs * 8 * width


@pytest.mark.parametrize(
    "version",
    [
        # xFormers 0.0.20 has neither used lengths nor a window: max_k at 6, causal at 9
        call("xformers_flash::flash_fwd", *RAGGED, STARTS, STARTS, 6, 6, 0.0, 0.1, "True", "False"),
        # aiter of 2025-03 has no shortest length and no cap: the window is at 12
        call(
            "aiter::mha_varlen_fwd",
            *RAGGED,
            STARTS,
            STARTS,
            6,
            6,
            0.0,
            0.1,
            "False",
            "True",
            -1,
            -1,
        ),
        # vLLM of 2024 has no padding of keys: the flag is at 14
        call(
            "_vllm_fa2_C::varlen_fwd",
            *(*RAGGED, None, STARTS, STARTS, None, None, None, 6, 6),
            *(0.0, 0.1, False, True, -1),
        ),
        # a causal mask from the start of keys that are longer than the queries
        call(
            "xformers::efficient_attention_forward_cutlass",
            *(t(1, 3, 8, 64), t(1, 5, 8, 64), t(1, 5, 8, 64), None, STARTS, STARTS, 3, 5, 0.0, 1),
        ),
    ],
    ids=lambda it: it.name,
)
def test_other_versions_of_attention_stay_unknown(version):
    assert (work_of(version), bounds_of(version)) == (None, None)


@pytest.mark.parametrize("extra", [(), (None,)])
def test_flash_attention_3_is_known_with_and_without_a_scale_of_its_result(extra):
    query = (t(6, 8, 64), t(6, 2, 64), t(6, 2, 64), None, None, None, None, STARTS, STARTS)
    lengths = (None, None, None, 6, 6, *[None] * 9)
    work = work_of(call("_vllm_fa3_C::fwd", *query, *lengths, *extra, 0.1, "True", -1, 0, 0.0))
    assert work.flops == 2 * 2 * 21 * 8 * 64


@pytest.mark.parametrize(
    ("product", "written"),
    [
        (
            call(
                "sgl_kernel::fp8_scaled_mm",
                *(t(3, 5, dtype=FP8), t(5, 7, dtype=FP8)),
                None,
                None,
                15,
            ),
            2,
        ),
        (call("trtllm::fp8_block_scaling_gemm", t(3, 5, dtype=FP8), t(7, 5, dtype=FP8)), 2),
        (call("aiter::gemm_a8w8", t(3, 5, dtype=FP8), t(7, 5, dtype=FP8)), None),
        (
            call(
                "aiter::gemm_a8w8_ck", t(3, 5, dtype=FP8), t(7, 5, dtype=FP8), None, None, t(3, 7)
            ),
            2,
        ),
    ],
)
def test_a_result_of_unknown_type_leaves_the_bytes_unknown(product, written):
    expected = None if written is None else 3 * 5 + 7 * 5 + 3 * 7 * written
    assert work_of(product).n_bytes == expected


@pytest.mark.parametrize("biases", [[], [None]], ids=["older", "newer"])
def test_experts_of_tensorrt_llm_are_bounded_with_and_without_biases(biases):
    weights = [t(4, 6, 16), *biases, t(4, 16, 3), *biases]
    tokens = [t(5, 16), t(5, 2, dtype="int"), t(5, 2, dtype="float")]
    bounds = bounds_of(call("trtllm::fused_moe", *tokens, *weights))
    assert bounds.flops == (0, 2 * 5 * 2 * 16 * (6 + 3))


def test_a_backward_pass_has_five_products():
    tensors = (t(6, 8, 64), *RAGGED, None, None, None, None, None)
    values = (STARTS, STARTS, 6, 6, 0.0, 0.1, True, -1)
    work = work_of(call("flash_attn::_flash_attn_varlen_backward", *tensors, *values))
    assert work.flops == 5 * 2 * 21 * 8 * 64


def test_lengths_that_are_not_recorded_bound_the_work():
    pages = (t(4, 8, 64), t(100, 16, 2, 64), t(100, 16, 2, 64))
    paged = call(
        "_C::paged_attention_v1",
        t(4, 8, 64),
        *pages,
        2,
        0.1,
        t(4, 3, dtype="int"),
        t(4, dtype="int"),
        16,
        40,
    )
    assert work_of(paged) is None
    bounds = bounds_of(paged)
    assert bounds.flops == (4 * 4 * 8 * 64, 4 * 40 * 4 * 8 * 64)
    query, key = 2 * 4 * 8 * 64 * 2, 2 * 2 * 64 * 2
    assert bounds.n_bytes == (query + 4 * key, query + 160 * key)


@pytest.mark.parametrize("starts", [(), (t(5, dtype="int"),)])
def test_the_longest_sequence_bounds_the_attention_of_rocm(starts):
    """`query_start_loc` was added before the page size."""
    partial = (t(4, 8, 1), t(4, 8, 1), t(4, 8, 1, 64))
    cache = (t(100, 2, 8, 16, 8), t(100, 2, 64, 16))
    lengths = (t(4, 3, dtype="int"), t(4, dtype="int"), *starts)
    paged = call(
        "_rocm_C::paged_attention",
        *(t(4, 8, 64), *partial, t(4, 8, 64), *cache, 2, 0.1, *lengths, 16, 40),
    )
    assert bounds_of(paged).flops == (4 * 4 * 8 * 64, 4 * 40 * 4 * 8 * 64)


def test_a_latent_cache_is_read_once_for_all_heads():
    query, rotary, cache = t(4, 16, 512), t(4, 16, 64), t(100, 64, 576)
    table = t(4, 3, dtype="int")
    bounds = bounds_of(
        call("sgl_kernel::cutlass_mla_decode", query, query, rotary, cache, t(4), table)
    )
    assert bounds.flops == (4 * 2 * 16 * (576 + 512), 4 * 3 * 64 * 2 * 16 * (576 + 512))
    other = 4 * 16 * (576 + 512) * 2
    assert bounds.n_bytes == (other + 4 * 576 * 2, other + 4 * 3 * 64 * 576 * 2)


def test_experts_read_their_weights_for_the_tokens_routed_to_them():
    tokens, first, second = t(4, 32), t(16, 24, 32), t(16, 32, 12)
    chosen = t(4, 2, dtype="long int")
    fused = call("vllm::inplace_fused_experts", tokens, first, second, t(4, 2), chosen)
    assert work_of(fused).flops == 4 * 2 * 2 * (24 * 32 + 32 * 12)
    assert work_of(fused).n_bytes is None
    of_expert = (24 * 32 + 32 * 12) * 2
    assert bounds_of(fused).n_bytes == (
        2 * 4 * 32 * 2 + 2 * of_expert,
        2 * 4 * 32 * 2 + 8 * of_expert,
    )


def test_experts_on_other_devices_leave_only_an_upper_bound():
    arguments = (t(4, 32), t(16, 24, 32), t(16, 32, 12), t(4, 2), t(4, 2, dtype="long int"))
    fused = call("vllm::inplace_fused_experts", *arguments, "silu", t(64, dtype="int"))
    assert work_of(fused) is None
    assert bounds_of(fused).flops == (0, 4 * 2 * 2 * (24 * 32 + 32 * 12))


@pytest.mark.parametrize(
    ("moving", "n_bytes"),
    [
        (call("_C::silu_and_mul", t(4, 8), t(4, 16)), 2 * (4 * 8 + 4 * 16)),
        (call("sgl_kernel::fused_add_rmsnorm", t(4, 8), t(4, 8), t(8), 1e-6), 2 * (4 * 32 + 8)),
        (call("aiter::rmsnorm", t(4, 8), t(4, 8), t(8), 1e-6), 2 * (2 * 32 + 8)),
        (call("_C::static_scaled_fp8_quant", t(4, 8, dtype=FP8), t(4, 8), SCALE), 32 + 64 + 4),
        # half of each head of 16 is rotated: 2 heads of the query, one of the key
        (
            call(
                "_C::rotary_embedding",
                t(4, dtype="long int"),
                t(4, 32),
                t(4, 16),
                16,
                t(99, 8),
                "True",
            ),
            2 * 2 * 4 * 3 * 8 + 4 * 8 + 4 * 8 * 2,
        ),
        # the third row is padding
        (
            call(
                "_C_cache_ops::reshape_and_cache_flash",
                t(3, 2, 8),
                t(3, 2, 8),
                t(9, 16, 2, 8, dtype=FP8),
                None,
                t(2, dtype="long int"),
            ),
            2 * 2 * 16 * (2 + 1) + 2 * 8,
        ),
    ],
)
def test_each_tensor_is_read_and_written_once(moving, n_bytes):
    assert work_of(moving).n_bytes == n_bytes


@pytest.mark.parametrize(
    "unexpected",
    [
        call("_C::silu_and_mul", t(4, 8), t(4, 8)),
        call("_C::cutlass_scaled_mm", t(3, 7), t(3, 5), t(6, 7)),
        call("_C::rms_norm", t(4, 8)),
        call(
            "vllm::inplace_fused_experts", t(4, 32), t(16, 24, 31), t(16, 32, 12), t(4, 2), t(4, 2)
        ),
        call(
            "_C::gptq_marlin_gemm", t(3, 64), None, t(4, 128, dtype="int"), None, t(2, 7), 4, 7, 64
        ),
        call("unknown::silu_and_mul", t(4, 8), t(4, 16)),
    ],
)
def test_other_shapes_and_names_stay_unknown(unexpected):
    assert work_of(unexpected) is None
    assert bounds_of(unexpected) is None


requests = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), max_size=8)


def sums(lengths):
    squares, products = sum(q * q for q, _ in lengths), sum(q * k for q, k in lengths)
    queries, keys = sum(q for q, _ in lengths), sum(k for _, k in lengths)
    return f"{len(lengths)}(sq{queries}sk{keys}sqsq{squares}sqsk{products})"


@given(requests, requests)
def test_sums_in_an_annotation_give_the_pairs_that_a_causal_mask_keeps(prefill, cached):
    prefill = [(new, new + before) for new, before in prefill]
    decode = [(1, 1 + before) for _, before in cached]
    both = [*prefill, *decode]
    if not both:
        return
    name = f"execute_{len(both)}_context_{sums(prefill)}_generation_{sums(decode)}"
    pairs = sum(k - q + 1 + row for q, k in both for row in range(q))
    keys = sum(k for _, k in both)
    assert lengths_in(name, sum(q for q, _ in both)) == Lengths(pairs, keys)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 5))
def test_lengths_lie_within_the_bounds_of_their_sums(lengths, beyond):
    longest = max(lengths) + beyond
    least, most = ragged_pairs(sum(lengths), len(lengths), longest, lambda n: n * (n + 1) // 2)
    assert least <= sum(n * (n + 1) // 2 for n in lengths) <= most
