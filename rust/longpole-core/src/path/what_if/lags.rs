//! The minimum latency of each edge.

use crate::graph::{Edge, Graph, Role};

/// Returns the minimum latency that each edge adds to its source, one row per edge.
///
/// A binding edge keeps its observed time. For other edges, the latency is the time that would
/// remain without anything else in the way. No latency exceeds the observed time, and some edge
/// into each node keeps all of it, so that unchanged latencies reproduce every observed time.
///
/// If the predecessor of an activity ended while its launch was on the way, the activity began when
/// the launch arrived. In that case the launch keeps its full time, and the predecessor has the
/// typical latency.
pub fn lags_ns(graph: &Graph) -> Vec<i64> {
    let mut lags_ns = Vec::with_capacity(graph.edges.len());
    for node in graph.nodes.ids() {
        let edges = &graph.edges.as_slice()[graph.edges.range(node)];
        let Some((binding, others)) = edges.split_first() else { continue };
        let arriving = others.iter().position(|it| graph.was_on_the_way(it, binding));
        lags_ns.push(match arriving {
            Some(_) => graph.typical_ns(binding.role),
            None => binding.gap_ns(&graph.nodes),
        });
        lags_ns.extend(others.iter().enumerate().map(|(place, edge)| match arriving {
            Some(launch) if launch == place => edge.gap_ns(&graph.nodes),
            _ => lag_ns(edge, binding, graph),
        }));
    }
    lags_ns
}

fn lag_ns(edge: &Edge, binding: &Edge, graph: &Graph) -> i64 {
    if !edge.role.is_self_time() {
        return edge.gap_ns(&graph.nodes).min(graph.typical_ns(edge.role));
    }
    match binding.role {
        Role::Handover => 0,
        _ => graph.nodes.time_ns(edge.target) - binding.finished_ns(graph.nodes.times_ns()),
    }
}
