//! Recorded waits of the host: a call that a record covers ends after what the record
//! says it waited for, and nothing is guessed about it.

use std::collections::HashMap;

use crate::graph::facts::Facts;
use crate::graph::model::Stream;
use crate::ids::Order;
use crate::link::{Purpose, SyncRecord, WaitsFor};

/// What the records say about calls.
#[derive(Default)]
pub(super) struct RecordedSyncs {
    /// For all calls that a record covers, what they waited for.
    pub(super) producers: HashMap<Order, Vec<Order>>,
    /// Records that do not say what was waited for.
    pub(super) unknown: u64,
    /// Records whose call is not in the trace.
    pub(super) without_call: u64,
}

/// What the records say about calls that waited.
pub(super) fn syncs(facts: &Facts<'_>) -> RecordedSyncs {
    let mut found = RecordedSyncs::default();
    for record in &facts.records {
        let call = record.call.and_then(|call| facts.timeline.order(call));
        match (record.waits_for, call) {
            (WaitsFor::Unknown, _) => found.unknown += 1,
            (_, None) => found.without_call += 1,
            (WaitsFor::EventOfStream(_), _) => {}
            (_, Some(call)) => {
                let producers = found.producers.entry(call).or_default();
                if facts.purpose(call) != Purpose::Query {
                    producers.extend(self::producers(record, call, facts));
                }
            }
        }
    }
    found
}

fn producers(record: &SyncRecord, call: Order, facts: &Facts<'_>) -> Vec<Order> {
    let called_ns = facts.timeline.start_ns(call);
    let numbered = |stream| facts.streams.numbered(record.device, stream);
    let last = |stream: &Stream| stream.last_finished_before(called_ns);
    match record.waits_for {
        WaitsFor::Stream => numbered(record.stream).and_then(last).into_iter().collect(),
        WaitsFor::Event(stream) => {
            let recorded_ns =
                record.recorded_by.map_or(called_ns, |call| facts.tables.events.start_ns(call));
            let last = |stream: &Stream| stream.last_finished_before(recorded_ns);
            numbered(Some(stream)).and_then(last).into_iter().collect()
        }
        WaitsFor::Device => {
            let streams = facts.streams.of_device_number(record.device);
            streams.into_iter().filter_map(|stream| last(&facts.streams.all[stream])).collect()
        }
        WaitsFor::EventOfStream(_) | WaitsFor::Unknown => Vec::new(),
    }
}
