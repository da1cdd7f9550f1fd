"""What kernels do, by their names, in tables and sentences."""

from __future__ import annotations

import pytest

from longpole.words.kernel_names import kernel_label
from longpole.words.wording import operator_name, short_name, short_names

ATEN = "void at::native::"
VECTORIZED = f"{ATEN}vectorized_elementwise_kernel<4, at::native::"
LAMBDA = "(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        # elementwise kernels and reductions of ATen
        (f"{VECTORIZED}CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)", "add f32"),
        (f"{VECTORIZED}CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int)", "add i64"),
        (
            (
                f"{VECTORIZED}AUnaryFunctor<float, float, float, "
                "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)"
            ),
            "mul f32",
        ),
        (
            (
                f"{VECTORIZED}BUnaryFunctor<c10::Half, c10::Half, c10::Half, "
                "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)"
            ),
            "mul f16",
        ),
        (
            (
                "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_"
                "4x1x1_cga1x1x1_kernel0_0"
            ),
            "attention 64x128 (cuDNN)",
        ),
        (
            (
                f"{ATEN}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda{LAMBDA}, "
                "4, at::native::memory::LoadWithCast<1> >(int)"
            ),
            "copy to f32",
        ),
        (f"{VECTORIZED}FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int)", "fill bf16"),
        (f"{VECTORIZED}bfloat16_copy_kernel_cuda{LAMBDA}", "copy f32 to bf16"),
        (
            (
                f"{VECTORIZED}bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::"
                "{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)"
            ),
            "copy bf16 to f32",
        ),
        (f"{VECTORIZED}sigmoid_kernel_cuda{LAMBDA}", "sigmoid f32"),
        # The type of an index is not that of the elements.
        (
            (
                f"{ATEN}elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
                "at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&)::{lambda(int)#1}>"
                "(int)"
            ),
            "add f32",
        ),
        (
            (
                f"{ATEN}reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, "
                "at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(int)"
            ),
            "argmax bf16",
        ),
        (
            (
                f"{ATEN}(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, "
                "at::native::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>>(int)"
            ),
            "add of tensor lists f32",
        ),
        # other functions
        (
            f"{ATEN}(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16>(int)",
            "softmax bf16",
        ),
        (
            "void (anonymous namespace)::softmax_warp_backward<float, float, float, 10, true>(int)",
            "log_softmax backward f32",
        ),
        (f"{ATEN}(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int>(int)", "cat f32"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>(float const*)", "nchw_to_nhwc f32"),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float>(float)", "batch_norm backward f32"),
        ("void cub::DeviceScanKernel<cub::Policy<128, int>, int*>(int*)", "device_scan"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bEEvPT0_", "add_rmsnorm_quant"),
        (
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_9PipelineEEEEEvDpT_",
            "rmsnorm2d_fwd (ck_tile)",
        ),
        # matrix products, convolutions, attention
        ("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT", "gemm 128x64 bf16 (nvjet)"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_bias_NTN", "gemm + bias 128x256 f16 (nvjet)"),
        ("nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT", "gemm 128x128 (nvjet)"),
        (
            "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(P)",
            "gemm 256x128 bf16 align1 (CUTLASS)",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_tn_align8>(P)",
            "gemm 256x128 bf16 (CUTLASS)",
        ),
        ("volta_sgemm_64x64_nt", "gemm 64x64 f32 (cuBLAS)"),
        (
            "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1",
            "gemm 64x32 bf16 (Tensile)",
        ),
        (
            "void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)",
            "gemm split-K sum f32 (cuBLAS)",
        ),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3__5x_cublas",
            "gemm 128x128 f32 (xmma)",
        ),
        ("volta_scudnn_128x64_relu_medium_nn_v1", "convolution 128x64 f32 (cuDNN)"),
        (
            "void cudnn::cnn::wgrad_alg0_engine<float, 128>(int)",
            "convolution weight gradient f32 (cuDNN)",
        ),
        (
            (
                "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, "
                "cutlass::bfloat16_t>>(P)"
            ),
            "attention bf16 (flash)",
        ),
        # compilers
        ("triton_poi_fused_add_mul_7", "triton_poi_fused_add_mul"),
        ("triton_per_fused_native_layer_norm_3", "triton_per_fused_native_layer_norm"),
    ],
)
def test_a_kernel_is_called_by_what_it_does(name, label):
    assert kernel_label(name) == label
    assert short_name(name) == label


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "train.py(9): <lambda>",
        "<built-in method mm of type object at 0x7f>",
        "Memcpy HtoD (Pageable -> Device)",
        "cudaLaunchKernel",
        "ProfilerStep#3",
        "loop_multiply_fusion_4",
        "_layer_norm_fwd_kernel",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "solve",
        "",
    ],
)
def test_names_that_say_it_themselves_stay(name):
    assert kernel_label(name) is None


def test_kernels_that_do_the_same_are_told_apart():
    names = [f"nvjet_tst_128x64_64x8_{rest}" for rest in ("1x2_h_bz_NTT", "2x1_v_bz_NTT")]
    assert short_names([*names, "add"], 44) == [
        "gemm 128x64 bf16 (nvjet) …1x2_h_bz_NTT",
        "gemm 128x64 bf16 (nvjet) …2x1_v_bz_NTT",
        "add",
    ]
    assert short_names(names, 26) == ["gemm 128x64 bf16 (nvje… #1", "gemm 128x64 bf16 (nvje… #2"]
    assert short_names([names[0]] * 2, 40) == ["gemm 128x64 bf16 (nvjet)"] * 2


def test_a_hostile_name_takes_no_longer():
    assert kernel_label("void gemm_" * 200_000 + "<(") is not None


def test_sizes_that_are_no_list_are_left_out():
    assert operator_name("aten::mm", "broken") == operator_name("aten::mm", "3") == "aten::mm"
    assert operator_name(None, "[[2]]") == "(no name) [2]"
