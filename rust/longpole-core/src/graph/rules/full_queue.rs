//! Edges into launches that find the queue of their stream full and wait for room in it.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, first_of_last, limits};
use crate::ids::Order;

/// Returns the edge from the activity whose end made room; `first` is the activity that the call
/// launched.
pub(super) fn edge(call: Order, first: Order, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    if timeline.duration_ns(call) <= limits::LONG_LAUNCH_NS {
        return None;
    }
    let stream = &facts.streams.all[facts.streams.stream_of(first)];
    let (start_ns, end_ns) = (timeline.start_ns(call), timeline.end_ns(call));
    if stream.n_outstanding(start_ns, timeline) < limits::FULL_QUEUE_OPERATIONS {
        return None;
    }
    let was_before = |&(_, work): &(i64, Order)| timeline.submitted_ns(work) < start_ns;
    let (_, blocker) = first_of_last(stream.ending_in(start_ns, end_ns).filter(was_before))?;
    let nodes = (facts.nodes.end(blocker), facts.nodes.end(call));
    let named = (Kind::QueueFull, Role::QueueFull);
    Some(Edge::new(nodes, named, Some(call), Evidence::Inferred))
}
