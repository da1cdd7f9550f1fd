//! Which arguments of events are kept.

use crate::read::json::{Key, Keys};

/// Which arguments (`args`) of events are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Arguments {
    /// Those that say what belongs together.
    Ids,
    /// These, and what one asks about kernels, operators and collectives.
    #[default]
    Default,
    /// The ids, and any others by their names in the file.
    Named(Vec<String>),
}

/// Those that have columns of their own in the table of events, and those that
/// a reader of the other tables needs. Their order is the constants' below.
const BUILT_IN: &[&str] = &[
    "correlation",
    "External id",
    "external id",
    "stream",
    "device",
    "name",
    "labels",
    "sort_index",
    "connection_id",
    "correlation_id",
];

pub(super) const CORRELATION: Key = Key::at(0);
pub(super) const EXTERNAL_ID: Key = Key::at(1);
pub(super) const EXTERNAL_ID_LOWER: Key = Key::at(2);
pub(super) const STREAM: Key = Key::at(3);
pub(super) const DEVICE: Key = Key::at(4);
/// CANN's name for the number that a call and what it launched have in common.
pub(super) const CONNECTION_ID: Key = Key::at(8);
/// The same of the queue between the threads of `torch_npu`.
pub(super) const QUEUE_ID: Key = Key::at(9);

/// What says which events belong together. `context` and the graph ids place
/// work on a device, the wait fields stand on records of synchronisation.
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
];

/// What one asks about kernels, copies, operators, collectives, Python
/// functions and memory.
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
];

impl Arguments {
    /// The keys to begin with, and which of them are kept.
    pub(super) fn keys(&self) -> (Keys, Wanted) {
        let others: &[String] = match self {
            Self::Named(others) => others,
            _ => &[],
        };
        let default = if *self == Self::Default { DEFAULT } else { &[] };
        let mut names: Vec<&str> = BUILT_IN.to_vec();
        for name in IDS.iter().chain(default).copied().chain(others.iter().map(String::as_str)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let is_kept = |name: &&str| {
            IDS.contains(name) || default.contains(name) || others.iter().any(|other| other == name)
        };
        let wanted =
            Wanted { kept: names.iter().map(is_kept).collect(), counters: *self == Self::Default };
        (Keys::new(names.into_iter().map(str::to_owned)), wanted)
    }
}

/// Which keys are kept, by their row.
pub(super) struct Wanted {
    kept: Vec<bool>,
    /// Whether the counters of a counter range are, whatever their names.
    pub(super) counters: bool,
}

impl Wanted {
    /// Whether the key at `row` is kept for events of any category.
    #[inline]
    pub(super) fn keeps(&self, row: usize) -> bool {
        self.kept.get(row).copied().unwrap_or(false)
    }
}
