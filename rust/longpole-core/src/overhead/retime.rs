//! When every node of a graph comes without the cost of recording.

use crate::error::Result;
use crate::graph::{Edge, Graph};
use crate::progress::{Progress, report};

/// The times of all nodes where so much of what recording cost is taken off: each comes when the
/// last of its sources, and what the edge still takes, has come. Nodes to which nothing leads keep
/// their times.
///
/// # Errors
///
/// Only when `progress` asks to stop.
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

/// What is left of a piece of time. What took time still takes some, so that the order stays.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // of microseconds
fn left_ns(lag_ns: i64, cost_ns: i64, factor: f64) -> i64 {
    if cost_ns == 0 || lag_ns <= 1 {
        return lag_ns;
    }
    (lag_ns - (cost_ns as f64 * factor) as i64).max(1)
}
