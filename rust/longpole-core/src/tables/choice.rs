//! Selects the arguments (`args`) of events to keep.

/// Which arguments of events to keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Arguments {
    /// Arguments that link events.
    Ids,
    /// The ids, and common arguments of kernels, operators and collectives.
    #[default]
    Default,
    /// The ids, and others by name.
    Named(Vec<String>),
}

/// Arguments that link events. `context` and the graph ids identify where GPU activities run; the
/// wait fields are on synchronization records.
const IDS: &[&str] = &[
    "stream",
    "device",
    "context",
    "graph id",
    "graph node id",
    "Sequence number",
    "Fwd thread id",
    "Record function id",
    "Ev Idx",
    "wait_on_stream",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_cuda_event_id",
    "cuda_event_id",
    "cuda_sync_kind",
    "src kind",
    "dst kind",
    "Task Type",
    "stream id",
    "dst rank",
    "step_num",
    "group_id",
    "run_id",
    "BeginNs",
    "EndNs",
    "dev-id",
    "stream-id",
    "Index",
    "pid",
];

/// Common arguments of kernels, copies, operators, collectives, Python functions and memory.
const DEFAULT: &[&str] = &[
    "bytes",
    "memory bandwidth (GB/s)",
    "grid",
    "block",
    "shared memory",
    "registers per thread",
    "blocks per SM",
    "warps per SM",
    "est. achieved occupancy %",
    "Input Dims",
    "Input dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    "Module Hierarchy",
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "dtype",
    "In split size",
    "Out split size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Global rank start",
    "Global rank stride",
    "Rank",
    "Src Rank",
    "Dst Rank",
    "Seq",
    "Comms Id",
    "name",
    "Python id",
    "Python parent id",
    "Python module id",
    "cbid",
    "Device Type",
    "Device Id",
    "Addr",
    "Bytes",
    "Total Allocated",
    "Total Reserved",
    "data_type",
    "count",
    "alg_type",
    "task type",
    "src rank",
    "transport type",
    "link type",
    "size(Byte)",
    "bandwidth(GB/s)",
    "hlo_op",
    "hlo_module",
    "tf_op",
    "memcpy_details",
    "Memset_details",
    "kernel_details",
];

impl Arguments {
    /// Returns the names of arguments that are kept for events of any category.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let (default, others): (&[&str], &[String]) = match self {
            Self::Ids => (&[], &[]),
            Self::Default => (DEFAULT, &[]),
            Self::Named(others) => (&[], others),
        };
        IDS.iter().chain(default).copied().chain(others.iter().map(String::as_str))
    }

    /// Whether an argument is kept for events of any category.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.names().any(|kept| kept == name)
    }

    /// Returns an argument that `other` keeps and this selection does not, if any.
    pub(crate) fn lacks<'a>(&self, other: &'a Self) -> Option<&'a str> {
        let keeps_counters = *self == Self::Default || *other != Self::Default;
        let missing = other.names().find(|name| !self.keeps(name));
        missing.or((!keeps_counters).then_some("those of counter ranges"))
    }
}
