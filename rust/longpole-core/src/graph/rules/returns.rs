//! Edges from an activity to the end of the call that waited for it.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::Order;

/// Returns the edge from an activity to the end of its call. An activity whose timestamps end
/// slightly later is clipped.
pub(super) fn edge(producer: Order, call: Order, evidence: Evidence, facts: &Facts<'_>) -> Edge {
    let timeline = facts.timeline;
    let late_ns = timeline.end_ns(producer) - timeline.end_ns(call);
    let target = facts.nodes.end(call);
    if 0 < late_ns
        && late_ns <= limits::CLOCK_TOLERANCE_NS
        && timeline.start_ns(producer) < timeline.end_ns(call)
    {
        let mut edge = facts.inside_edge(producer, target, Role::SyncInside);
        edge.evidence = evidence;
        return edge;
    }
    let named = (Kind::SyncReturn, Role::Sync);
    Edge::new((facts.nodes.end(producer), target), named, Some(call), evidence)
}
