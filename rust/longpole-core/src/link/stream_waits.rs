//! Which event a wait on an Ascend stream ended with.
//!
//! Waits and the recording of events are tasks on streams, with times of one clock, and none
//! names the event. A wait that lasted ended right after the event was recorded: the last
//! record of another stream of the device that ended just before is taken.
//!
//! Limits: a wait that found its event recorded already takes no time and decides nothing; it
//! gets no partner.

use std::collections::HashMap;

use crate::ids::EventId;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::TaskKind;

/// A shorter wait found its event recorded.
const SHORTEST_WAIT_NS: i64 = 200;

/// So long after its event is recorded a wait ends at the most.
const LATEST_RETURN_NS: i64 = 5_000;

/// A stream by its device.
type Stream = (Option<i64>, i64);

/// The tasks that record events, by the device, in order of their ends.
pub(super) struct EventRecords {
    by_end: HashMap<Option<i64>, Vec<(i64, Stream, EventId)>>,
    is_wait: Vec<bool>,
}

/// What is known of a wait on a stream.
pub(super) enum StreamWait {
    /// It took no time.
    Over,
    /// It ended with an event of this stream.
    For(i64, EventId),
    /// It took time, and no event fits.
    Unknown,
}

impl EventRecords {
    pub(super) fn of(tables: &Tables) -> Self {
        let is_wait = tables.strings.matching(|name| TaskKind::of_type(name) == TaskKind::Wait);
        let is_record = tables.strings.matching(|name| name == "EVENT_RECORD");
        let events = &tables.events;
        let mut by_end: HashMap<_, Vec<_>> = HashMap::new();
        for event in events.ids().filter(|&it| events.kind(it) == EventKind::DeviceTask) {
            let place = tables.lanes.place(events.lane(event));
            let is_record = events.name(event).is_some_and(|name| is_record[name.row()]);
            if let (true, Some(stream), Some(end_ns)) =
                (is_record, place.stream, events.end_ns(event))
            {
                let row = (end_ns, (place.device, stream), event);
                by_end.entry(place.device).or_default().push(row);
            }
        }
        for rows in by_end.values_mut() {
            rows.sort_unstable();
        }
        Self { by_end, is_wait }
    }

    /// What a record of synchronisation waited for, where it is a wait on an Ascend stream.
    pub(super) fn wait(&self, event: EventId, tables: &Tables) -> Option<StreamWait> {
        let events = &tables.events;
        events.name(event).filter(|name| self.is_wait[name.row()])?;
        let (start_ns, end_ns) = events.span(event)?;
        if end_ns - start_ns < SHORTEST_WAIT_NS {
            return Some(StreamWait::Over);
        }
        let place = tables.lanes.place(events.lane(event));
        let own = (place.device, place.stream?);
        let rows = self.by_end.get(&place.device).map_or(&[][..], Vec::as_slice);
        let behind = rows.partition_point(|row| row.0 <= end_ns);
        let earliest_ns = start_ns.max(end_ns - LATEST_RETURN_NS);
        let ended = rows[..behind].iter().rev().take_while(|row| row.0 >= earliest_ns);
        let found = ended.into_iter().find(|row| row.1 != own);
        Some(found.map_or(StreamWait::Unknown, |row| StreamWait::For(row.1 .1, row.2)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{launches, sync_records, WaitsFor};
    use super::*;
    use crate::progress::silent;
    use crate::read::{read_bytes, Options};

    /// Tasks as `(name, stream, start, duration)` in ns: what each wait waits for.
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
    fn a_wait_that_took_no_time_waited_for_nothing() {
        assert_eq!(waits(&[("EVENT_RECORD", 2, 900, 20), ("EVENT_WAIT", 1, 950, 20)]), []);
    }

    #[test]
    fn a_wait_without_a_fitting_event_is_unknown() {
        let tasks = [("EVENT_RECORD", 2, 900, 20), ("EVENT_WAIT", 1, 50_000, 9_000)];
        assert_eq!(waits(&tasks), [WaitsFor::Unknown]);
    }
}
