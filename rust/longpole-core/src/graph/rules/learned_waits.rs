//! Learns from the trace which calls that allocate or free wait for the device.
//!
//! Whether `cudaMalloc` waits depends on the driver and the allocator. If calls of a name
//! repeatedly return while GPU activities still run, calls of that name never wait.

use std::collections::{BTreeMap, HashSet};

use super::candidates::{last_finished, streams_of_device};
use crate::graph::facts::{Facts, Recent};
use crate::graph::model::limits;
use crate::ids::StringId;
use crate::vocabulary::ApiRole;

/// Returns the names of calls that never wait.
pub(super) fn never_waiting(facts: &Facts<'_>) -> HashSet<StringId> {
    let mut threads = vec![Recent::default(); facts.tables.lanes.len()];
    let mut counts: BTreeMap<StringId, (usize, usize)> = BTreeMap::new();
    for call in facts.calls() {
        let recent = &mut threads[facts.timeline.lane(call)];
        if let Some(&first) = facts.streams.launched_by(call).first() {
            recent.launched_on(facts.streams.stream_of(first));
        }
        let may_wait = matches!(
            facts.purpose(call),
            ApiRole::Allocate | ApiRole::Free | ApiRole::LoadModule | ApiRole::UnloadModule
        );
        if !may_wait || facts.timeline.duration_ns(call) < limits::LONG_SYNC_NS {
            continue;
        }
        let (start_ns, end_ns) = (facts.timeline.start_ns(call), facts.timeline.end_ns(call));
        let streams = streams_of_device(recent, facts);
        let last_ns = last_finished(call, streams, facts).map(|(end, _)| end).max();
        let outstanding = last_ns.filter(|&ns| ns > start_ns + limits::OUTSTANDING_NS);
        if let (Some(last_ns), Some(name)) = (outstanding, facts.timeline.name(call)) {
            let (n_calls, n_early) = counts.entry(name).or_default();
            *n_calls += 1;
            *n_early += usize::from(last_ns > end_ns + limits::CLOCK_TOLERANCE_NS);
        }
    }
    let never = counts.into_iter().filter(|&(_, (n_calls, n_early))| {
        n_early > 0 && n_early * limits::NEVER_WAITING_PART >= n_calls
    });
    never.map(|(name, _)| name).collect()
}
