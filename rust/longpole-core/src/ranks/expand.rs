//! Expands a part of a cross-rank path into the segments within one rank.

use super::model::ROOT;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::path::{Segment, segment};

/// A part of the path within one rank, from one node of its graph to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Source node; [`ROOT`] for the first event to which the path leads.
    pub source: u32,
    /// Target node.
    pub target: u32,
}

/// Returns the segments of such a part, in order of time, as observed.
pub fn expand(graph: &Graph, hop: Hop) -> Vec<Segment> {
    let mut node = NodeId::from_row(hop.target as usize);
    let mut found: Vec<Segment> = Vec::new();
    while hop.source == ROOT || node.row() != hop.source as usize {
        let Some(number) = graph.edges.binding(node) else { break };
        let edge = &graph.edges.as_slice()[number];
        push(&mut found, segment(graph, edge, graph.nodes.times_ns()));
        node = edge.source;
    }
    found.reverse();
    found
}

/// Adds a segment before all others; neighbours that differ only in time are merged.
fn push(found: &mut Vec<Segment>, segment: Segment) {
    if segment.start_ns == segment.end_ns {
        return;
    }
    let alike = |it: &Segment| (it.kind, it.event, it.evidence);
    match found.last_mut() {
        Some(behind) if alike(behind) == alike(&segment) => {
            behind.start_ns = segment.start_ns;
            behind.certainty = behind.certainty.max(segment.certainty);
        }
        _ => found.push(segment),
    }
}
