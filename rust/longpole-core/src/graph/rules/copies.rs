//! Edges from a copy to the end of its call, if the copy had ended by then.
//!
//! The driver stages pageable memory itself, so such a call may return while the copy still
//! runs. Until then it stages the bytes that the copy moves, so its time is that of the copy:
//! without the copy there is no such call. It is not a wait: a call that does not wait for its turn
//! on the stream still stages.

use super::returns;
use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowMap};

/// Returns the edge from the copy into the end of its call.
pub(super) fn edge(copy: Order, call: Order, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    let pageable = facts.tables.pageable_ends(timeline.event(copy)).contains(&true);
    let blocks = pageable || !facts.name(call).contains("Async");
    let late_ns = timeline.end_ns(copy) - timeline.end_ns(call);
    if timeline.start_ns(copy) >= timeline.end_ns(call) {
        return None; // launched by the call, not waited for
    }
    if late_ns <= if blocks { limits::CLOCK_TOLERANCE_NS } else { 0 } {
        return Some(returns::edge(copy, call, Evidence::Inferred, facts));
    }
    let staged = pageable && timeline.start_ns(call) <= timeline.start_ns(copy);
    let nodes = (facts.nodes.start(copy), facts.nodes.end(call));
    let named = (Kind::Copy, Role::Staging);
    staged.then(|| Edge::new(nodes, named, Some(copy), Evidence::Inferred))
}

/// Assigns to the copy the time that its call needs for staging, regardless of its other waits.
/// `chains` are the edges of threads.
pub(super) fn name_staging(edges: &mut [Edge], n_chains: usize, facts: &Facts<'_>) {
    let (chains, others) = edges.split_at_mut(n_chains);
    let staging = others.iter().filter(|edge| edge.role == Role::Staging);
    let copies: RowMap<NodeId, Edge> = staging.map(|edge| (edge.target, *edge)).collect();
    if copies.is_empty() {
        return;
    }
    for chain in chains {
        let Some(staging) = copies.get(&chain.target) else { continue };
        if facts.nodes.time_ns(chain.source) <= facts.nodes.time_ns(staging.source) {
            let nodes = (chain.source, chain.target);
            let named = (Kind::Copy, Role::ThreadOrder);
            *chain = Edge::new(nodes, named, staging.event(), Evidence::Order);
        }
    }
}
