//! Which arguments of events are kept.

use crate::read::json::{Key, Keys};
use crate::tables::Arguments;

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
    "corr_id",
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
/// The correlation id of rocprofiler-systems.
pub(super) const CORR_ID: Key = Key::at(10);

impl Arguments {
    /// The keys to begin with, and which of them are kept.
    pub(super) fn keys(&self) -> (Keys, Wanted) {
        let mut names: Vec<&str> = BUILT_IN.to_vec();
        for name in self.names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let kept = names.iter().map(|name| self.keeps(name)).collect();
        let wanted = Wanted { kept, counters: *self == Self::Default };
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
