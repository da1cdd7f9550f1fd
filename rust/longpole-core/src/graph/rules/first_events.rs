//! Edges into the first event of a thread, from the last event of the main thread of its process.
//!
//! The cause of the first event of a thread is often not recorded. If no other edge leads to its
//! first node, the main thread is assumed to have started or woken it, up to a millisecond before;
//! a longer time is unexplained. Any other edge takes precedence.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::NodeId;

/// Returns the edges into the first nodes of threads to which no edge of `edges` leads.
pub(super) fn edges(edges: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    let mut has_reason = vec![false; facts.nodes.len()];
    for edge in edges {
        has_reason[edge.target.row()] = true;
    }
    let mut firsts: Vec<_> = facts.thread_nodes().firsts().collect();
    firsts.sort_unstable();
    firsts.retain(|node| !has_reason[node.row()]);
    firsts.into_iter().filter_map(|first| edge(first, facts)).collect()
}

fn edge(first: NodeId, facts: &Facts<'_>) -> Option<Edge> {
    let thread = facts.timeline.lane(facts.nodes.event(first));
    let main = facts.main_thread_of(thread).filter(|&main| main != thread)?;
    let nodes = facts.thread_nodes().of_lane(main);
    let last = nodes.partition_point(|&node| node < first).checked_sub(1)?;
    let gap_ns = facts.nodes.time_ns(first) - facts.nodes.time_ns(nodes[last]);
    let is_near = gap_ns <= limits::THREAD_START_NS;
    let (named, evidence) = if is_near {
        ((Kind::Handover, Role::Handover), Evidence::Inferred)
    } else {
        ((Kind::Unexplained, Role::NoReason), Evidence::None)
    };
    Some(Edge::new((nodes[last], first), named, None, evidence))
}
