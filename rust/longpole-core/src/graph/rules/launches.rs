//! Edges from a launch call to its GPU activity.
//!
//! A call that begins after its activity shows that the clocks disagree. The edge is still added,
//! so that it is listed among the violations, and the activity follows the previous node of the
//! thread.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role};
use crate::ids::Order;

/// Adds the edges from the call of a GPU activity to its start.
pub(super) fn edges(work: Order, facts: &Facts<'_>, edges: &mut Vec<Edge>) {
    let (timeline, nodes) = (facts.timeline, facts.nodes);
    let Some(call) = timeline.launcher(work) else { return };
    let start = nodes.start(work);
    let mut push = |source, named, event| {
        edges.push(Edge::new((source, start), named, Some(event), Evidence::Correlation));
    };
    if timeline.end_ns(call) <= timeline.start_ns(work) {
        push(nodes.end(call), (Kind::Launch, Role::Launch), work);
    } else if timeline.start_ns(call) <= timeline.start_ns(work) {
        push(nodes.start(call), (Kind::Runtime, Role::LaunchInside), call);
    } else {
        push(nodes.start(call), (Kind::Launch, Role::Launch), work);
        if let Some(before) = facts.last_of_thread(timeline.lane(call), timeline.start_ns(work)) {
            push(before, (Kind::ClockSkew, Role::Clock), work);
        }
    }
}
