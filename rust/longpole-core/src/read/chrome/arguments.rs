//! Selects the arguments of events to keep.

use crate::read::json::{Key, Keys};
use crate::tables::Arguments;

/// Arguments with their own column in the event table, or used by readers of the other tables.
/// Their order is that of the constants below.
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
/// CANN's name for the correlation id of a call and its activities.
pub(super) const CONNECTION_ID: Key = Key::at(8);
/// The correlation id of the task queue of `torch_npu`.
pub(super) const QUEUE_ID: Key = Key::at(9);
/// The correlation id of rocprofiler-systems.
pub(super) const CORR_ID: Key = Key::at(10);

impl Arguments {
    /// Returns the initial keys, and which of them are kept.
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

/// Which keys are kept, by row.
pub(super) struct Wanted {
    kept: Vec<bool>,
    /// Whether all counters of a counter range are kept.
    pub(super) counters: bool,
}

impl Wanted {
    /// Whether the key at `row` is kept for events of any category.
    #[inline]
    pub(super) fn keeps(&self, row: usize) -> bool {
        self.kept.get(row).copied().unwrap_or(false)
    }
}
