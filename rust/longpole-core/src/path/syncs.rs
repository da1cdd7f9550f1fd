//! Synchronization dependencies inside a window.

use super::schedule::Schedule;
use super::walk::Path;
use crate::graph::{Evidence, Graph, Kind};
use crate::ids::EventId;

/// A GPU activity that a call or another GPU activity had to wait for, or might have had to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncDependency {
    /// The awaited activity.
    pub source: EventId,
    /// The waiting event.
    pub target: EventId,
    /// The kind of the wait.
    pub kind: Kind,
    /// How the dependency is known.
    pub evidence: Evidence,
    /// Whether the wait determined when the target continued.
    pub waited: bool,
    /// Whether the dependency lies on the path.
    pub on_path: bool,
}

/// Returns the waits that end inside the window of a path, at the times of a schedule, in content
/// order of the waiting event, then of the awaited activity.
pub fn sync_dependencies(graph: &Graph, path: &Path, schedule: &Schedule) -> Vec<SyncDependency> {
    let mut on_path = path.edges.clone();
    on_path.sort_unstable();
    let mut found: Vec<_> = graph
        .edges
        .as_slice()
        .iter()
        .enumerate()
        .filter_map(|(number, edge)| {
            let kind = edge.role.waits()?;
            let time_ns = schedule.time_ns(edge.target, graph);
            let (source, target) = (graph.nodes.event(edge.source), graph.nodes.event(edge.target));
            let is_number = |other: &u32| (*other as usize).cmp(&number);
            let sync = SyncDependency {
                source: graph.timeline.event(source),
                target: graph.timeline.event(target),
                kind,
                evidence: edge.evidence,
                waited: schedule.reached_by(edge.target, graph) == Some(number),
                on_path: on_path.binary_search_by(is_number).is_ok(),
            };
            (path.start_ns <= time_ns && time_ns <= path.end_ns).then_some((target, source, sync))
        })
        .collect();
    found.sort_by_key(|&(target, source, _)| (target, source));
    found.into_iter().map(|(_, _, sync)| sync).collect()
}
