//! What work on a device is for, by its name and arguments.
//!
//! A kernel says itself what it does only where the profiler attached the record of a
//! collective. Otherwise libraries and engines are known by parts of the names of their
//! kernels.
//!
//! Limits: a kernel whose name is not listed computes. Kernels that compute and communicate
//! at once (fused GEMM and all-reduce) count as communication where the name says so.

use super::Names;

/// What work on a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum WorkClass {
    /// Computing.
    Compute,
    /// Exchanging data with other devices.
    Communication,
    /// Moving or filling memory.
    Copy,
}

impl Names for WorkClass {
    const ALL: &'static [Self] = &[Self::Compute, Self::Communication, Self::Copy];
    const NAMES: &'static [&'static str] = &["compute", "communication", "copy"];
}

/// Parts of names in small letters: the collective libraries of the vendors, and the
/// collectives that engines bring along.
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
    "deep_ep::",
    "pplx::",
    "userbuffers",
    "multimem_",
    "cross_device_reduce",
    "allreduce",
    "all_reduce",
    "allgather",
    "all_gather",
    "reduce_scatter",
    "reducescatter",
    "alltoall",
    "all_to_all",
    "all2all",
    "sendrecv",
    "symmetric_memory",
    "symm_mem",
];

impl WorkClass {
    /// The class of kernels with a name, as far as the name tells.
    pub fn of_kernel(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let communicates = COMMUNICATION.iter().any(|part| name.contains(part));
        if communicates {
            Self::Communication
        } else {
            Self::Compute
        }
    }
}

/// Whether the source and the destination of a memcpy are pageable memory, which the driver
/// stages itself: by the kinds of both among its arguments, else by its name
/// (`Memcpy HtoD (Pageable -> Device)`).
pub fn pageable_ends(name: &str, memory_kinds: [Option<&str>; 2]) -> [bool; 2] {
    match memory_kinds {
        [None, None] => [name.contains("Pageable ->"), name.contains("-> Pageable")],
        kinds => kinds.map(|kind| kind.is_some_and(|kind| kind.eq_ignore_ascii_case("pageable"))),
    }
}

/// The arguments that tell where a memcpy reads and writes.
pub const MEMORY_KINDS: [&str; 2] = ["src kind", "dst kind"];

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
}
