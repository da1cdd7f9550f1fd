//! Calls that waited for something missing from the trace.
//!
//! Profilers lose records: when a buffer is dropped, or for activities submitted before recording
//! began. A synchronization call that returns long after everything it is known to have waited for
//! waited for something else. The same holds for a copy call without a copy. A device
//! synchronization with nothing to wait for takes up to 47 us on profiles, so shorter ones are not
//! renamed, unless the activity of the thread's latest launch is missing. An activity that starts
//! late on its stream may also have waited for a missing one.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowMap};
use crate::vocabulary::ApiRole;

/// Renames the edges that bind the ends of such calls.
pub(super) fn rename(edges: &mut [Edge], facts: &Facts<'_>) {
    let suspects = suspects(facts);
    if suspects.is_empty() {
        return;
    }
    let mut bindings: RowMap<NodeId, usize> = RowMap::default();
    for (place, edge) in edges.iter().enumerate() {
        if suspects.contains_key(&edge.target) && edge.gap_ns(facts.nodes) >= 0 {
            let best = bindings.entry(edge.target).or_insert(place);
            let order = |edge: &Edge| edge.binding_order(facts.nodes, facts.nodes.times_ns());
            if order(edge) < order(&edges[*best]) {
                *best = place;
            }
        }
    }
    let mut bindings: Vec<_> = bindings.into_values().collect();
    bindings.sort_unstable();
    for place in bindings {
        let (call, least_ns) = suspects[&edges[place].target];
        rename_binding(&mut edges[place], call, least_ns, facts);
    }
}

fn rename_binding(edge: &mut Edge, call: Order, least_ns: i64, facts: &Facts<'_>) {
    let times_ns = facts.nodes.times_ns();
    let may_rename = matches!(edge.role, Role::Sync | Role::ThreadOrder);
    if !may_rename || facts.nodes.time_ns(edge.target) - edge.finished_ns(times_ns) <= least_ns {
        return;
    }
    let nodes = (edge.source, edge.target);
    *edge = Edge::new(nodes, (Kind::Unrecorded, Role::NoReason), Some(call), Evidence::None);
}

/// Returns the ends of synchronization and copy calls, each with the time that the call may take by
/// itself.
fn suspects(facts: &Facts<'_>) -> RowMap<NodeId, (Order, i64)> {
    let mut suspects = RowMap::default();
    let mut has_lost_last = vec![false; facts.streams.n_lanes()];
    if facts.streams.all.is_empty() {
        return suspects;
    }
    for call in facts.calls() {
        let has_lost_last = &mut has_lost_last[facts.timeline.lane(call)];
        let is_lost = facts.lost_launches.contains(call);
        let least_ns = match facts.purpose(call) {
            ApiRole::StreamSynchronize | ApiRole::EventSynchronize | ApiRole::DeviceSynchronize => {
                Some(if *has_lost_last { limits::LOST_WAIT_NS } else { limits::UNRECORDED_WAIT_NS })
            }
            ApiRole::Copy | ApiRole::BlockingCopy => is_lost.then_some(limits::LOST_WAIT_NS),
            _ => None,
        };
        if let Some(least_ns) = least_ns.filter(|&ns| facts.timeline.duration_ns(call) > ns) {
            suspects.insert(facts.nodes.end(call), (call, least_ns));
        }
        if is_lost || !facts.streams.launched_by(call).is_empty() {
            *has_lost_last = is_lost;
        }
    }
    suspects
}

/// Renames the gap before a start that comes late after a launch of its thread whose activity is
/// missing: that activity may have been on the same stream. `before` is its recorded stream
/// predecessor.
pub(super) fn rename_start(
    work: Order,
    before: Option<Order>,
    late_ns: i64,
    binding: &mut Edge,
    facts: &Facts<'_>,
) -> bool {
    let least_ns = match binding.role {
        Role::StreamOrder => limits::LATE_AFTER_LOST_NS,
        Role::Launch => limits::LATE_LAUNCH_AFTER_LOST_NS,
        _ => return false,
    };
    let Some(call) = facts.timeline.launcher(work).filter(|_| late_ns > least_ns) else {
        return false;
    };
    let after_ns = before.map_or(i64::MIN, |it| facts.timeline.submitted_ns(it));
    let between_ns = (after_ns, facts.timeline.start_ns(call));
    let is_any = facts.lost_launches.is_any_in(facts.timeline.lane(call), between_ns);
    if is_any {
        let nodes = (binding.source, binding.target);
        *binding = Edge::new(nodes, (Kind::Unrecorded, Role::NoReason), Some(work), Evidence::None);
    }
    is_any
}
