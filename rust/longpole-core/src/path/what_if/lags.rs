//! The least time that each edge needs.

use crate::graph::limits::{TYPICAL_PERCENT, UNDISTURBED_NS};
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
/// they never did. Where something else finished shortly before, its latency may be part of
/// the gap, which makes it longer: of roles that have only such edges, the shortest counts.
fn typical_latencies_ns(graph: &Graph) -> Vec<i64> {
    let times_ns = graph.nodes.times_ns();
    let mut all_ns = vec![Vec::new(); Role::ALL.len()];
    let mut alone_ns = all_ns.clone();
    for node in graph.nodes.ids() {
        let edges = &graph.edges.as_slice()[graph.edges.range(node)];
        let Some(binding) = edges.first().filter(|edge| !edge.role.is_self_time()) else {
            continue;
        };
        let gap_ns = binding.gap_ns(&graph.nodes);
        all_ns[binding.role as usize].push(gap_ns);
        let after_ns = |next: &Edge| binding.finished_ns(times_ns) - next.finished_ns(times_ns);
        if edges.get(1).is_none_or(|next| after_ns(next) >= UNDISTURBED_NS) {
            alone_ns[binding.role as usize].push(gap_ns);
        }
    }
    let typical = |(alone, all): (Vec<i64>, Vec<i64>)| {
        low_percentile(alone).or_else(|| all.into_iter().min()).unwrap_or(0)
    };
    alone_ns.into_iter().zip(all_ns).map(typical).collect()
}

fn low_percentile(mut gaps_ns: Vec<i64>) -> Option<i64> {
    let place = gaps_ns.len().checked_sub(1)? * TYPICAL_PERCENT / 100;
    Some(*gaps_ns.select_nth_unstable(place).1)
}
