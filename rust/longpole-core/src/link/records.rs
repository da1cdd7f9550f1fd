//! Reads synchronization records: which call waited, and for what.
//!
//! With `enable_cuda_sync_events` the profiler records for which stream or event a call waited
//! (`cuda_sync`). Nothing else in a trace contains this. Waits on the streams of an Ascend device
//! are tasks with times; `stream_waits` determines what they waited for. Records of an unknown
//! kind, or without their call, are counted.

use super::Launches;
use super::calls::Calls;
use super::stream_waits::{EventRecords, StreamWait};
use crate::ids::EventId;
use crate::tables::{EventKind, Tables, argument, argument_text};

/// A synchronization record: which call waited, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncRecord {
    /// The record itself.
    pub event: EventId,
    /// What was waited for.
    pub waits_for: WaitsFor,
    /// The call that waited, or that made a stream wait.
    pub call: Option<EventId>,
    /// The call that recorded the awaited event; `None` if it is not in the record or in the trace.
    pub recorded_by: Option<EventId>,
    /// The device.
    pub device: Option<i64>,
    /// The stream that waits, or whose end the host waits for.
    pub stream: Option<i64>,
    /// When the event was recorded and when the wait ended, by the clock of the device; only if
    /// both are tasks of their streams.
    pub device_ns: Option<(i64, i64)>,
}

/// The target of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// The host waited for one stream.
    Stream,
    /// The host waited for all streams of the device.
    Device,
    /// The host waited for an event recorded on this stream.
    Event(i64),
    /// A stream waited for an event recorded on this other stream.
    EventOfStream(i64),
    /// Not recorded; the record has no effect.
    Unknown,
}

/// Returns the synchronization records, in order of time.
pub fn sync_records(tables: &Tables, launches: &Launches) -> Vec<SyncRecord> {
    let events = &tables.events;
    if !events.ids().any(|event| events.kind(event) == EventKind::Synchronization) {
        return Vec::new();
    }
    let calls = Calls::of(tables);
    let recorded = EventRecords::of(tables);
    let mut records: Vec<_> = events
        .ids()
        .filter(|&event| events.kind(event) == EventKind::Synchronization)
        .filter_map(|event| match recorded.wait(event, tables) {
            Some(wait) => of_stream(event, &wait, tables, launches),
            None => Some(record(event, tables, launches, &calls)),
        })
        .collect();
    records.sort_by_key(|record| {
        let event = record.event;
        (events.start_ns(event), events.correlation(event), events.position(event))
    });
    records
}

fn record(event: EventId, tables: &Tables, launches: &Launches, calls: &Calls) -> SyncRecord {
    let place = tables.lanes.place(tables.events.lane(event));
    let call = launches.launcher(event);
    let asked_ns = tables.events.start_ns(call.unwrap_or(event));
    let number = argument(event, "wait_on_cuda_event_record_corr_id", tables);
    SyncRecord {
        event,
        waits_for: waits_for(event, tables),
        call,
        recorded_by: number
            .filter(|&number| number > 0)
            .and_then(|number| calls.at(number, asked_ns)),
        device: place.device,
        stream: place.stream,
        device_ns: None,
    }
}

/// Returns the record of a wait on an Ascend stream; `None` if it took no time.
fn of_stream(
    event: EventId,
    wait: &StreamWait,
    tables: &Tables,
    launches: &Launches,
) -> Option<SyncRecord> {
    let place = tables.lanes.place(tables.events.lane(event));
    let events = &tables.events;
    let (waits_for, record) = match wait {
        StreamWait::Over => return None,
        StreamWait::For(stream, record) => (WaitsFor::EventOfStream(*stream), Some(*record)),
        StreamWait::Unknown => (WaitsFor::Unknown, None),
    };
    let recorded_by = record.and_then(|record| launches.launcher(record));
    let device_ns =
        record.and_then(|record| Some((events.start_ns(record), events.end_ns(event)?)));
    let call = launches.launcher(event);
    let (device, stream) = (place.device, place.stream);
    Some(SyncRecord { event, waits_for, call, recorded_by, device, stream, device_ns })
}

fn waits_for(event: EventId, tables: &Tables) -> WaitsFor {
    let waited = argument(event, "wait_on_stream", tables).filter(|&stream| stream != -1);
    match (kind(event, tables), waited) {
        (Some("Stream Sync"), _) => WaitsFor::Stream,
        (Some("Context Sync"), _) => WaitsFor::Device,
        (Some("Event Sync"), Some(stream)) => WaitsFor::Event(stream),
        // MTIA lists such waits as kernels.
        (Some("Stream Wait Event" | "event_wait"), Some(stream)) => WaitsFor::EventOfStream(stream),
        _ => WaitsFor::Unknown,
    }
}

/// Returns the profiler's name for the kind of synchronization, from an argument or at least the
/// record's name.
fn kind(event: EventId, tables: &Tables) -> Option<&str> {
    let named = || tables.events.name(event).map(|name| tables.strings.get(name));
    argument_text(event, "cuda_sync_kind", tables).or_else(named)
}
