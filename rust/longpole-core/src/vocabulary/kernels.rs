//! The class of GPU activities, by name and arguments.
//!
//! A kernel is known to communicate if the profiler attached the record of a collective. Otherwise,
//! libraries and engines are recognized by parts of the names of their kernels.
//!
//! Limits: a kernel whose name is not listed counts as compute. Kernels that compute and
//! communicate (such as a fused GEMM and all-reduce) count as communication if the name shows it.

use std::sync::LazyLock;

use regex::Regex;

use super::EventKind;
use crate::names::named;

named! {
    /// The class of a GPU activity.
    WorkClass {
        /// Computing.
        Compute "compute",
        /// Exchanging data with other devices.
        Communication "communication",
        /// Moving or filling memory.
        Copy "copy",
    }
}

/// Parts of names, as case-insensitive regular expressions: the collective libraries of the
/// vendors, collectives of inference engines, and those of expert parallelism.
///
/// `[_:\d]` separates a namespace and a function in both mangled and plain names. For expert
/// parallelism, functions are listed, because the same namespaces contain kernels that prepare and
/// sort on one device.
const COMMUNICATION: &[&str] = &[
    "nccl",
    "rccl",
    "hccl",
    "hcom_",
    "broadcast-op",
    "send-op",
    "receive-op",
    "neighborexchange",
    "mccl",
    "oneccl",
    "ccl::",
    "msccl",
    "flagcx",
    "nvshmem",
    "rocshmem",
    "ishmem",
    "userbuffers",
    "multimem_",
    "cross_device_reduce",
    "all[_-]?reduce",
    "all[_-]?gather",
    "reduce[_-]?scatter",
    "all[_-]?to[_-]?all",
    "collective-permute",
    "all2all",
    "sendrecv",
    "symmetric_memory",
    "symm_mem",
    // NVSHMEM's own kernels (`barrier_on_stream_kernel_threadgroup`), and kernels that wait for the
    // data of others with Lamport flags (TensorRT-LLM, FlashInfer).
    "_on_stream_kernel",
    "lamport",
    // DeepEP and its derivatives (DeepSeek's own, UCCL, Primus-Turbo), Hybrid-EP, Mooncake.
    r"(?:int(?:ra|er)node(?:_ll)?|hybrid_ep|mooncake(?:_ep_jit)?)[_:\d]+(?:dispatch|combine|(?:cached_)?notify|barrier|clean_low_latency_buffer|device_sync)",
    r"deep_ep[:\d]+\w+?[:\d]+(?:hybrid_)?(?:dispatch|combine|barrier|engram_fetch(?:_wait)?|pp_send|pp_recv)_impl",
    // pplx-garden, and the one-sided all-to-all of TensorRT-LLM; pplx-kernels, whose last two
    // arguments are flags for sending and receiving.
    "a2a_?(?:dispatch|combine)",
    r"(?-i:(?:^|[ :\d])(?:dispatch|combine)Kernel[<I].*(?:(?:true|false), (?:true|false)|Lb[01]ELb[01]E))",
    // mori
    "ep(?:dispatch|combine)(?:int(?:ra|er)node|lowlatencyasync|sync)",
    "mori_shmem",
];

impl WorkClass {
    /// Returns the class of kernels with this name, as far as the name shows it.
    pub fn of_kernel(name: &str) -> Self {
        static PATTERN: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(&format!("(?i){}", COMMUNICATION.join("|"))).ok());
        if PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(name)) {
            Self::Communication
        } else {
            Self::Compute
        }
    }
}

/// Whether the source and the destination of a memcpy are pageable memory, which the driver stages:
/// by the memory kinds in its arguments, otherwise by its name (`Memcpy HtoD (Pageable ->
/// Device)`).
pub fn pageable_ends(name: &str, memory_kinds: [Option<&str>; 2]) -> [bool; 2] {
    match memory_kinds {
        [None, None] => [name.contains("Pageable ->"), name.contains("-> Pageable")],
        kinds => kinds.map(|kind| kind.is_some_and(|kind| kind.eq_ignore_ascii_case("pageable"))),
    }
}

/// The arguments with the source and destination memory kinds of a memcpy.
pub const MEMORY_KINDS: [&str; 2] = ["src kind", "dst kind"];

const KERNELS: &[(&str, EventKind)] =
    &[("__amd_rocclr_fillBuffer", EventKind::Fill), ("__amd_rocclr_copyBuffer", EventKind::Copy)];

const CALLS: &[(&str, EventKind)] =
    &[("hipMemset", EventKind::Fill), ("hipMemcpy", EventKind::Copy)];

/// Returns the effect of a kernel with which HIP performs memsets or memcpys. HIP also uses these
/// kernels internally: only the call shows that the program requested it.
pub fn blit_kernel(name: &str) -> Option<EventKind> {
    begin_of(name, KERNELS)
}

/// Returns the request of a HIP call, if it is a memset or a memcpy.
pub fn blit_call(name: &str) -> Option<EventKind> {
    begin_of(name, CALLS)
}

fn begin_of(name: &str, table: &[(&str, EventKind)]) -> Option<EventKind> {
    table.iter().find(|(begin, _)| name.starts_with(begin)).map(|&(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_communicate_are_known_by_name() {
        for name in [
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclSymkDevKernel_AllGather_LLMC",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
            "nvshmemi_transfer_rma_put",
            "void deep_ep::intranode::dispatch<8, 768>",
            "void deep_ep::internode_ll::combine<true>",
            "pplx::a2a_dispatch_send_kernel",
            "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop",
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>",
            "two_shot_all_reduce_kernel_inplace",
            "hcclAllReduce",
            "hcom_broadcast__586_0_1",
            "Default/Receive-op12_0",
            "mscclKernel_Sum_half_Simple",
            "void dpsk::ep::internode::combine<false, 4, __nv_bfloat16>(int4*, float*)",
            "void dpsk::ep::internode::cached_notify<false>(int, int, int)",
            "void dpsk::ep::internode::notify_dispatch<false, 4>(int const*, long*)",
            "void dpsk::ep::internode::dispatch_ll<true, 3, 10, 7168>(void*, float*)",
            "void deep_ep::intranode::cached_notify_combine<8>(void**, int*)",
            "void deep_ep::intranode::barrier<8>(int**, int)",
            "void deep_ep::internode_ll::clean_low_latency_buffer<256>(int*, int)",
            "void deep_ep::elastic::hybrid_dispatch_impl<true, false, 24>",
            "_ZN7deep_ep7elastic12combine_implILb1ELb0EEEvPvS1_",
            "_ZN7deep_ep9internode8dispatchILb0ELi4ELb0EEEvP4int4Pf",
            "_ZN7deep_ep12internode_ll7combineILi3EEEvPvS1_",
            "void primus_turbo::deep_ep::internode::notify_dispatch<false, 2>",
            "void uccl::internode_ll::dispatch<true, 3>",
            "hybrid_ep::device_sync_kernel(unsigned int*)",
            "nccl_ep_jit_ht_dispatch_kernel",
            "mooncake_ep_jit_combine_kernel",
            "void dispatchKernel<10u, true, false>(int*, unsigned long)",
            "void (anonymous namespace)::combineKernel<float, half, 32ul, false, true>(half*)",
            "_Z14dispatchKernelILj10ELb1ELb0EEvPim",
            "void rose::a2a_combine_recv_kernel<true, 16>",
            "moeA2ADispatchKernel(int const*, DispatchKernelPointers, int)",
            "void tensorrt_llm::kernels::moeA2ACombineKernel<8, false>",
            "void minimax_reduce_rms_kernel_lamport<__nv_bfloat16, 4>",
            "void rmsNormLamport_fusion<half, 0, 1>(half*)",
            "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",
            "void fcollect_on_stream_kernel<float>(int, float*, float const*)",
            "rocshmem_barrier_all_kernel",
            "EpDispatchIntraNodeKernel_bf16",
            "void mori::moe::EpCombineInterNodeV1Kernel<hip_bfloat16>",
            "EpDispatchLowLatencyAsyncSend_fp8_ocp",
            "EpCombineSyncBarrier_bf16",
            "mori_shmem_barrier_all_block",
            "quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, 4>, __half>",
            "_ZN5aiter33reduce_scatter_cross_device_storeIDF16bLi8EEEvPNS_8RankDataE",
        ] {
            assert_eq!(WorkClass::of_kernel(name), WorkClass::Communication, "{name}");
        }
    }

    #[test]
    fn kernels_that_compute_are_not_taken_for_others() {
        for name in [
            "hipblaslt_gemm_f16",
            "void at::native::reduce_kernel<512, 1>",
            "Cijk_Ailk_Bljk_HHS_BH_MT128x128",
            "fused_dispatch_combine",
            "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>, true, false>",
            "flash_fwd_mla_combine_kernel<cutlass::bfloat16_t, 512>",
            "void ck_tile::kentry<FmhaFwdSplitKVCombineKernel<true, false>>",
            "void moe_combine_kernel<float, 8>",
            "_lse_combine_kernel",
            "combineKernel(float*, float*, int)",
            "void at::native::(anonymous namespace)::dispatch_elementwise<2, true>",
            "notify_kernel",
            "at_cuda_detail::cdpsk::ep::DeviceScanKernel<int>",
            "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*, int*)",
            "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)",
            "void deep_ep::elastic::dispatch_copy_epilogue_impl<true, false>",
            "void deep_ep::ep::combine_reduce_epilogue_impl<true>",
            "void dpsk::gemm::fp8_gemm_kernel<4096u>(dpsk::ep::internode::SourceMeta*)",
            "moeA2APrepareDispatchKernel(int*, int*)",
            "EpCombineQuantizeInputKernel_bf16",
            "mori_ConvertDispatchOutputKernel",
            "hybrid_ep::permute_kernel<float>",
            "event_wait_kernel",
            "",
        ] {
            assert_eq!(WorkClass::of_kernel(name), WorkClass::Compute, "{name}");
        }
    }

    #[test]
    fn arguments_tell_of_pageable_memory_before_names() {
        let [from, to] = [[true, false], [false, true]];
        assert_eq!(pageable_ends("Memcpy HtoD (Pageable -> Device)", [None, None]), from);
        assert_eq!(pageable_ends("Memcpy DtoH (Device -> Pageable)", [None, None]), to);
        assert_eq!(pageable_ends("HtoD", [Some("pageable"), Some("device")]), from);
        assert_eq!(pageable_ends("DtoH", [Some("device"), Some("pinned")]), [false, false]);
    }

    #[test]
    fn kernels_and_calls_are_known_by_the_begin_of_their_names() {
        assert_eq!(blit_kernel("__amd_rocclr_fillBufferAligned.kd"), Some(EventKind::Fill));
        assert_eq!(blit_kernel("__amd_rocclr_copyBufferRectAligned"), Some(EventKind::Copy));
        assert_eq!(blit_kernel("__amd_rocclr_initHeap"), None);
        assert_eq!(blit_call("hipMemsetD8Async"), Some(EventKind::Fill));
        assert_eq!(blit_call("hipMemcpyWithStream"), Some(EventKind::Copy));
        assert_eq!(blit_call("hipGraphLaunch"), None);
    }
}
