//! The typical latency of the edges of each role.

use super::edges::{Edge, Edges};
use super::kinds::Role;
use super::limits::{TYPICAL_PERCENT, UNDISTURBED_NS};
use super::nodes::Nodes;
use crate::names::Names;

/// Returns the low percentile of the binding edges of each role, or 0 if none ever bound. If
/// something else finished shortly before, its latency may be part of the gap, which makes the gap
/// longer. For roles that only bind this way, the shortest gap of any edge counts.
pub(super) fn typical_ns(edges: &Edges, nodes: &Nodes) -> Vec<i64> {
    let times_ns = nodes.times_ns();
    let mut least_ns = vec![i64::MAX; Role::ALL.len()];
    let mut has_bound = vec![false; Role::ALL.len()];
    let mut alone_ns = vec![Vec::new(); Role::ALL.len()];
    for node in nodes.ids() {
        let edges = &edges.as_slice()[edges.range(node)];
        for edge in edges {
            let least_ns = &mut least_ns[edge.role as usize];
            *least_ns = (*least_ns).min(edge.gap_ns(nodes));
        }
        let Some(binding) = edges.first().filter(|edge| !edge.role.is_self_time()) else {
            continue;
        };
        has_bound[binding.role as usize] = true;
        let after_ns = |next: &Edge| binding.finished_ns(times_ns) - next.finished_ns(times_ns);
        if edges.get(1).is_none_or(|next| after_ns(next) >= UNDISTURBED_NS) {
            alone_ns[binding.role as usize].push(binding.gap_ns(nodes));
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
