//! The part of a graph between two times.

use super::edges::Edges;
use super::graph::Graph;
use super::nodes::ThreadNodes;
use crate::ids::{EventId, NodeId, Order};

impl Graph {
    /// Returns the part of the graph between two times: the nodes in it, with the edges into them.
    ///
    /// The part also contains the events that these edges come from, and `also`. Edges into earlier
    /// nodes are left out, so that these keep their times in a what-if. Typical latencies are those
    /// of the whole graph.
    #[must_use]
    pub(crate) fn part(
        &self,
        (from_ns, until_ns): (i64, i64),
        also: impl Iterator<Item = EventId>,
    ) -> Self {
        let times_ns = self.nodes.times_ns();
        let first = times_ns.partition_point(|&time_ns| time_ns < from_ns);
        let behind = times_ns.partition_point(|&time_ns| time_ns <= until_ns).max(first);
        let within = first..behind;
        let inside = within.clone().map(NodeId::from_row);
        let edges =
            inside.clone().next().zip(inside.clone().next_back()).map_or(0..0, |(one, last)| {
                self.edges.range(one).start..self.edges.range(last).end
            });
        let edges = &self.edges.as_slice()[edges];
        let mut is_in = vec![false; self.timeline.len()];
        inside.for_each(|node| is_in[self.nodes.event(node).row()] = true);
        for edge in edges {
            let others = edge.event().into_iter().chain(edge.rival());
            for event in others.chain([self.nodes.event(edge.source)]) {
                is_in[event.row()] = true;
            }
        }
        also.filter_map(|event| self.timeline.order(event)).for_each(|it| is_in[it.row()] = true);
        for order in self.timeline.orders().rev() {
            if let Some(call) = self.timeline.launcher(order).filter(|_| is_in[order.row()]) {
                is_in[call.row()] = true;
            }
        }
        let (timeline, order_of) = self.timeline.part(&is_in);
        let (nodes, node_of) = self.nodes.part(&order_of);
        let new_order = |order: Order| Order::from_row(order_of[order.row()] as usize);
        let new_node = |node: NodeId| NodeId::from_row(node_of[node.row()] as usize);
        let edges = edges.iter().map(|edge| edge.renumbered(&new_node, &new_order)).collect();
        let missing = self.missing_activities.iter().filter(|order| is_in[order.row()]);
        Self {
            missing_activities: missing.map(|&order| new_order(order)).collect(),
            thread_nodes: ThreadNodes::of(&timeline, &nodes),
            edges: Edges::of(edges, &nodes),
            timeline,
            nodes,
            violations: Vec::new(),
            cut: Vec::new(),
            clock_shifts: self.clock_shifts.clone(),
            clock_slacks: self.clock_slacks.clone(),
            typical_ns: self.typical_ns.clone(),
            counts: self.counts,
        }
    }
}
