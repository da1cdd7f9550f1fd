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
    pub fn retimed(self, tables: &Tables) -> Self {
        let Self { timeline: before, nodes: nodes_before, edges, counts, .. } = self;
        drop(self.thread_nodes); // a second graph needs memory
        let (timeline, order_of) = before.retimed(tables);
        drop(before);
        let nodes = Nodes::of(&timeline);
        let node_of = |node: NodeId| {
            let order = order_of[nodes_before.event(node).row()];
            if nodes_before.is_end(node) { nodes.end(order) } else { nodes.start(order) }
        };
        let renumber = |edges: &mut [Edge]| {
            for edge in edges {
                *edge = edge.renumbered(&node_of, &|order: Order| order_of[order.row()]);
            }
        };
        let (mut edges, mut violations, mut cut) = (edges.into_rows(), self.violations, self.cut);
        renumber(&mut edges);
        renumber(&mut violations);
        renumber(&mut cut);
        let mut lost_launches: Vec<_> =
            self.lost_launches.iter().map(|order| order_of[order.row()]).collect();
        lost_launches.sort_unstable();
        drop((nodes_before, order_of));
        let thread_nodes = ThreadNodes::of(&timeline, &nodes);
        let graph = Self::of((timeline, nodes, thread_nodes), edges, counts);
        Self {
            lost_launches,
            violations,
            cut,
            counts,
            clock_shifts: self.clock_shifts,
            clock_slacks: self.clock_slacks,
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
