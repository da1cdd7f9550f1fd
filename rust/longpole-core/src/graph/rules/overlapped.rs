//! Edges into activities that start while their stream predecessor still runs. They were released
//! from inside it, unless something else ended shortly before (programmatic dependent launch).

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Role, limits};
use crate::ids::Order;

/// Returns the edge from inside the running predecessor.
pub(super) fn edge(work: Order, running: Order, late_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let start = facts.nodes.start(work);
    (late_ns > limits::OVERLAP_SOURCE_NS)
        .then(|| facts.inside_edge(running, start, Role::OverlapInside))
}
