//! The edge by which each node is reached after a change.

use std::cmp::Reverse;

use super::changes::REMOVED;
use crate::graph::Graph;
use crate::ids::{NO_ROW, NodeId, row_in_column};

/// Returns the edge by which each node is reached at new times, [`NO_ROW`] for none.
///
/// Among the edges that reach a node exactly, the binding order decides.
pub(super) fn reached_by(graph: &Graph, lags_ns: &[i64], times_ns: &[i64]) -> Vec<u32> {
    let new = Retimed { graph, lags_ns, times_ns };
    graph.nodes.ids().map(|node| new.reached_by(node).map_or(NO_ROW, row_in_column)).collect()
}

/// The times and minimum latencies after a change.
struct Retimed<'a> {
    graph: &'a Graph,
    lags_ns: &'a [i64],
    times_ns: &'a [i64],
}

impl Retimed<'_> {
    fn reached_by(&self, node: NodeId) -> Option<usize> {
        let edges = self.graph.edges.as_slice();
        let mut range = self.graph.edges.range(node);
        let latest_ns = range.clone().filter_map(|number| self.reached_ns(number)).max()?;
        if range.len() == 1 {
            return range.next();
        }
        // An edge that bound, and still has its full time, still binds, although its latency may be
        // smaller.
        let bound = range.start;
        let shows_as_much = self.lags_ns[bound] > 0
            && self.times_ns[edges[bound].source.row()]
                .saturating_add(edges[bound].gap_ns(&self.graph.nodes))
                == latest_ns;
        let reaches = |number: &usize| {
            self.reached_ns(*number) == Some(latest_ns) || (*number == bound && shows_as_much)
        };
        // The edges are in binding order of the observed times. Only the finishing times of their
        // sources can change that order.
        range.filter(reaches).min_by_key(|&number| {
            let nodes = &self.graph.nodes;
            let (_, class, source, is_end, role) =
                edges[number].binding_order(nodes, nodes.times_ns());
            (Reverse(edges[number].finished_ns(self.times_ns)), class, source, is_end, role)
        })
    }

    fn reached_ns(&self, number: usize) -> Option<i64> {
        let lag_ns = Some(self.lags_ns[number]).filter(|&lag_ns| lag_ns != REMOVED)?;
        let source = self.graph.edges.as_slice()[number].source;
        Some(self.times_ns[source.row()].saturating_add(lag_ns))
    }
}
