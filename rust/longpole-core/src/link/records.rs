//! Reads synchronization records: which call waited, and for what.
//!
//! With `enable_cuda_sync_events` the profiler records for which stream or event a call waited
//! (`cuda_sync`). Nothing else in a trace contains this. Waits on the streams of an Ascend device
//! are tasks with times; `stream_waits` determines what they waited for. Records of an unknown
//! kind, or without their call, are counted.

use std::collections::BTreeMap;

use super::Launches;
use super::calls::Calls;
use crate::ids::EventId;
use crate::tables::{EventKind, Tables, argument, argument_text};
use crate::vocabulary::TaskKind;

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

// Determines which event ended a wait on an Ascend stream.
//
// Waits and event recordings are tasks on streams with times of one clock, and neither contains
// the event. Some devices record a wait from start to end, others only its end; in that case, it
// began when the previous task on its stream ended. Of the events that other streams of the device
// recorded in that time, the last one is used.
//
// Limits: if several streams record events at the same time, another event may be the right one. A
// wait without a recorded event in its time has no effect and gets no partner.

/// A wait of at least this length is recorded from its start.
const SHORTEST_WAIT_NS: i64 = 200;

/// Maximum time from the recording of an event to the end of a wait for it: for waits recorded
/// completely, and for waits of which only the end is recorded.
const LATEST_RETURN_NS: [i64; 2] = [5_000, 100_000];

/// A stream by its device.
type Stream = (Option<i64>, i64);

/// The tasks that record events, and the busy times of streams.
pub(super) struct EventRecords {
    by_end: BTreeMap<Option<i64>, Vec<(i64, Stream, EventId)>>,
    /// The starts of all tasks of a stream, each with the latest end of the tasks up to it.
    busy_until: BTreeMap<Stream, Vec<(i64, i64)>>,
    is_wait: Vec<bool>,
}

/// What is known about a wait on a stream.
pub(super) enum StreamWait {
    /// Its event had already been recorded.
    Over,
    /// It ended with an event of this stream.
    For(i64, EventId),
    /// It took time, and no event matches.
    Unknown,
}

impl EventRecords {
    pub(super) fn of(tables: &Tables) -> Self {
        let is_wait = tables.strings.matching(|name| TaskKind::of_type(name) == TaskKind::Wait);
        let is_record = tables.strings.matching(|name| name == "EVENT_RECORD");
        let events = &tables.events;
        let mut found = Self { by_end: BTreeMap::new(), busy_until: BTreeMap::new(), is_wait };
        let is_record = |event| events.name(event).is_some_and(|name| is_record[name.row()]);
        if !events.ids().any(|it| events.kind(it) == EventKind::DeviceTask && is_record(it)) {
            return found;
        }
        for event in events.ids().filter(|&event| events.kind(event).is_on_device()) {
            let place = tables.lanes.place(events.lane(event));
            let (Some(stream), Some((start_ns, end_ns))) = (place.stream, events.span(event))
            else {
                continue;
            };
            let stream = (place.device, stream);
            found.busy_until.entry(stream).or_default().push((start_ns, end_ns));
            if events.kind(event) == EventKind::DeviceTask && is_record(event) {
                found.by_end.entry(place.device).or_default().push((end_ns, stream, event));
            }
        }
        found.sort();
        found
    }

    fn sort(&mut self) {
        for rows in self.by_end.values_mut() {
            rows.sort_unstable();
        }
        for rows in self.busy_until.values_mut() {
            rows.sort_unstable();
            let mut last_ns = i64::MIN;
            for row in rows {
                last_ns = last_ns.max(row.1);
                row.1 = last_ns;
            }
        }
    }

    /// Returns when the tasks before a time on a stream had ended.
    fn free_since_ns(&self, stream: Stream, at_ns: i64) -> i64 {
        let rows = self.busy_until.get(&stream).map_or(&[][..], Vec::as_slice);
        let before = rows.partition_point(|row| row.0 < at_ns);
        before.checked_sub(1).map_or(i64::MIN, |last| rows[last].1)
    }

    /// Returns what a synchronization record waited for, if it is a wait on an Ascend stream.
    pub(super) fn wait(&self, event: EventId, tables: &Tables) -> Option<StreamWait> {
        let events = &tables.events;
        events.name(event).filter(|name| self.is_wait[name.row()])?;
        let (start_ns, end_ns) = events.span(event)?;
        let place = tables.lanes.place(events.lane(event));
        let own = (place.device, place.stream?);
        let is_shown_whole = end_ns - start_ns >= SHORTEST_WAIT_NS;
        let (began_ns, latest_ns) = if is_shown_whole {
            (start_ns, LATEST_RETURN_NS[0])
        } else {
            (self.free_since_ns(own, start_ns), LATEST_RETURN_NS[1])
        };
        let rows = self.by_end.get(&place.device).map_or(&[][..], Vec::as_slice);
        let behind = rows.partition_point(|row| row.0 <= end_ns);
        let earliest_ns = began_ns.max(end_ns - latest_ns);
        let mut ended = rows[..behind].iter().rev().take_while(|row| row.0 >= earliest_ns);
        Some(match ended.find(|row| row.1 != own) {
            Some(row) => StreamWait::For(row.1.1, row.2),
            None if is_shown_whole => StreamWait::Unknown,
            None => StreamWait::Over,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::link::{WaitsFor, launches, sync_records};
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};

    /// Returns what each wait waits for, with tasks given as `(name, stream, start, duration)` in
    /// ns.
    fn waits(tasks: &[(&str, i64, i64, i64)]) -> Vec<WaitsFor> {
        let meta = |name: &str, tid: i64, value: &str| {
            format!(
                r#"{{"ph":"M","name":"{name}","pid":3,"tid":{tid},"args":{{"name":"{value}"}}}}"#
            )
        };
        let mut rows = vec![meta("process_name", 0, "Ascend Hardware")];
        rows.extend((1..4).map(|stream| meta("thread_name", stream, &format!("Stream {stream}"))));
        rows.extend(tasks.iter().map(|(name, stream, start, duration)| {
            format!(
                r#"{{"ph":"X","name":"{name}","pid":3,"tid":{stream},"ts":{start}e-3,
                "dur":{duration}e-3,"args":{{"Task Type":"{name}_SQE"}}}}"#
            )
        }));
        let text = format!("[{}]", rows.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let launches = launches(&tables, &silent).unwrap();
        sync_records(&tables, &launches).iter().map(|record| record.waits_for).collect()
    }

    #[test]
    fn a_wait_that_lasted_ended_with_the_last_event_recorded_on_another_stream() {
        let record = ("EVENT_RECORD", 2, 9_000, 20);
        let own = ("EVENT_RECORD", 1, 9_990, 10);
        let wait = ("EVENT_WAIT", 1, 1_000, 9_000);
        assert_eq!(waits(&[record, own, wait]), [WaitsFor::EventOfStream(2)]);
    }

    #[test]
    fn a_wait_of_which_only_the_end_is_shown_began_when_its_stream_was_free() {
        let wait = ("EVENT_WAIT", 1, 20_000, 20);
        let record = ("EVENT_RECORD", 2, 9_000, 20);
        let early = ("AI_CORE", 1, 0, 5_000);
        let late = ("AI_CORE", 1, 0, 19_900);
        assert_eq!(waits(&[record, wait, early]), [WaitsFor::EventOfStream(2)]);
        assert_eq!(waits(&[record, wait, late]), []);
    }

    #[test]
    fn a_wait_without_a_fitting_event_is_unknown() {
        let tasks = [("EVENT_RECORD", 2, 900, 20), ("EVENT_WAIT", 1, 50_000, 9_000)];
        assert_eq!(waits(&tasks), [WaitsFor::Unknown]);
    }
}
