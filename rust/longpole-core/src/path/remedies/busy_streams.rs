//! The minimum busy time of streams: no change to anything else makes the windows shorter.
//!
//! This needs no launches or links, because the activities of a stream run one after the other.

use super::model::Side;
use super::question::Question;
use crate::graph::{Edge, Kind, Role};
use crate::intervals::Spans;
use crate::names::Names;

/// The time of the busiest stream, summed over all windows, in total and without each side.
#[derive(Debug, Clone, Default)]
pub(super) struct BusyStreams {
    as_is_ns: i64,
    without_ns: Vec<i64>,
}

impl BusyStreams {
    pub(super) fn of(question: &Question<'_>) -> Self {
        let works = works_of_lanes(question);
        let busiest_ns = |counts: &dyn Fn(Kind) -> bool| {
            works.iter().map(|lane| busy_ns(lane, counts, question)).max().unwrap_or(0)
        };
        let without = |side: &Side| busiest_ns(&|kind| !side.has(kind));
        Self {
            as_is_ns: busiest_ns(&|_| true),
            without_ns: Side::ALL.iter().map(without).collect(),
        }
    }

    /// Returns the known minimum time of all windows without some sides.
    pub(super) fn least_ns(&self, removed: &[Side]) -> i64 {
        match removed {
            [] => self.as_is_ns,
            [side] => self.without_ns[*side as usize],
            _ => 0,
        }
    }
}

/// A GPU activity: its kind, start and end.
type Work = (Kind, i64, i64);

fn works_of_lanes(question: &Question<'_>) -> Vec<Vec<Work>> {
    let (graph, timeline) = (question.graph, &question.graph.timeline);
    let mut of_lane: Vec<Vec<Work>> = Vec::new();
    let is_work = |edge: &&Edge| matches!(edge.role, Role::DeviceWork | Role::OverlapTail);
    for edge in graph.edges.as_slice().iter().filter(is_work) {
        let work = graph.nodes.event(edge.target);
        let lane = timeline.lane(work);
        of_lane.resize(of_lane.len().max(lane + 1), Vec::new());
        of_lane[lane].push((edge.kind, timeline.start_ns(work), timeline.end_ns(work)));
    }
    of_lane
}

fn busy_ns(works: &[Work], counts: &dyn Fn(Kind) -> bool, question: &Question<'_>) -> i64 {
    let counted = works.iter().filter(|work| counts(work.0));
    let busy = Spans::union_of(counted.map(|&(_, start_ns, end_ns)| (start_ns, end_ns)));
    let windows = question.scope.windows.iter();
    windows.map(|window| busy.length_within_ns(window.start_ns, window.end_ns)).sum()
}
