//! Recorded waits between streams: the next work of the waiting stream follows the work
//! that the event waited for stood behind.
//!
//! A record names the stream waited for and, mostly, the call that recorded the event.
//! Where it does not, the event is taken to be recorded when it was waited for.

use crate::graph::facts::Facts;
use crate::graph::model::{limits, Edge, Evidence};
use crate::ids::Order;
use crate::link::{SyncRecord, WaitsFor};

/// The edges of recorded waits, in order of the work that waits.
pub(super) fn edges(facts: &Facts<'_>) -> Vec<(Order, Edge)> {
    let mut waits: Vec<_> = facts.records.iter().filter_map(|record| edge(record, facts)).collect();
    waits.sort_by_key(|&(waiter, _)| waiter);
    waits
}

fn edge(record: &SyncRecord, facts: &Facts<'_>) -> Option<(Order, Edge)> {
    let WaitsFor::EventOfStream(number) = record.waits_for else { return None };
    let streams = &facts.streams;
    let asked_ns = facts.tables.events.start_ns(record.call.unwrap_or(record.event));
    let waiter = streams.numbered(record.device, record.stream)?.next_submitted_after(asked_ns)?;
    let recorded_ns =
        record.recorded_by.map_or(asked_ns, |call| facts.tables.events.start_ns(call));
    let other = streams.recorded_on(record, number, facts.tables)?;
    let start_ns = facts.timeline.start_ns(waiter);
    let just_before = (start_ns - limits::WAIT_RELEASE_NS - 1, start_ns);
    let producer = other
        .unlinked_in(recorded_ns, just_before, facts.timeline)
        .or_else(|| other.last_submitted_before(recorded_ns))?;
    (waiter != producer).then(|| (waiter, facts.wait_edge(producer, waiter, Evidence::Recorded)))
}
