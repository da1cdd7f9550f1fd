//! Edges of a task queue: a thread that launches for others begins each launch after it was
//! enqueued.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role};
use crate::link::{QueuedTask, queued_tasks};

/// Returns the edges from enqueue events to dequeue events.
pub(super) fn edges(facts: &Facts<'_>) -> Vec<Edge> {
    queued_tasks(facts.tables).into_iter().filter_map(|task| edge(task, facts)).collect()
}

/// Returns the edge from the end of the enqueue event, or from its start if the other thread did
/// not wait for its end.
fn edge(task: QueuedTask, facts: &Facts<'_>) -> Option<Edge> {
    let (timeline, nodes) = (facts.timeline, facts.nodes);
    let (enqueue, dequeue) = (timeline.order(task.enqueue)?, timeline.order(task.dequeue)?);
    if timeline.lane(enqueue) == timeline.lane(dequeue) {
        return None;
    }
    let is_over = timeline.end_ns(enqueue) <= timeline.start_ns(dequeue);
    let source = if is_over { nodes.end(enqueue) } else { nodes.start(enqueue) };
    let named = (Kind::Handover, Role::Handover);
    Some(Edge::new((source, nodes.start(dequeue)), named, Some(dequeue), Evidence::Correlation))
}
