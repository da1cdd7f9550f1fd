//! When every node comes and what it is reached by: as observed, or after a change.

use crate::graph::Graph;
use crate::ids::{NO_ROW, NodeId};

/// When every node of a graph comes, and the number of the edge it is reached by: as observed,
/// or after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The time of each node; none where it is what was observed, which is not copied.
    pub(super) times_ns: Option<Vec<i64>>,
    /// The edge each node is reached by, [`NO_ROW`] for none; none where it is the one that binds.
    pub(super) reached_by: Option<Vec<u32>>,
}

impl Schedule {
    /// What was observed.
    pub fn observed() -> Self {
        Self::default()
    }

    /// Whether nodes are reached by what finishes last in these times, and not by the most work.
    pub(super) fn is_by_time(&self) -> bool {
        self.times_ns.is_some() || self.reached_by.is_none()
    }

    /// The time of each node.
    pub fn times_ns<'a>(&'a self, graph: &'a Graph) -> &'a [i64] {
        self.times_ns.as_deref().unwrap_or(graph.nodes.times_ns())
    }

    /// When a node comes.
    pub fn time_ns(&self, node: NodeId, graph: &Graph) -> i64 {
        self.times_ns(graph)[node.row()]
    }

    /// The number of the edge a node is reached by.
    pub fn reached_by(&self, node: NodeId, graph: &Graph) -> Option<usize> {
        match &self.reached_by {
            Some(edges) => Some(edges[node.row()]).filter(|&it| it != NO_ROW).map(|it| it as usize),
            None => graph.edges.binding(node),
        }
    }
}
