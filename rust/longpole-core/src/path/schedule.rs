//! The time of every node and the edge by which it is reached: as observed, or after a change.

use crate::graph::Graph;
use crate::ids::{NO_ROW, NodeId};

/// The time of every node, and the index of the edge by which it is reached: as observed, or after
/// a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The time of each node; `None` for the observed times, which are not copied.
    pub(super) times_ns: Option<Vec<i64>>,
    /// The edge by which each node is reached, [`NO_ROW`] for none; `None` if these are the binding
    /// edges.
    pub(super) reached_by: Option<Vec<u32>>,
}

impl Schedule {
    /// Returns the observed schedule.
    pub fn observed() -> Self {
        Self::default()
    }

    /// Whether nodes are reached by the edge that finishes last, instead of by the most work.
    pub(super) fn is_by_time(&self) -> bool {
        self.times_ns.is_some() || self.reached_by.is_none()
    }

    /// Returns the time of each node.
    pub fn times_ns<'a>(&'a self, graph: &'a Graph) -> &'a [i64] {
        self.times_ns.as_deref().unwrap_or(graph.nodes.times_ns())
    }

    /// Returns the time of a node.
    pub fn time_ns(&self, node: NodeId, graph: &Graph) -> i64 {
        self.times_ns(graph)[node.row()]
    }

    /// Returns the index of the edge by which a node is reached.
    pub fn reached_by(&self, node: NodeId, graph: &Graph) -> Option<usize> {
        match &self.reached_by {
            Some(edges) => Some(edges[node.row()]).filter(|&it| it != NO_ROW).map(|it| it as usize),
            None => graph.edges.binding(node),
        }
    }
}
