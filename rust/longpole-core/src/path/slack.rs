//! Slack: how much later an event may end before the end of the window moves.

use super::schedule::Schedule;
use super::walk::last_node;
use super::what_if::REMOVED;
use super::windows::Window;
use crate::graph::{Edge, Graph};
use crate::tables::NO_INTEGER;

/// Returns the slack of each event of the trace: the minimum over its end and over all edges whose
/// time belongs to the event. Events on the path have slack 0. [`NO_INTEGER`] if no edges lead from
/// the event to the end of the window.
///
/// `latencies_ns` are the minimum latencies of [`latencies_ns`](super::latencies_ns), or those after
/// a change, to match the schedule.
pub fn slack_ns(
    graph: &Graph,
    window: &Window,
    schedule: &Schedule,
    latencies_ns: &[i64],
    n_events: usize,
) -> Vec<i64> {
    let mut slack = vec![NO_INTEGER; n_events];
    let Some(latest) = latest_ns(graph, window, schedule, latencies_ns) else { return slack };
    for order in graph.timeline.orders() {
        let end = graph.nodes.end(order);
        if latest[end.row()] != NO_INTEGER {
            let event = graph.timeline.event(order);
            slack[event.row()] = latest[end.row()].saturating_sub(schedule.time_ns(end, graph));
        }
    }
    for node in graph.nodes.ids().filter(|node| latest[node.row()] != NO_INTEGER) {
        for number in graph.edges.range(node).filter(|&number| latencies_ns[number] != REMOVED) {
            let edge = &graph.edges.as_slice()[number];
            let Some(order) = edge.event() else { continue };
            let source_ns = schedule.time_ns(edge.source, graph);
            let finished_ns =
                source_ns.saturating_add(schedule.latency_ns(number, edge, graph, latencies_ns));
            let left_ns = latest[node.row()].saturating_sub(finished_ns);
            let least = &mut slack[graph.timeline.event(order).row()];
            if *least == NO_INTEGER || left_ns < *least {
                *least = left_ns;
            }
        }
    }
    slack
}

impl Schedule {
    /// Returns the latency that an edge adds to its source: its full time if its target is reached
    /// by it.
    fn latency_ns(&self, number: usize, edge: &Edge, graph: &Graph, latencies_ns: &[i64]) -> i64 {
        if self.reached_by(edge.target, graph) == Some(number) {
            self.time_ns(edge.target, graph) - self.time_ns(edge.source, graph)
        } else {
            latencies_ns[number]
        }
    }
}

/// Returns the latest possible time of each node.
fn latest_ns(
    graph: &Graph,
    window: &Window,
    schedule: &Schedule,
    latencies_ns: &[i64],
) -> Option<Vec<i64>> {
    let end = last_node(graph, window, schedule)?;
    let mut latest = vec![NO_INTEGER; graph.nodes.len()];
    latest[end.row()] = schedule.time_ns(end, graph);
    for node in graph.nodes.ids().rev() {
        let at_latest = latest[node.row()];
        if at_latest == NO_INTEGER {
            continue;
        }
        for number in graph.edges.range(node).filter(|&number| latencies_ns[number] != REMOVED) {
            let edge = &graph.edges.as_slice()[number];
            let source = &mut latest[edge.source.row()];
            let source_latest =
                at_latest.saturating_sub(schedule.latency_ns(number, edge, graph, latencies_ns));
            if *source == NO_INTEGER || source_latest < *source {
                *source = source_latest;
            }
        }
    }
    Some(latest)
}
