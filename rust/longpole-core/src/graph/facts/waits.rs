//! The waits that the program requested: wait calls for streams, and host waits with a
//! synchronization record.

use super::launches::Purposes;
use crate::graph::model::{Stream, Streams};
use crate::ids::{LaneId, Order, RowMap, StringId};
use crate::link::{SyncRecord, WaitsFor};
use crate::tables::{LaneTable, Tables};
use crate::vocabulary::ApiRole;

/// Whether the launching thread had issued a wait call before it launched a GPU activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) enum Asked {
    /// No wait call since the thread's previous launch to this stream.
    No,
    /// None by this thread, but another thread of the process issued one since any thread's
    /// previous launch to this stream.
    ByOther,
    /// A wait call, followed by launches to other streams.
    Before,
    /// A wait call, with no launch after it.
    JustNow,
}

/// For each GPU activity, returns whether its thread issued a wait call since its previous launch
/// to the same stream. Calls with a synchronization record are left out, because their effect is
/// known.
pub(super) fn of_works(
    streams: &Streams<'_>,
    purposes: &Purposes,
    records: &[SyncRecord],
    lanes: &LaneTable,
    has_wait_calls: bool,
) -> Vec<Asked> {
    let timeline = streams.timeline;
    let mut asked = vec![Asked::No; timeline.len()];
    if !has_wait_calls {
        return asked;
    }
    let recorded = recorded_wait_calls(streams, records);
    let lets_wait = |call| purposes.purpose(call, timeline) == ApiRole::StreamWait;
    let mut n_waits = vec![0_u32; streams.n_lanes()];
    let mut n_launched = vec![0_u32; streams.n_lanes()];
    let mut n_seen: RowMap<(usize, usize), u32> = RowMap::default();
    let mut of_process: RowMap<StringId, u32> = RowMap::default();
    let mut of_stream: RowMap<usize, u32> = RowMap::default();
    for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
        let thread = timeline.lane(call);
        let waits = &mut n_waits[thread];
        let n_new = u32::from(lets_wait(call) && recorded.binary_search(&call).is_err());
        *waits += n_new;
        let process = lanes.place(LaneId::from_row(thread)).process;
        let n_of_process = of_process.entry(process).or_default();
        *n_of_process += n_new;
        let works = streams.launched_by(call);
        let seen = |work: Order| (thread, streams.stream_of(work));
        for &work in works {
            if n_launched[thread] < *waits {
                asked[work.row()] = Asked::JustNow;
            } else if n_seen.get(&seen(work)).copied().unwrap_or(0) < *waits {
                asked[work.row()] = Asked::Before;
            } else if of_stream.get(&streams.stream_of(work)).is_some_and(|it| it < n_of_process) {
                asked[work.row()] = Asked::ByOther;
            }
        }
        for &work in works {
            of_stream.insert(streams.stream_of(work), *n_of_process);
            n_seen.insert(seen(work), *waits);
            n_launched[thread] = *waits;
        }
    }
    asked
}

fn recorded_wait_calls(streams: &Streams<'_>, records: &[SyncRecord]) -> Vec<Order> {
    let is_wait = |record: &&SyncRecord| matches!(record.waits_for, WaitsFor::EventOfStream(_));
    let call = |record: &SyncRecord| streams.timeline.order(record.call?);
    let mut calls: Vec<_> = records.iter().filter(is_wait).filter_map(call).collect();
    calls.sort_unstable();
    calls
}

// Host waits with a synchronization record. A call with a record ends after the activities that
// the record refers to, and nothing is inferred about it.

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
