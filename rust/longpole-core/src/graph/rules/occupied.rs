//! A kernel that should have started found the device occupied by a kernel of another
//! stream. Copies have engines of their own.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Kind, Role, latest_to_end};
use crate::ids::Order;

/// The edge from inside the kernel of another stream that holds the device when this one
/// should start.
pub(super) fn edge(work: Order, facts: &Facts<'_>) -> Option<Edge> {
    if facts.streams.kind_of(work) == Kind::Copy {
        return None;
    }
    let start_ns = facts.timeline.start_ns(work);
    let holders = facts
        .other_streams(work)
        .filter_map(|stream| facts.streams.all[stream].kernel_running_at(start_ns));
    let holder = latest_to_end(holders)?;
    Some(facts.inside_edge(holder, facts.nodes.start(work), Role::DeviceOccupied))
}
