//! The operation and the data type of a collective, from the name of a kernel or operator.
//!
//! PyTorch attaches a record of the collective to its kernels and operators: name, elements, data
//! type, group. Without that record, the names of the libraries' kernels contain the operation and
//! usually the data type (`ncclDevKernel_AllReduce_Sum_bf16_RING_LL`).
//!
//! Limits: the number of bytes is only known from the record. It is that of the larger buffer of
//! one rank.

use crate::names::named;

named! {
    /// The operation of a collective.
    Collective {
        /// Every rank receives the reduction over all ranks.
        AllReduce "all_reduce",
        /// Every rank receives the data of all ranks.
        AllGather "all_gather",
        /// Every rank receives a part of the reduction over all ranks.
        ReduceScatter "reduce_scatter",
        /// Every rank sends a part to each other rank.
        AllToAll "all_to_all",
        /// One rank sends to all ranks.
        Broadcast "broadcast",
        /// One rank receives the reduction over all ranks.
        Reduce "reduce",
        /// One rank receives the data of all ranks.
        Gather "gather",
        /// One rank sends a part to each rank.
        Scatter "scatter",
        /// One rank sends to another rank.
        Send "send",
        /// One rank receives from another rank.
        Receive "recv",
        /// A send, a receive, or both: their kernels have the same name.
        SendReceive "send_receive",
        /// No rank continues before all ranks have arrived.
        Barrier "barrier",
    }
}

/// Parts of names, in lower case without underscores. The first match is used.
const PARTS: &[(&str, Collective)] = &[
    ("lamport", Collective::AllReduce),
    ("cachednotify", Collective::Barrier),
    ("allreduce", Collective::AllReduce),
    ("crossdevicereduce", Collective::AllReduce),
    ("allgather", Collective::AllGather),
    ("reducescatter", Collective::ReduceScatter),
    ("alltoall", Collective::AllToAll),
    ("all2all", Collective::AllToAll),
    ("dispatch", Collective::AllToAll),
    ("combine", Collective::AllToAll),
    ("broadcast", Collective::Broadcast),
    ("sendrecv", Collective::SendReceive),
    ("send", Collective::Send),
    ("recv", Collective::Receive),
    ("receive", Collective::Receive),
    ("barrier", Collective::Barrier),
    ("rdxn", Collective::AllReduce),
    ("fcollect", Collective::AllGather),
    ("reduce", Collective::Reduce),
    ("gather", Collective::Gather),
    ("scatter", Collective::Scatter),
];

/// Data types by the names that PyTorch and the libraries use, with their size in bytes.
const DATA_TYPES: &[(&str, &str, i64)] = &[
    ("float8_e4m3", "float8_e4m3", 1),
    ("float8_e5m2", "float8_e5m2", 1),
    ("bfloat16", "bfloat16", 2),
    ("bf16", "bfloat16", 2),
    ("bfp16", "bfloat16", 2),
    ("fp64", "float64", 8),
    ("fp32", "float32", 4),
    ("fp16", "float16", 2),
    ("half", "float16", 2),
    ("float16", "float16", 2),
    ("f16", "float16", 2),
    ("double", "float64", 8),
    ("float64", "float64", 8),
    ("f64", "float64", 8),
    ("float", "float32", 4),
    ("f32", "float32", 4),
    ("uint8", "uint8", 1),
    ("u8", "uint8", 1),
    ("byte", "uint8", 1),
    ("unsigned char", "uint8", 1),
    ("signed char", "int8", 1),
    ("int8", "int8", 1),
    ("i8", "int8", 1),
    ("char", "int8", 1),
    ("int64", "int64", 8),
    ("i64", "int64", 8),
    ("long", "int64", 8),
    ("int32", "int32", 4),
    ("i32", "int32", 4),
    ("int", "int32", 4),
    ("bool", "bool", 1),
];

/// Prefixes of the names of ranges that are collectives themselves, because these libraries run on
/// the CPU.
const ON_CPU: &[&str] = &["gloo:", "mpi:", "ucc:", "hccl:"];

/// Whether a thread range is a collective itself.
pub fn runs_on_cpu(name: &str) -> bool {
    ON_CPU.iter().any(|library| name.starts_with(library))
}

/// Whether a thread range only launches a collective: PyTorch has one for its own record of the
/// collective, and one around the library call.
pub fn is_collective_range(name: &str) -> bool {
    name == "record_param_comms" || name.starts_with("nccl:")
}

impl Collective {
    /// Returns the collective in a text: an argument of the profiler, or the name of a kernel.
    pub fn of_name(name: &str) -> Option<Self> {
        let letters = |letter: &char| *letter != '_';
        let name: String = name.to_ascii_lowercase().chars().filter(letters).collect();
        PARTS.iter().find(|(part, _)| name.contains(part)).map(|&(_, collective)| collective)
    }
}

/// Returns a data type by its name in a trace: its usual name and its size in bytes.
pub fn data_type(word: &str) -> Option<(&'static str, i64)> {
    let word = word.to_ascii_lowercase();
    let word = word.strip_prefix("c10::").unwrap_or(&word);
    DATA_TYPES.iter().find(|(its, ..)| *its == word).map(|&(_, name, bytes)| (name, bytes))
}

/// A data type in one byte, as the index of its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataType(u8);

impl DataType {
    /// Returns the data type with this usual name.
    pub fn named(name: &str) -> Option<Self> {
        let place = DATA_TYPES.iter().position(|(_, usual, _)| *usual == name)?;
        u8::try_from(place).ok().map(Self)
    }

    /// Returns the usual name of the data type.
    pub fn name(self) -> &'static str {
        DATA_TYPES[usize::from(self.0)].1
    }
}

/// Returns the data type in the name of a kernel, as a separate word.
pub fn data_type_of_kernel(name: &str) -> Option<(&'static str, i64)> {
    let head = name.split('(').next().unwrap_or_default();
    head.split(|letter: char| !letter.is_ascii_alphanumeric()).rev().find_map(data_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_arguments_and_of_kernels_tell_the_collective() {
        for (name, collective) in [
            ("allreduce", Collective::AllReduce),
            ("_allgather_base", Collective::AllGather),
            ("reduce_scatter_tensor_coalesced", Collective::ReduceScatter),
            ("all_to_allv", Collective::AllToAll),
            ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", Collective::ReduceScatter),
            ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", Collective::SendReceive),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL", Collective::Reduce),
            ("void vllm::cross_device_reduce_2stage<half, 4>", Collective::AllReduce),
            ("void deep_ep::intranode::combine<8>", Collective::AllToAll),
            ("void dpsk::ep::internode::cached_notify<false>", Collective::Barrier),
            ("EpDispatchIntraNodeKernel_bf16", Collective::AllToAll),
            ("minimax_reduce_rms_kernel_lamport", Collective::AllReduce),
            ("rdxn_on_stream_kernel<float>", Collective::AllReduce),
            ("broadcast", Collective::Broadcast),
            ("gloo:broadcast", Collective::Broadcast),
            ("hccl:_all_gather_base", Collective::AllGather),
            ("ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f16", Collective::AllReduce),
            ("nccl:send 0->1", Collective::Send),
            ("c10d::recv_", Collective::Receive),
        ] {
            assert_eq!(Collective::of_name(name), Some(collective), "{name}");
        }
        assert_eq!(
            Collective::of_name("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"),
            None
        );
    }

    #[test]
    fn data_types_have_one_name() {
        assert_eq!(data_type("BFloat16"), Some(("bfloat16", 2)));
        assert_eq!(data_type("c10::Half"), Some(("float16", 2)));
        assert_eq!(data_type("Long"), Some(("int64", 8)));
        assert_eq!(data_type("Quaternion"), None);
        let kernel = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        assert_eq!(data_type_of_kernel(kernel), Some(("float16", 2)));
        assert_eq!(data_type_of_kernel("ncclDevKernel_SendRecv(int)"), None);
    }
}
