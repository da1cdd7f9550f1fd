//! A call that waited for work ends after that work.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::Order;

/// Lets a call end with the work; what by its stamps ends a little later is cut off.
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
