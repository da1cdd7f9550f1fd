//! Moves the events of a graph to other times and keeps its edges.

use super::edges::Edge;
use super::graph::Graph;
use super::nodes::Nodes;
use super::thread_nodes::ThreadNodes;
use crate::ids::{EventId, NodeId, Order};
use crate::tables::Tables;

impl Graph {
    /// Returns the graph of the same events at the times in `tables`. Edges keep their roles; of
    /// those into a node, the one that finishes last at the new times binds.
    ///
    /// `tables` are the tables of this graph with other times. The timestamp shifts of devices stay
    /// the same.
    #[must_use]
    pub fn retimed(&self, tables: &Tables) -> Self {
        let (timeline, order_of) = self.timeline.retimed(tables);
        let nodes = Nodes::of(&timeline);
        let thread_nodes = ThreadNodes::of(&timeline, &nodes);
        let node_of = |node: NodeId| {
            let order = order_of[self.nodes.event(node).row()];
            if self.nodes.is_end(node) { nodes.end(order) } else { nodes.start(order) }
        };
        let renumbered =
            |edge: &Edge| edge.renumbered(&node_of, &|order: Order| order_of[order.row()]);
        let edges = self.edges.as_slice().iter().map(renumbered).collect();
        let violations: Vec<_> = self.violations.iter().map(renumbered).collect();
        let cut: Vec<_> = self.cut.iter().map(renumbered).collect();
        let mut lost_launches: Vec<_> =
            self.lost_launches.iter().map(|order| order_of[order.row()]).collect();
        lost_launches.sort_unstable();
        let graph = Self::of((timeline, nodes, thread_nodes), edges, self.counts);
        Self {
            lost_launches,
            violations,
            cut,
            counts: self.counts,
            clock_shifts: self.clock_shifts.clone(),
            clock_slacks: self.clock_slacks.clone(),
            ..graph
        }
    }

    /// Returns the start and end of a trace event at new node times, as the clocks of the trace
    /// would have recorded them; `None` for events outside the graph.
    pub(crate) fn stamps_ns(&self, event: EventId, times_ns: &[i64]) -> Option<(i64, i64)> {
        let order = self.timeline.order(event)?;
        let shift_ns = self.timeline.clock_shift_ns(order);
        let stamp_ns = |node: NodeId| times_ns[node.row()] - shift_ns;
        Some((stamp_ns(self.nodes.start(order)), stamp_ns(self.nodes.end(order))))
    }
}
