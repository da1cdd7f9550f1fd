//! Edges into kernels that were ready but found the device occupied by a kernel of another stream.
//! Copies use separate engines.
//!
//! Nodes of a graph are launched together, and a gap before one may hide a node missing from the
//! trace. For a node, the kernel of the other stream must therefore have run for most of the gap.
//! On an H100, a graph of matrix products on four streams had gaps of 23 to 58 us before one node
//! in three; in all of them, kernels of the other streams filled the device.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Kind, Role, latest_to_end};
use crate::ids::Order;

/// Returns the edge from inside the kernel of another stream that occupies the device when `work`
/// was ready to start.
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

/// At most one part in this many of a gap before a graph node may pass before the other kernel
/// runs.
const UNHELD_PART: i64 = 4;

/// Returns the edge from inside the kernel of another stream that occupied the device for most of
/// the gap between `ready_ns` and the start of a graph node.
pub(super) fn edge_of_node(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    if facts.streams.kind_of(work) == Kind::Copy {
        return None;
    }
    let start_ns = facts.timeline.start_ns(work);
    let holders = facts
        .other_streams(work)
        .filter_map(|stream| facts.streams.all[stream].kernel_running_at(start_ns));
    let (from_ns, holder) = holders.min()?;
    let held = from_ns - ready_ns <= (start_ns - ready_ns) / UNHELD_PART;
    held.then(|| facts.inside_edge(holder, facts.nodes.start(work), Role::DeviceOccupied))
}
