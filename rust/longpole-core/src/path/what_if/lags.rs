//! The least time that each edge needs.

use crate::graph::limits::TYPICAL_PERCENT;
use crate::graph::{Edge, Graph, Role};

/// What every edge adds to its source at the least, one row for each edge.
///
/// An edge that bound keeps what it showed. One that did not is older than its target:
/// its lag is what would remain of it had nothing else been in the way. No lag exceeds
/// what was seen and each binding edge keeps all of it, so that lags as they are give
/// every time back.
pub fn lags_ns(graph: &Graph) -> Vec<i64> {
    let typical = typical_latencies_ns(graph);
    let mut lags_ns = Vec::with_capacity(graph.edges.len());
    for node in graph.nodes.ids() {
        let edges = &graph.edges.as_slice()[graph.edges.range(node)];
        let Some((binding, others)) = edges.split_first() else { continue };
        lags_ns.push(binding.gap_ns(&graph.nodes));
        lags_ns.extend(others.iter().map(|edge| lag_ns(edge, binding, graph, &typical)));
    }
    lags_ns
}

fn lag_ns(edge: &Edge, binding: &Edge, graph: &Graph, typical: &[i64]) -> i64 {
    if !edge.role.is_self_time() {
        return edge.gap_ns(&graph.nodes).min(typical[edge.role as usize]);
    }
    match binding.role {
        Role::Handover => 0,
        _ => graph.nodes.time_ns(edge.target) - binding.finished_ns(graph.nodes.times_ns()),
    }
}

/// For each role the low percentile of what its edges took where they bound, 0 where
/// they never did.
fn typical_latencies_ns(graph: &Graph) -> Vec<i64> {
    let mut gaps_ns = vec![Vec::new(); Role::ALL.len()];
    for node in graph.nodes.ids() {
        if let Some(number) = graph.edges.binding(node) {
            let edge = &graph.edges.as_slice()[number];
            if !edge.role.is_self_time() {
                gaps_ns[edge.role as usize].push(edge.gap_ns(&graph.nodes));
            }
        }
    }
    let percentile = |mut gaps: Vec<i64>| {
        let place = gaps.len().checked_sub(1)? * TYPICAL_PERCENT / 100;
        Some(*gaps.select_nth_unstable(place).1)
    };
    gaps_ns.into_iter().map(|gaps| percentile(gaps).unwrap_or(0)).collect()
}
