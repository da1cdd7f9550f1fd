//! Host waits with a synchronization record. A call with a record ends after the activities that
//! the record refers to, and nothing is inferred about it.

use super::purposes::Purposes;
use crate::graph::model::{Stream, Streams};
use crate::ids::{Order, RowMap};
use crate::link::{SyncRecord, WaitsFor};
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// What the synchronization records say about calls.
#[derive(Default)]
pub(in crate::graph) struct RecordedSyncs {
    /// For each call with a record, the activities that it waited for.
    pub(in crate::graph) producers: RowMap<Order, Vec<Order>>,
    /// Number of records that do not identify what was waited for.
    pub(in crate::graph) unknown: u64,
    /// Number of records whose call is not in the trace.
    pub(in crate::graph) without_call: u64,
}

/// Collects what the records say about calls that waited.
pub(super) fn of_calls(
    records: &[SyncRecord],
    streams: &Streams<'_>,
    purposes: &Purposes,
    tables: &Tables,
) -> RecordedSyncs {
    let mut found = RecordedSyncs::default();
    for record in records {
        let call = record.call.and_then(|call| streams.timeline.order(call));
        match (record.waits_for, call) {
            (WaitsFor::Unknown, _) => found.unknown += 1,
            (_, None) => found.without_call += 1,
            (WaitsFor::EventOfStream(_), _) => {}
            (_, Some(call)) => {
                let producers = found.producers.entry(call).or_default();
                if purposes.purpose(call, streams.timeline) != ApiRole::Query {
                    producers.extend(self::producers(record, call, streams, tables));
                }
            }
        }
    }
    found
}

fn producers(
    record: &SyncRecord,
    call: Order,
    streams: &Streams<'_>,
    tables: &Tables,
) -> Vec<Order> {
    let called_ns = streams.timeline.start_ns(call);
    let numbered = |stream| streams.numbered(record.device, stream);
    let last = |stream: &Stream| stream.last_awaited(called_ns, call, streams.timeline);
    match record.waits_for {
        WaitsFor::Stream => numbered(record.stream).and_then(last).into_iter().collect(),
        WaitsFor::Event(stream) => {
            let recorded_ns =
                record.recorded_by.map_or(called_ns, |call| tables.events.start_ns(call));
            let last = |stream: &Stream| stream.last_awaited(recorded_ns, call, streams.timeline);
            streams.recorded_on(record, stream, tables).and_then(last).into_iter().collect()
        }
        WaitsFor::Device => {
            let of_device = streams.of_device_number(record.device);
            of_device.iter().filter_map(|&stream| last(&streams.all[stream])).collect()
        }
        WaitsFor::EventOfStream(_) | WaitsFor::Unknown => Vec::new(),
    }
}
