//! The least time that each edge needs.

use crate::graph::{Edge, Graph, Role};

/// What every edge adds to its source at the least, one row for each edge.
///
/// An edge that bound keeps what it showed. One that did not is older than its target:
/// its lag is what would remain of it had nothing else been in the way. No lag exceeds
/// what was seen and some edge into each node keeps all of it, so that lags as they are
/// give every time back.
///
/// Work whose predecessor ended while its launch was on the way began when the launch
/// arrived: there the launch keeps all of its time, and the predecessor what is typical.
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
