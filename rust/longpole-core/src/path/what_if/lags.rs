//! The least time that each edge needs.

use crate::graph::limits::{TYPICAL_PERCENT, UNDISTURBED_NS};
use crate::graph::{Edge, Graph, Role};
use crate::names::Names;

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
    let typical = typical_latencies_ns(graph);
    let mut lags_ns = Vec::with_capacity(graph.edges.len());
    for node in graph.nodes.ids() {
        let edges = &graph.edges.as_slice()[graph.edges.range(node)];
        let Some((binding, others)) = edges.split_first() else { continue };
        let arriving = others.iter().position(|it| was_on_the_way(it, binding, graph, &typical));
        lags_ns.push(match arriving {
            Some(_) => typical[binding.role as usize],
            None => binding.gap_ns(&graph.nodes),
        });
        lags_ns.extend(others.iter().enumerate().map(|(place, edge)| match arriving {
            Some(launch) if launch == place => edge.gap_ns(&graph.nodes),
            _ => lag_ns(edge, binding, graph, &typical),
        }));
    }
    lags_ns
}

/// A gap that is so many times as long as is typical has another reason.
const ODDLY_LONG: i64 = 2;

/// Whether work was launched so shortly before that its launch and not what bound it says how
/// long it took to begin.
fn was_on_the_way(launch: &Edge, binding: &Edge, graph: &Graph, typical: &[i64]) -> bool {
    let typical_ns = typical[binding.role as usize];
    matches!(launch.role, Role::Launch | Role::LaunchInside)
        && launch.gap_ns(&graph.nodes) <= UNDISTURBED_NS
        && matches!(binding.role, Role::StreamOrder | Role::EventWait | Role::GraphOrder)
        && typical_ns > 0
        && binding.gap_ns(&graph.nodes) / ODDLY_LONG > typical_ns
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
/// the gap, which makes it longer: of roles that bound only so, the shortest gap counts, of
/// whatever edge.
fn typical_latencies_ns(graph: &Graph) -> Vec<i64> {
    let times_ns = graph.nodes.times_ns();
    let mut least_ns = vec![i64::MAX; Role::ALL.len()];
    let mut has_bound = vec![false; Role::ALL.len()];
    let mut alone_ns = vec![Vec::new(); Role::ALL.len()];
    for node in graph.nodes.ids() {
        let edges = &graph.edges.as_slice()[graph.edges.range(node)];
        for edge in edges {
            let least_ns = &mut least_ns[edge.role as usize];
            *least_ns = (*least_ns).min(edge.gap_ns(&graph.nodes));
        }
        let Some(binding) = edges.first().filter(|edge| !edge.role.is_self_time()) else {
            continue;
        };
        has_bound[binding.role as usize] = true;
        let after_ns = |next: &Edge| binding.finished_ns(times_ns) - next.finished_ns(times_ns);
        if edges.get(1).is_none_or(|next| after_ns(next) >= UNDISTURBED_NS) {
            alone_ns[binding.role as usize].push(binding.gap_ns(&graph.nodes));
        }
    }
    let least = |role: usize| if has_bound[role] { least_ns[role] } else { 0 };
    let typical = |(role, alone)| low_percentile(alone).unwrap_or_else(|| least(role));
    alone_ns.into_iter().enumerate().map(typical).collect()
}

fn low_percentile(mut gaps_ns: Vec<i64>) -> Option<i64> {
    let place = gaps_ns.len().checked_sub(1)? * TYPICAL_PERCENT / 100;
    Some(*gaps_ns.select_nth_unstable(place).1)
}
