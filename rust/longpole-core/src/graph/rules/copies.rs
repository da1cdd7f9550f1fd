//! Edges from a copy to the end of its call, if the copy had ended by then.
//!
//! The driver stages pageable memory, so such a call may return while the copy still runs.

use super::returns;
use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::Order;

/// Returns the edge from the copy into the end of its call.
pub(super) fn edge(copy: Order, call: Order, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    let pageable = facts.tables.pageable_ends(timeline.event(copy)).contains(&true);
    let blocks = pageable || !facts.name(call).contains("Async");
    let late_ns = timeline.end_ns(copy) - timeline.end_ns(call);
    if timeline.start_ns(copy) >= timeline.end_ns(call) {
        return None; // launched by the call, not waited for
    }
    if late_ns <= if blocks { limits::CLOCK_TOLERANCE_NS } else { 0 } {
        return Some(returns::edge(copy, call, Evidence::Inferred, facts));
    }
    let staged = pageable && timeline.start_ns(call) <= timeline.start_ns(copy);
    let nodes = (facts.nodes.start(copy), facts.nodes.end(call));
    let named = (Kind::Runtime, Role::Staging);
    staged.then(|| Edge::new(nodes, named, Some(call), Evidence::Inferred))
}
