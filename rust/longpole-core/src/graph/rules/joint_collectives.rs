//! Multi-device collectives in one process: none of the kernels ends before the last of them has
//! started.
//!
//! The kernels of a collective have the same name, and run and end together; the name alone may
//! belong to two collectives. If several kernels of a device overlap one of another device, the one
//! with the longest overlap is its partner.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{Order, StringId};

/// Maximum number of kernels of another device compared with one kernel; they begin before it ends.
const MOST_NEIGHBOURS: usize = 16;

/// The communication kernels of one name by device, in content order.
type Devices = BTreeMap<usize, Vec<Order>>;

/// Returns the edges from the last start of each collective to the ends of its kernels.
pub(super) fn edges(facts: &Facts<'_>) -> Vec<Edge> {
    let mut found = Vec::new();
    for devices in by_name(facts).values().filter(|devices| devices.len() > 1) {
        for (&device, works) in devices {
            let siblings = facts.streams.siblings_of(device).iter();
            let others: Vec<_> =
                siblings.filter_map(|other| devices.get(other)).map(Vec::as_slice).collect();
            found.extend(works.iter().filter_map(|&work| edge(work, &others, facts)));
        }
    }
    found
}

fn by_name(facts: &Facts<'_>) -> BTreeMap<StringId, Devices> {
    let mut found: BTreeMap<StringId, Devices> = BTreeMap::new();
    if facts.streams.n_devices() < 2 {
        return found;
    }
    for work in facts.works().filter(|&it| facts.streams.kind_of(it) == Kind::Communication) {
        if let Some(name) = facts.timeline.name(work) {
            let devices = found.entry(name).or_default();
            devices.entry(facts.streams.device_of(work)).or_default().push(work);
        }
    }
    found
}

/// Returns the edge into the end of one kernel, if another kernel of its collective began later.
fn edge(work: Order, others: &[&[Order]], facts: &Facts<'_>) -> Option<Edge> {
    let partners = others.iter().filter_map(|works| partner(work, works, facts));
    let last = partners.max_by_key(|&it| (facts.timeline.start_ns(it), Reverse(it)))?;
    if facts.timeline.start_ns(last) <= facts.timeline.start_ns(work) {
        return None;
    }
    let nodes = (facts.nodes.start(last), facts.nodes.end(work));
    let named = (Kind::Communication, Role::JointCollective);
    Some(Edge::new(nodes, named, Some(last), Evidence::Inferred))
}

/// Returns the kernel of another device with the longest overlap.
fn partner(work: Order, works: &[Order], facts: &Facts<'_>) -> Option<Order> {
    let timeline = facts.timeline;
    let (start_ns, end_ns) = (timeline.start_ns(work), timeline.end_ns(work));
    let behind = works.partition_point(|&other| timeline.start_ns(other) < end_ns);
    let overlap_ns = |&other: &Order| {
        end_ns.min(timeline.end_ns(other)) - start_ns.max(timeline.start_ns(other))
    };
    let near = works[..behind].iter().rev().take(MOST_NEIGHBOURS).copied();
    let together = near.filter(|other| overlap_ns(other) > 0).max_by_key(overlap_ns)?;
    let apart_ns = (timeline.end_ns(together) - end_ns).abs();
    let most_ns = limits::JOINT_ENDS_NS.max(overlap_ns(&together) / limits::JOINT_ENDS_PART);
    (apart_ns <= most_ns).then_some(together)
}
