//! Opens a rank on the path again: the segments from one of its boundary nodes to another.

use super::model::ROOT;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::path::{Segment, segment};

/// A stretch of the path within one rank, by rows of its graph's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Where it begins, [`ROOT`] for the first event that it can be traced to.
    pub source: u32,
    /// Where it ends.
    pub target: u32,
}

/// The segments of a stretch, in order of time, as observed.
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

/// Adds a segment before all others; neighbours that differ in nothing but time become one.
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
