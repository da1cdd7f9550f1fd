//! Who waited for whom inside a window.

use super::schedule::Schedule;
use super::walk::Path;
use crate::graph::{Evidence, Graph, Kind};
use crate::ids::EventId;

/// Device work that a call or other device work had to wait for, or might have had to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncDependency {
    /// What was waited for.
    pub source: EventId,
    /// What waited.
    pub target: EventId,
    /// How it waited.
    pub kind: Kind,
    /// How that is known.
    pub evidence: Evidence,
    /// Whether the wait decided when the target went on.
    pub waited: bool,
    /// Whether it lies on the path.
    pub on_path: bool,
}

/// The waits that end inside the window of a path, in the times of a schedule, in content
/// order of what waited, then of what was waited for.
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
