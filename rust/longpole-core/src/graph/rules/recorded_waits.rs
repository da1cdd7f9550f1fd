//! Recorded waits between streams: the next activity of the waiting stream follows the activity
//! after which the awaited event was recorded.
//!
//! A record contains the awaited stream and usually the call that recorded the event. Without that
//! call, the event is assumed to be recorded at the time of the wait. If the device records waits
//! and events as tasks with times, these times are used.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, limits};
use crate::ids::Order;
use crate::link::{SyncRecord, WaitsFor};

/// Returns the edges of recorded waits, sorted by waiting activity.
pub(super) fn edges(facts: &Facts<'_>) -> Vec<(Order, Edge)> {
    let mut waits: Vec<_> = facts.records.iter().filter_map(|record| edge(record, facts)).collect();
    waits.sort_by_key(|&(waiter, _)| waiter);
    waits
}

fn edge(record: &SyncRecord, facts: &Facts<'_>) -> Option<(Order, Edge)> {
    let WaitsFor::EventOfStream(number) = record.waits_for else { return None };
    if let Some(times_ns) = record.device_ns {
        return on_device(record, number, times_ns, facts);
    }
    let streams = &facts.streams;
    let asked_ns = facts.tables.events.start_ns(record.call.unwrap_or(record.event));
    let recorded_ns =
        record.recorded_by.map_or(asked_ns, |call| facts.tables.events.start_ns(call));
    let other = streams.recorded_on(record, number, facts.tables)?;
    let waiting = streams.numbered(record.device, record.stream)?;
    let (waiter, producer) = waiting.submitted_after(asked_ns).find_map(|waiter| {
        let start_ns = facts.timeline.start_ns(waiter);
        let just_before = (start_ns - limits::WAIT_RELEASE_NS - 1, start_ns);
        let producer = other
            .unlinked_in(recorded_ns, just_before, facts.timeline)
            .or_else(|| other.last_submitted_before(recorded_ns));
        // The submission time of an activity without a launcher is unknown. If it began before the
        // other activity ended, it was submitted before the wait.
        let waited = facts.timeline.launcher(waiter).is_some()
            || producer.is_none_or(|it| facts.timeline.end_ns(it) <= start_ns);
        waited.then_some((waiter, producer))
    })?;
    let producer = producer.filter(|&producer| producer != waiter)?;
    Some((waiter, facts.wait_edge(producer, waiter, Evidence::Recorded)))
}

/// Returns the edge of a wait for which the device recorded when the event was recorded and when
/// the wait ended: the next activity on the stream waited for the activity that had ended last when
/// the event was recorded. Which event it was is inferred from the times.
fn on_device(
    record: &SyncRecord,
    number: i64,
    (recorded_ns, returned_ns): (i64, i64),
    facts: &Facts<'_>,
) -> Option<(Order, Edge)> {
    let waiter = facts.streams.numbered(record.device, record.stream)?;
    let waiter = waiter.first_begun_from(returned_ns, facts.timeline)?;
    let other = facts.streams.numbered(record.device, Some(number))?;
    let producer = other.last_over_by(recorded_ns, facts.timeline)?;
    (waiter != producer).then(|| (waiter, facts.wait_edge(producer, waiter, Evidence::Inferred)))
}
