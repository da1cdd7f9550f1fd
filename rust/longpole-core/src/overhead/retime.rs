//! The time of every node without the recording cost.

use crate::error::Result;
use crate::graph::{Edge, Graph};
use crate::progress::{Progress, report};

/// Returns the times of all nodes after `factor` times the recording cost is subtracted. Each node
/// happens when its last source and the remaining time of that edge have passed. Nodes without
/// incoming edges keep their times.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub(super) fn times_ns(
    graph: &Graph,
    lags_ns: &[i64],
    costs_ns: &[i64],
    factor: f64,
    progress: Progress<'_>,
) -> Result<Vec<i64>> {
    let mut times_ns = graph.nodes.times_ns().to_vec();
    let edges = graph.edges.as_slice();
    for node in graph.nodes.ids() {
        if node.row() % (1 << 16) == 0 {
            report(progress, node.row() as u64)?;
        }
        let reached_ns = |number: usize| {
            let edge: &Edge = &edges[number];
            times_ns[edge.source.row()].saturating_add(left_ns(
                lags_ns[number],
                costs_ns[number],
                factor,
            ))
        };
        if let Some(time_ns) = graph.edges.range(node).map(reached_ns).max() {
            times_ns[node.row()] = time_ns;
        }
    }
    Ok(times_ns)
}

/// Returns the remaining part of an edge's time. It stays above zero if the edge took time, so that
/// the order is kept.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // of microseconds
fn left_ns(lag_ns: i64, cost_ns: i64, factor: f64) -> i64 {
    if cost_ns == 0 || lag_ns <= 1 {
        return lag_ns;
    }
    (lag_ns - (cost_ns as f64 * factor) as i64).max(1)
}
