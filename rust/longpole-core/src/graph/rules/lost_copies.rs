//! Copies to pageable memory whose call is missing from the trace.
//!
//! Such a call returns only when the copy is complete. If the thread that launches on the stream
//! has no events from before the copy until just after it, and no recorded call covers that time,
//! the thread waited for the copy: its next node follows the copy.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowMap};

/// Returns the edges from such copies to the next node of their thread. `chains` are the edges of
/// threads.
pub(super) fn edges(chains: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    let resumed: RowMap<NodeId, Order> =
        facts.timeline.orders().filter_map(|work| resumed(work, facts)).collect();
    if resumed.is_empty() {
        return Vec::new();
    }
    let wait = |order: &Edge| {
        let copy = *resumed.get(&order.target)?;
        let outside_calls = order.role == Role::ThreadOrder && order.kind != Kind::Runtime;
        let nodes = (facts.nodes.end(copy), order.target);
        let named = (Kind::SyncReturn, Role::Sync);
        outside_calls.then(|| Edge::new(nodes, named, order.event(), Evidence::Inferred))
    };
    chains.iter().filter_map(wait).collect()
}

/// Returns the node at which the thread of a copy without a call continued, just after the copy.
fn resumed(copy: Order, facts: &Facts<'_>) -> Option<(NodeId, Order)> {
    let timeline = facts.timeline;
    let is_lost = timeline.kind(copy).is_device_work()
        && facts.streams.kind_of(copy) == Kind::Copy
        && timeline.launcher(copy).is_none();
    if !is_lost || !facts.tables.pageable_ends(timeline.event(copy)).contains(&true) {
        return None;
    }
    let thread = timeline.lane(facts.streams.linked_before(copy)?);
    let nodes = facts.thread_nodes().of_lane(thread);
    let end_ns = timeline.end_ns(copy);
    let next = nodes.partition_point(|&node| facts.nodes.time_ns(node) < end_ns);
    let (before, next) = (*nodes.get(next.checked_sub(1)?)?, *nodes.get(next)?);
    let is_silent = facts.nodes.time_ns(before) < timeline.start_ns(copy);
    let is_soon = facts.nodes.time_ns(next) - end_ns <= limits::SYNC_RETURN_NS;
    (is_silent && is_soon).then_some((next, copy))
}
