//! Work to which nothing leads: no call in the trace, and nothing before it on its stream.
//!
//! It counts as late however soon it comes: what ended just before released it, or a
//! running kernel held the device, or it follows the last work of the device unexplained.

use super::ended_before;
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{limits, Edge, Evidence, Kind, Role};
use crate::ids::Order;

/// The reason for the start of such work.
pub(super) fn edge(work: Order, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let device = facts.streams.whole_device(facts.streams.device_of(work));
    let after_ns = start_ns - limits::WAIT_RELEASE_NS - 1;
    let ended_in = |after_ns, mark| ended_before::in_stream(device, work, after_ns, mark, facts);
    if let Some((_, producer)) = Mark::FROM_LIKELY.into_iter().find_map(|it| ended_in(after_ns, it))
    {
        return Some(facts.wait_edge(producer, work, Evidence::Inferred));
    }
    if facts.streams.kind_of(work) != Kind::Copy {
        if let Some((_, holder)) = device.kernel_running_at(start_ns) {
            let start = facts.nodes.start(work);
            return Some(facts.inside_edge(holder, start, Role::DeviceOccupied));
        }
    }
    let (_, before) = ended_in(i64::MIN, Mark::Unmarked)?;
    let nodes = (facts.nodes.end(before), facts.nodes.start(work));
    let named = (Kind::Unexplained, Role::NoReason);
    Some(Edge::new(nodes, named, Some(work), Evidence::None))
}
