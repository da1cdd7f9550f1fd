//! The time of every node and the edge by which it is reached: as observed, or after a change.

use super::windows::Window;
use crate::graph::{Edge, Graph, Role};
use crate::ids::{NO_ROW, NodeId, row_in_column};

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

/// Reaches every node by the chain with the most work inside a window. Waiting and order have
/// weight 0, and a call that waited has only the work beyond its wait. The binding order decides
/// between chains of equal work.
///
/// This is the longest path as in project planning. The binding chain is the one that determined
/// the observed times; this one is only for comparison.
pub fn longest(graph: &Graph, window: &Window) -> Schedule {
    let mut work_ns = vec![0_i64; graph.nodes.len()];
    let mut reached_by = vec![NO_ROW; graph.nodes.len()];
    for node in graph.nodes.ids() {
        let mut most = i64::MIN;
        for number in graph.edges.range(node) {
            let edge = &graph.edges.as_slice()[number];
            let reached = work_ns[edge.source.row()].saturating_add(weight_ns(edge, graph, window));
            if reached > most {
                most = reached;
                reached_by[node.row()] = row_in_column(number);
            }
        }
        work_ns[node.row()] = most.max(0);
    }
    Schedule { times_ns: None, reached_by: Some(reached_by) }
}

/// Returns the part of an edge's work that lies in the window.
fn weight_ns(edge: &Edge, graph: &Graph, window: &Window) -> i64 {
    if !edge.kind.is_work() {
        return 0;
    }
    let clipped = |time_ns: i64| time_ns.clamp(window.start_ns, window.end_ns);
    let from_ns = graph.nodes.time_ns(edge.source).max(waited_until_ns(edge, graph));
    clipped(graph.nodes.time_ns(edge.target)) - clipped(from_ns)
}

/// Returns the end of the wait of the event at the target of an edge, if it waited.
fn waited_until_ns(edge: &Edge, graph: &Graph) -> i64 {
    let binding = graph.edges.binding(edge.target).map(|number| &graph.edges.as_slice()[number]);
    let is_wait = |role: Role| role.waits().is_some() || role == Role::Handover;
    let wait = binding.filter(|binding| edge.role.is_self_time() && is_wait(binding.role));
    wait.map_or(i64::MIN, |wait| wait.finished_ns(graph.nodes.times_ns()))
}
