//! The time of every node without the recording cost.

use super::costs::Costs;
use super::pieces::{At, Pieces};
use crate::error::Result;
use crate::graph::{Edge, Graph};
use crate::ids::NodeId;
use crate::path;
use crate::progress::{Progress, report};
use crate::stack::Nesting;
use crate::tables::Tables;

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

/// Returns the minimum latencies of the edges of a solution, for the largest and for the smallest
/// recording cost.
///
/// `graph` and `tables` are those of the solution, `recorded` the tables of the trace, and `factor`
/// that of the costs. No latency exceeds the recorded one.
#[must_use]
pub fn lag_bounds_ns(
    graph: &Graph,
    tables: &Tables,
    recorded: &Tables,
    nesting: &Nesting,
    (costs, factor): (&Costs, f64),
) -> [Vec<i64>; 2] {
    let lags_ns = path::lags_ns(graph);
    let pieces = Pieces::of(graph, tables, nesting, costs);
    let usual_ns = pieces.costs_ns(At::Usual);
    [At::Most, At::Least].map(|at| {
        let other_ns = pieces.costs_ns(at);
        let bound_ns = |(number, edge): (usize, &Edge)| {
            let latency_ns = lags_ns[number];
            let more_ns = scaled(usual_ns[number] - other_ns[number], factor);
            if more_ns == 0 || latency_ns < 1 {
                return latency_ns;
            }
            let [start_ns, end_ns] =
                [edge.source, edge.target].map(|node| recorded_ns(graph, recorded, node));
            (latency_ns + more_ns).min(end_ns - start_ns).max(1)
        };
        graph.edges.as_slice().iter().enumerate().map(bound_ns).collect()
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // of microseconds
fn scaled(time_ns: i64, factor: f64) -> i64 {
    (time_ns as f64 * factor) as i64
}

/// Returns the recorded time of a node.
fn recorded_ns(graph: &Graph, recorded: &Tables, node: NodeId) -> i64 {
    let event = graph.timeline.event(graph.nodes.event(node));
    let (start_ns, end_ns) = recorded.events.span(event).unwrap_or_default();
    if graph.nodes.is_end(node) { end_ns } else { start_ns }
}
