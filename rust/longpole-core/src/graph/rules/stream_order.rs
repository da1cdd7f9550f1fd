//! Edges between activities of one stream, which run in order.
//!
//! A GPU activity follows the one of its stream that finished last before it starts. If an earlier
//! one still runs, the later one may not start before the earlier one did. The time in which both
//! run belongs to the earlier one: the end of the later one follows the end of the earlier one.

use std::collections::BTreeSet;

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, Timeline, limits};
use crate::ids::Order;

/// Adds the edges into the end of a GPU activity.
pub(super) fn end_edges(
    work: Order,
    neighbours: &Neighbours,
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
) {
    let (start, end) = (facts.nodes.start(work), facts.nodes.end(work));
    let kind = facts.streams.kind_of(work);
    edges.push(Edge::new((start, end), (kind, Role::DeviceWork), Some(work), Evidence::Order));
    for other in neighbours.ending_before(facts.timeline.end_ns(work)) {
        let ends = (facts.nodes.end(other), end);
        edges.push(Edge::new(ends, (kind, Role::OverlapTail), Some(work), Evidence::Order));
    }
}

/// Adds the edges from its stream into the start of a GPU activity.
pub(super) fn start_edges(
    work: Order,
    neighbours: &Neighbours,
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
) {
    let start = facts.nodes.start(work);
    let mut push = |source, named| {
        edges.push(Edge::new((source, start), named, Some(work), Evidence::Order));
    };
    if let Some((_, other)) = neighbours.last_finished {
        push(facts.nodes.end(other), (Kind::KernelDelay, Role::StreamOrder));
    }
    if let Some(other) = neighbours.running {
        push(facts.nodes.start(other), (Kind::StreamOverlap, Role::StreamOverlap));
    }
}

/// The activities that run on a stream when the next one starts.
#[derive(Default)]
pub(super) struct Neighbours {
    /// The running activities, sorted by end.
    unfinished: BTreeSet<(i64, Order)>,
    /// The started activities in order of start; finished ones are removed from the end.
    began: Vec<Order>,
    /// The running activity that began last.
    pub(super) running: Option<Order>,
    /// The finished activity that finished last, with its end.
    last_finished: Option<(i64, Order)>,
}

impl Neighbours {
    pub(super) fn go_to(&mut self, work: Order, timeline: &Timeline) {
        let now = timeline.start_ns(work);
        while let Some(&first) = self.unfinished.first().filter(|first| first.0 <= now) {
            self.unfinished.pop_first();
            self.last_finished = self.last_finished.max(Some(first));
        }
        while self.began.last().is_some_and(|&last| timeline.end_ns(last) <= now) {
            self.began.pop();
        }
        self.running = self.began.last().copied();
    }

    pub(super) fn add(&mut self, work: Order, timeline: &Timeline) {
        self.unfinished.insert((timeline.end_ns(work), work));
        self.began.push(work);
    }

    /// Returns the activity that finished last before the next one started.
    pub(super) fn last_finished(&self) -> Option<Order> {
        self.last_finished.map(|(_, work)| work)
    }

    /// Returns the running activities that end before a time, latest end first.
    fn ending_before(&self, end_ns: i64) -> impl Iterator<Item = Order> + '_ {
        let ending = self.unfinished.range(..(end_ns, Order::from_row(0)));
        ending.rev().take(limits::MOST_OVERLAPS).map(|&(_, other)| other)
    }
}
