//! Calls that waited for something the trace does not hold.
//!
//! A profiler loses work: when a buffer is dropped, or what was submitted before recording
//! began. A call that synchronises and returns long after all that it is known to have
//! waited for, waited for something else. So did a copy without its copy. A device
//! synchronise that finds nothing takes up to 47 us in profiles, so that less accuses
//! nobody, unless the thread's newest launch is one of those whose work is missing.

use std::collections::HashMap;

use crate::graph::facts::Facts;
use crate::graph::model::{limits, Edge, Evidence, Kind, Role};
use crate::ids::{NodeId, Order};
use crate::vocabulary::ApiRole;

/// What was found missing.
#[derive(Default)]
pub(super) struct Unrecorded {
    /// Launches whose work is not in the trace.
    pub(super) n_lost_launches: u64,
    /// Waits for something that is not in the trace.
    pub(super) n_waits: u64,
}

/// Renames the edges that bind the ends of such calls.
pub(super) fn rename(edges: &mut [Edge], facts: &Facts<'_>) -> Unrecorded {
    let mut found = Unrecorded::default();
    let suspects = suspects(facts, &mut found);
    if suspects.is_empty() {
        return found;
    }
    let mut bindings: HashMap<NodeId, usize> = HashMap::new();
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
        found.n_waits += u64::from(rename_binding(&mut edges[place], call, least_ns, facts));
    }
    found
}

fn rename_binding(edge: &mut Edge, call: Order, least_ns: i64, facts: &Facts<'_>) -> bool {
    let times_ns = facts.nodes.times_ns();
    let may_rename = matches!(edge.role, Role::Sync | Role::ThreadOrder);
    if !may_rename || facts.nodes.time_ns(edge.target) - edge.finished_ns(times_ns) <= least_ns {
        return false;
    }
    let nodes = (edge.source, edge.target);
    *edge = Edge::new(nodes, (Kind::Unrecorded, Role::NoReason), Some(call), Evidence::None);
    true
}

/// The ends of calls that synchronise or copy, with how long they may take by themselves.
fn suspects(facts: &Facts<'_>, found: &mut Unrecorded) -> HashMap<NodeId, (Order, i64)> {
    let mut suspects = HashMap::new();
    let mut threads = vec![Thread::default(); facts.streams.n_lanes()];
    if facts.streams.all.is_empty() {
        return suspects;
    }
    for call in facts.calls() {
        let thread = &mut threads[facts.timeline.lane(call)];
        thread.is_capturing = match facts.name(call) {
            name if name.contains("BeginCapture") => true,
            name if name.contains("EndCapture") => false,
            _ => thread.is_capturing,
        };
        let role = facts.purpose(call);
        let is_lost = is_lost(call, role, facts) && !thread.is_capturing;
        let least_ns = match role {
            ApiRole::StreamSynchronize | ApiRole::EventSynchronize | ApiRole::DeviceSynchronize => {
                let lost = thread.has_lost_last;
                Some(if lost { limits::LOST_WAIT_NS } else { limits::UNRECORDED_WAIT_NS })
            }
            ApiRole::Copy | ApiRole::BlockingCopy => is_lost.then_some(limits::LOST_WAIT_NS),
            _ => None,
        };
        if let Some(least_ns) = least_ns.filter(|&ns| facts.timeline.duration_ns(call) > ns) {
            suspects.insert(facts.nodes.end(call), (call, least_ns));
        }
        if is_lost || !facts.streams.launched_by(call).is_empty() {
            thread.has_lost_last = is_lost;
        }
        found.n_lost_launches += u64::from(is_lost);
    }
    suspects
}

/// What a thread did so far.
#[derive(Clone, Default)]
struct Thread {
    is_capturing: bool,
    /// Whether the work of its newest launch is missing.
    has_lost_last: bool,
}

/// Whether the work of a launch is missing. Many profiles have memsets without their work.
fn is_lost(call: Order, role: ApiRole, facts: &Facts<'_>) -> bool {
    let launches = matches!(role, ApiRole::Launch | ApiRole::Copy | ApiRole::BlockingCopy);
    let event = facts.timeline.event(call);
    launches
        && facts.streams.launched_by(call).is_empty()
        && facts.tables.events.correlation(event).is_some_and(|number| number > 0)
        && !facts.name(call).contains("Memset")
}
