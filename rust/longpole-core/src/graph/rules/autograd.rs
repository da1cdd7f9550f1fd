//! The forward thread and the backward thread take turns.

use std::collections::HashMap;

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Nodes, Role};
use crate::ids::{NodeId, Order};

/// Lets the backward thread begin with the forward thread's call, and that one go on
/// after it.
///
/// A gap of the forward thread in which the backward thread works is waiting. Time of
/// an operator is waiting only if it holds the whole work, from idle to idle.
pub(super) fn edges(chains: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    let (timeline, nodes, pairs) = (facts.timeline, facts.nodes, &facts.autograd);
    let mut chain_of_lane: HashMap<usize, Vec<Edge>> = HashMap::new();
    for pair in pairs {
        chain_of_lane.entry(pair.forward.row()).or_default();
        chain_of_lane.entry(pair.backward.row()).or_default();
    }
    if chain_of_lane.is_empty() {
        return Vec::new();
    }
    for edge in chains {
        if let Some(chain) = chain_of_lane.get_mut(&timeline.lane(nodes.event(edge.source))) {
            chain.push(*edge);
        }
    }
    let mut found = Vec::new();
    for pair in pairs {
        let bursts = bursts(&chain_of_lane[&pair.backward.row()]);
        for gap in &chain_of_lane[&pair.forward.row()] {
            if matches!(gap.kind, Kind::HostGap | Kind::Operator) {
                found.extend(turn(gap, &bursts, nodes).into_iter().flatten());
            }
        }
    }
    found
}

/// A stretch in which a thread works without a gap, from node to node.
#[derive(Clone, Copy)]
struct Burst {
    start: NodeId,
    end: NodeId,
}

fn bursts(chain: &[Edge]) -> Vec<Burst> {
    let mut bursts: Vec<Burst> = Vec::new();
    for edge in chain.iter().filter(|edge| edge.kind != Kind::HostGap) {
        match bursts.last_mut() {
            Some(last) if last.end == edge.source => last.end = edge.target,
            _ => bursts.push(Burst { start: edge.source, end: edge.target }),
        }
    }
    bursts
}

/// The edges there and back of a gap in which the backward thread works.
fn turn(gap: &Edge, bursts: &[Burst], nodes: &Nodes) -> [Option<Edge>; 2] {
    let (gap_start_ns, gap_end_ns) = (nodes.time_ns(gap.source), nodes.time_ns(gap.target));
    let first = bursts.partition_point(|burst| nodes.time_ns(burst.end) <= gap_start_ns);
    let behind = bursts.partition_point(|burst| nodes.time_ns(burst.start) < gap_end_ns);
    if first >= behind {
        return [None, None];
    }
    let (first, last) = (bursts[first], bursts[behind - 1]);
    let idle_before = nodes.time_ns(first.start) >= gap_start_ns;
    let idle_after = nodes.time_ns(last.end) <= gap_end_ns;
    if gap.kind == Kind::Operator && !(idle_before && idle_after) {
        return [None, None];
    }
    [
        idle_before.then(|| handover((gap.source, first.start), gap.event())),
        idle_after.then(|| handover((last.end, gap.target), gap.event())),
    ]
}

fn handover(nodes: (NodeId, NodeId), label: Option<Order>) -> Edge {
    Edge::new(nodes, (Kind::Handover, Role::Handover), label, Evidence::Inferred)
}
