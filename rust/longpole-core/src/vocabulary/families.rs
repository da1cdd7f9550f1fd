//! Families of kernels: what a kernel computes, derived from its name.
//!
//! Libraries put the operation into the name of the function (`softmax_warp_forward`), and
//! everything else into its template arguments and parameters: types, tiles, functors. Therefore
//! only the function name without its arguments is used. The names of a few wrappers contain no
//! operation (`cutlass::Kernel2<...>`, `ck_tile::kentry<...>`); for these, the arguments are used.
//!
//! Names are compared as lower-case words, so that `CatArrayBatchedCopy` contains the word `cat`
//! and `allocate` does not.
//!
//! Limits: user-defined names that match none of the words are [`OTHER`].

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::WorkClass;

/// The families by the words in a name. The first matching row is used, because a fused attention
/// kernel also multiplies matrices. `<a|b>` stands for whole words.
const FAMILIES: &[(&str, &str)] = &[
    // Inductor fuses operators: the name lists operators that are no longer separate.
    ("triton", "^triton_(?:poi|red|per|for|spl|unk|fused|_)"),
    ("elementwise", "^(?:loop|wrapped)_(?:[a-z_]+_)?(?:select|clamp)(?:_fusion|$)"),
    (
        "index, sort and concat",
        "(?:reshape|concat)_and_cache|store_kv_?cache|kv_indices|top_?k|align_block_size\
         |finalize_matmul",
    ),
    ("elementwise", "rotary|<rope>"),
    (
        "attention",
        "attention|attn|fmha|sdpa|flash_?(?:fwd|bwd|fprop|bprop|decod|mla)|(?:prefill|decode)_with_\
         |do_o_dot|dot_do_o|convert_dq|<mla>|^_fwd_(?:grouped_)?kernel_stage\
         |^bwd_(?:kernel_(?:fuse|dk_dv|dq)|preprocess)",
    ),
    (
        "convolution",
        "<conv|convolve|convolution>|conv(?:olution|olve)?_?[1-3]d|(?:im|vol)(?:[23]d)?_?2_?(?:d_?)?col\
         |col_?2_?(?:im|vol)|[dw]grad|fprop|winograd|implicit_?(?:gemm|convolve)\
         |igemm_(?:fwd|bwd|wrw)|[a-z0-9]cudnn_(?:\\w+_)?[0-9]+x[0-9]+\
         |cask_cudnn\\w*::compute_b?_?offsets",
    ),
    (
        "gemm",
        "(?:^b?|[^b]|[^f]b)gemm|gemv|nvjet|cijk_|mat_?mul|xmma|wgmma|mfma_moe|fused_moe|tensorop|split_?k_?reduce\
         |wv_?split_?k|<mm|bmm|addmm|baddbmm|marlin|machete>|epilogue::impl::global_kernel",
    ),
    ("fft", "fft"),
    ("softmax", "soft_?max"),
    ("loss", "nll|criterion|cross_entropy|(?:ctc|mse|l1)_loss|<loss>"),
    (
        "norm",
        "(?:layer|batch|group|instance|rms|weight|l2|lp|qk)_?norm|<norm|bn|ln>|normaliz\
         |gamma_beta|moments|welford|cu_compute_grad_input",
    ),
    ("embedding", "embedding|compute_grad_weight|krn_partial|partial_segments"),
    (
        "optimizer",
        "multi_tensor|optimizer|fused_adam\
         |<adamw?|adagrad|adafactor|sgd|lamb|lion|muon|rmsprop>",
    ),
    (
        "dropout and random",
        "dropout|philox|random|uniform|bernoulli|multinomial|curand|threefry|distribution\
         |<rng|normal>",
    ),
    (
        "pooling and resampling",
        "(?:max|avg|average|adaptive|roi)_?pool|pooling|upsample|interpolat|grid_sample",
    ),
    (
        "index, sort and concat",
        "index|indices|sort|gather|scatter|concat|scan|unique|nonzero|partition|slice|histogram\
         |compact|cumsum|cumprod|sampling|token_ids|routing|bitmatrix|block_merge\
         |<cat|select|split|radix>",
    ),
    ("reduce", "reduc|<sum|mean|argmax|argmin|amax|amin|max|min|prod|dot>"),
    ("layout", "transpose|permut|nchw|nhwc|layout|trans_?data|reorder"),
    ("copy and fill", "<copy|copies|memcpy|memset|fill|zero>|(?:copy|fill|repeat)_?buffer"),
    ("triton", "triton"),
    (
        "elementwise",
        "elementwise|pointwise|activation|act_and_mul|quantiz|scale_packed_tensor|op_tensor\
         |tensor_op|^wrapped_|^loop_\\w*fusion\
         |<add|sub|mul|muls|div|scal|cast|convert|clamp|clip|relu|gelu|silu|swiglu|sigmoid|tanh\
         |exp|log|sqrt|pow|sin|cos|abs|neg|where|mask|compare|threshold|bias|transform|quant\
         |dequant|broadcast|arange>",
    ),
];

/// The family of kernels that exchange data with other devices.
const COMMUNICATION: &str = "communication";

/// The family of all other kernels.
pub const OTHER: &str = "other";

/// Returns the family of a kernel, derived from its name.
pub fn kernel_family(name: &str) -> &'static str {
    static PATTERNS: LazyLock<Option<RegexSet>> =
        LazyLock::new(|| RegexSet::new(FAMILIES.iter().map(|(_, words)| pattern(words))).ok());
    static WRAPPER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("(?:^|::)(?:kernel[0-9]?|kentry|device_kernel|trampoline_kernel)$").ok()
    });
    if WorkClass::of_kernel(name) == WorkClass::Communication {
        return COMMUNICATION;
    }
    let family = |words: &str| {
        let first = PATTERNS.as_ref().and_then(|set| set.matches(words).iter().next());
        first.map(|row| FAMILIES[row].0)
    };
    let function = words(&function(name));
    let is_wrapper = WRAPPER.as_ref().is_some_and(|wrapper| wrapper.is_match(&function));
    let of_arguments = || is_wrapper.then(|| family(&words(name))).flatten();
    of_arguments().or_else(|| family(&function)).unwrap_or(OTHER)
}

/// Whether a word is the name of a family.
pub fn is_kernel_family(word: &str) -> bool {
    word == OTHER || FAMILIES.iter().any(|(family, _)| *family == word)
}

/// Returns the regular expression of a row: `<` begins and `>` ends a group of whole words.
fn pattern(words: &str) -> String {
    words.replace('<', "(?:^|[^a-z])(?:").replace('>', ")(?:[^a-z]|$)")
}

/// Returns the qualified name of a C++ function, mangled or not, without types and arguments; other
/// names unchanged.
fn function(name: &str) -> String {
    mangled_function(name).unwrap_or_else(|| {
        let mut function = String::new();
        let mut depth = 0_usize;
        for character in without_anonymous(name).chars() {
            match character {
                '<' | '(' | '[' | '{' => depth += 1,
                '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
                other if depth == 0 => function.push(other),
                _ => {}
            }
        }
        let function = function.trim();
        let types = ["void ", "std::enable_if::type "];
        let without = types.iter().find_map(|of_result| function.strip_prefix(of_result));
        without.unwrap_or(function).trim().to_owned()
    })
}

fn without_anonymous(name: &str) -> String {
    name.replace("(anonymous namespace)", "").replace("<unnamed>", "")
}

/// Returns the qualified name of a function mangled by the Itanium C++ ABI: each part is its length
/// in bytes, followed by that many bytes.
fn mangled_function(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_ZN").or_else(|| name.strip_prefix("_Z"))?;
    let mut parts = Vec::new();
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        let Some(part) = rest.get(digits..digits.saturating_add(length)) else { break };
        parts.push(part);
        rest = &rest[digits + length..];
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

/// Returns a name in lower case, with `_` at word boundaries inside identifiers.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + name.len() / 4);
    let mut characters = name.chars().peekable();
    let mut before = '_';
    while let Some(character) = characters.next() {
        let ends_acronym =
            before.is_ascii_uppercase() && characters.peek().is_some_and(char::is_ascii_lowercase);
        if character.is_ascii_uppercase() && (before.is_ascii_lowercase() || ends_acronym) {
            words.push('_');
        }
        words.push(character.to_ascii_lowercase());
        before = character;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_are(family: &str, names: &[&str]) {
        for name in names {
            assert_eq!(kernel_family(name), family, "{name}");
        }
    }

    #[test]
    fn every_pattern_is_a_regular_expression() {
        let broken: Vec<_> =
            FAMILIES.iter().filter(|(_, words)| Regex::new(&pattern(words)).is_err()).collect();
        assert_eq!(broken, [] as [&(&str, &str); 0]);
    }

    #[test]
    fn matrix_products_of_all_libraries_are_gemms() {
        all_are(
            "gemm",
            &[
                // cuBLASLt and cuBLAS
                "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
                "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN",
                "nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT",
                "ampere_sgemm_128x64_tn",
                "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn",
                "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3__5x_cublas",
                "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16>(float)",
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int>(int)",
                "void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)",
                "void epilogue::impl::globalKernel<float, float>(int, cublasLtEpilogue_t)",
                // CUTLASS
                "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_nn_align4>(Params)",
                "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<a, b>>(Params)",
                // Tensile (rocBLAS, hipBLASLt), rocBLAS, Composable Kernel
                "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN",
                "Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_MT256x256x128",
                "rocblas_gemvt_sn_kernel",
                "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm<float>>(ck::Argument)",
                "_ZN7ck_tile6kentryILi1ENS_10GemmKernelINS_19GemmTilePartitionerEEEEEvDpT2_",
                // Triton, vLLM, SGLang, TensorRT-LLM, DeepGEMM, Ascend
                "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
                "triton_tem_fused_addmm_4",
                "triton_mm",
                "fused_moe_kernel",
                "_ZN5aiter9mfma_moe1EPvS0_",
                "void marlin::Marlin<256, 1, 8, 8, 4, 8>(int4 const*)",
                "void wvSplitK_hf_sml_<__half, 64, 2>(int)",
                "bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512_s6",
                "void deep_gemm::sm90_fp8_gemm_1d2d_impl<7168u>(float*)",
                "aclnnMatmul_MatMulV3Common_MatMulV3",
                "gemm_fusion_dot_2",
            ],
        );
    }

    #[test]
    fn attention_counts_before_the_products_in_it() {
        all_are(
            "attention",
            &[
                "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>, true>(Params)",
                "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<a>(Flash_bwd_params)",
                "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::Mainloop>>(Params)",
                "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
                "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64",
                "void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*)",
                "void cudnn::fusion::convert_dq_to_16bits<true>(void const*, void*)",
                "_ZN7ck_tile6kentryILi1ENS_13FmhaFwdKernelINS_1aEEEEEvDpT_",
                "void flashinfer::BatchDecodeWithPagedKVCacheKernel<a, b>(int)",
                "void vllm::paged_attention_v2_kernel<__half, 128>(float*)",
                "kernel_unified_attention_2d",
                "_fwd_grouped_kernel_stage1",
                "triton_tem_fused_flex_attention_0",
                "void tensorrt_llm::kernels::mmha::masked_multihead_attention_kernel<half>(int)",
                "attn_fwd",
                "bwd_kernel_fuse",
                "aclnnFlashAttentionScore_FlashAttentionScore_FlashAttentionScore",
            ],
        );
    }

    #[test]
    fn convolutions_are_known_by_whole_words() {
        all_are(
            "convolution",
            &[
                "void implicit_convolve_sgemm<float, float, 128, 6, 7>(int)",
                "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(float)",
                "void cudnn::cnn::wgrad_alg0_engine<float, 128>(int)",
                "volta_scudnn_128x64_stridedB_splitK_xregs_large_nn_v1",
                "volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
                "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tile",
                "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized>(P)",
                "cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)",
                "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<1>(int)",
                "void at::native::im2col_kernel<float>(long)",
                "miopenSp3AsmConv_v21_1_2_gfx9_fp32_f2x3_stride1",
                "Im2d2Col",
                "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32",
                "_ZN2ck16tensor_operation6device45kernel_grouped_conv_fwd_multiple_abd_xdl_cshuff",
                "causal_conv1d_fwd_kernel",
                "Conv2DBackpropFilter",
            ],
        );
        for (name, family) in [
            ("loop_convert_fusion", "elementwise"),
            ("convertLayout", "layout"),
            ("void cudnn::ops::nchwToNhwcKernel<float, float>(float const*)", "layout"),
        ] {
            assert_eq!(kernel_family(name), family, "{name}");
        }
    }

    #[test]
    fn functions_count_and_not_their_template_arguments() {
        for (name, family) in [
            (
                "void at::native::indexFuncLargeIndex<float, long, ReduceAdd>(float)",
                "index, sort and concat",
            ),
            (
                "void bounds_check_indices_kernel<long>(cutlass::Matrix, fbgemm::X)",
                "index, sort and concat",
            ),
            (
                "void at::native::reduce_kernel<512, 1, at::native::NormTwoOps<float>>(int)",
                "reduce",
            ),
            (
                "void split_embedding_codegen_forward_kernel<nbit::fbgemm, cutlass::half>(int)",
                "embedding",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, softmax_gemm_functor>(int)",
                "elementwise",
            ),
            (
                "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, normal_and_transform>(int)",
                "dropout and random",
            ),
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>(int)",
                "optimizer",
            ),
            (
                "void rocprim::detail::trampoline_kernel<rocprim::wrapped_scan_config<int>>(int)",
                "index, sort and concat",
            ),
        ] {
            assert_eq!(kernel_family(name), family, "{name}");
        }
    }

    #[test]
    fn words_are_not_found_inside_others() {
        for (name, family) in [
            ("stream_executor::gpu::RedzoneAllocatorKernelImpl(unsigned char*)", OTHER),
            ("allocate", OTHER),
            ("normal_and_transform", "dropout and random"),
            ("normalized_by_my_own", "norm"),
            (
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(float*)",
                "index, sort and concat",
            ),
            ("rotary_embedding_kernel", "elementwise"),
            ("void vllm::reshape_and_cache_flash_kernel<__half>(int)", "index, sort and concat"),
            ("create_flashinfer_kv_indices_triton", "index, sort and concat"),
            ("_finalize_matmul_scatter_bf16", "index, sort and concat"),
            ("void vllm::moe::topkGatingSoftmax<8, 128>(float const*)", "index, sort and concat"),
            ("__amd_rocclr_fillBufferAligned", "copy and fill"),
            ("stream_executor::gpu::(anonymous namespace)::DelayKernel(int)", OTHER),
            ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)", "layout"),
            ("solve", OTHER),
            ("", OTHER),
        ] {
            assert_eq!(kernel_family(name), family, "{name}");
        }
    }

    #[test]
    fn the_other_families_have_names_of_several_libraries() {
        for (name, family) in [
            (
                "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float)",
                "softmax",
            ),
            ("void (anonymous namespace)::softmax_warp_forward<float, 11>(float*)", "softmax"),
            ("MIOpenSoftmaxForward", "softmax"),
            ("void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float>(float)", "loss"),
            ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float>(float)", "norm"),
            ("void at::native::GammaBetaBackwardCUDAKernelTemplate<float>(float)", "norm"),
            ("void at::native::RowwiseMomentsCUDAKernel<float, float>(long)", "norm"),
            ("void transformer_engine::normalization::ln_fwd_tuned_kernel<T>(P)", "norm"),
            ("MIOpenBatchNormFwdTrainSpatial", "norm"),
            ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256EEEvPT0_", "norm"),
            (
                "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEE",
                "norm",
            ),
            ("void at::native::embedding_backward_feature_kernel<float>(long)", "embedding"),
            (
                "void at::native::max_pool_backward_nchw<float, float>(float const*)",
                "pooling and resampling",
            ),
            ("mloPoolingG", "pooling and resampling"),
            ("void at::native::fused_dropout_kernel_vec<float>(float)", "dropout and random"),
            ("void fft2d_r2c_32x32<float, false, 5u, true>(float2*)", "fft"),
            ("void cub::DeviceRadixSortOnesweepKernel<int>(int*)", "index, sort and concat"),
            ("void cub::DeviceReduceSingleTileKernel<int>(int*)", "reduce"),
            ("input_reduce_fusion_2", "reduce"),
            ("void dot_kernel<float, 128, 0, cublasDotParams<float>>(float)", "reduce"),
            ("void permute_pooled_embs_kernel<float>(float const*)", "layout"),
            ("batched_transpose_32x32_dword", "layout"),
            ("loop_multiply_fusion_4", "elementwise"),
            ("loop_select_fusion", "elementwise"),
            ("wrapped_tanh", "elementwise"),
            ("void vllm::act_and_mul_kernel<c10::BFloat16>(int)", "elementwise"),
            ("triton_poi_fused_add_mul_0", "triton"),
            ("triton_per_fused_native_layer_norm_3", "triton"),
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", "communication"),
            ("copy_kernel", "copy and fill"),
        ] {
            assert_eq!(kernel_family(name), family, "{name}");
        }
    }

    #[test]
    fn the_name_of_a_family_is_a_kernel_of_it() {
        for (family, _) in FAMILIES {
            assert_eq!(kernel_family(family), *family);
            assert!(is_kernel_family(family));
        }
        assert!(!is_kernel_family("flash"));
    }

    #[test]
    fn broken_names_are_no_reason_to_fail() {
        for name in
            ["_Z", "_ZN99999999999999999999a", "_ZN3äb", "a<b<c", "a>>b", "(anonymous namespace)"]
        {
            assert_eq!(kernel_family(name), OTHER, "{name}");
        }
    }
}
