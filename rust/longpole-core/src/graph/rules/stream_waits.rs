//! Waits between streams, recorded or inferred from late starts.

use std::collections::BTreeMap;

use crate::graph::facts::{Asked, Facts, Mark};
use crate::graph::model::{Edge, Evidence, first_of_last, latest_to_end, limits};
use crate::ids::Order;
use crate::link::{SyncRecord, WaitsFor};

/// Returns the edges of recorded waits, sorted by waiting activity.
pub(super) fn recorded_edges(facts: &Facts<'_>) -> Vec<(Order, Edge)> {
    let mut waits: Vec<_> =
        facts.records.iter().filter_map(|record| recorded_edge(record, facts)).collect();
    waits.sort_by_key(|&(waiter, _)| waiter);
    waits
}

fn recorded_edge(record: &SyncRecord, facts: &Facts<'_>) -> Option<(Order, Edge)> {
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

// Waits between streams that had no effect, because the awaited activity had already ended.
//
// A wait call refers to an activity of another stream. If that activity ended before everything
// else that the next activity of the stream needed, the wait does not show in the times. The
// dependency still exists, and binds if the host becomes faster.

/// Returns the edges from the activities that a GPU activity likely waits for, if they ended before
/// it was ready.
pub(super) fn latent_edges<'f>(
    work: Order,
    ready_ns: i64,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = Edge> + use<'f> {
    let was_over = move |&producer: &Order| facts.timeline.end_ns(producer) < ready_ns;
    let producers = producers(work, facts).into_iter().filter(was_over);
    producers.map(move |producer| facts.wait_edge(producer, work, Evidence::Inferred))
}

/// For each stream, returns the last activity that it likely waited for.
fn producers(work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let asked = facts.asked[work.row()];
    if matches!(asked, Asked::No | Asked::ByOther) {
        return Vec::new();
    }
    match facts.paired.get(&work) {
        Some(paired) => last_of_streams(paired, work, facts),
        // Without calls that record events no activity is likely, so no stream needs to be
        // searched.
        None if asked == Asked::JustNow && facts.marks.has_records => {
            recorded_elsewhere(work, facts)
        }
        None => Vec::new(),
    }
}

fn last_of_streams(works: &[Order], work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let own = facts.streams.stream_of(work);
    let mut last: BTreeMap<usize, Order> = BTreeMap::new();
    for &other in works.iter().filter(|&&other| facts.streams.stream_of(other) != own) {
        let known = last.entry(facts.streams.stream_of(other)).or_insert(other);
        let finished = |it: Order| (facts.timeline.end_ns(it), it);
        *known = if finished(other) > finished(*known) { other } else { *known };
    }
    last.into_values().collect()
}

/// For each other stream of the device, returns its last activity, if an event follows it that
/// another thread recorded (for example, the backward thread).
fn recorded_elsewhere(work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let submitted_ns = facts.timeline.submitted_ns(work);
    let last = |stream: usize| facts.streams.all[stream].last_submitted_before(submitted_ns);
    let is_likely = |&other: &Order| facts.marks.of_work(other) == Mark::Likely;
    facts.other_streams(work).filter_map(last).filter(is_likely).collect()
}

// Candidates for what a start waited for: activities that ended before it.

/// Returns the activity of another stream that ended last in the given time, of those submitted
/// before this one and with at least the given mark. Activities of the same device come first.
///
/// All activities of a device are treated as one stream, so the cost does not grow with the number
/// of streams.
pub(super) fn elsewhere(
    work: Order,
    ended_ns: (i64, i64),
    least: Mark,
    facts: &Facts<'_>,
) -> Option<Order> {
    let on = |device: usize| ended_on_device(device, work, ended_ns, least, facts);
    let others = || facts.other_devices_to_wait_for(work).iter().filter_map(|&device| on(device));
    let own = on(facts.streams.device_of(work)).map(|(_, work)| work);
    own.or_else(|| latest_to_end(others()))
}

/// Of the activities that the thread likely made a stream wait for, returns the last that ended in
/// the given time.
pub(super) fn paired(
    work: Order,
    (after_ns, until_ns): (i64, i64),
    facts: &Facts<'_>,
) -> Option<Order> {
    let timeline = facts.timeline;
    let own = facts.streams.stream_of(work);
    let may_be = |&&other: &&Order| {
        let end_ns = timeline.end_ns(other);
        facts.streams.stream_of(other) != own && after_ns < end_ns && end_ns <= until_ns
    };
    let candidates = facts.paired_on_devices(work)?.iter().filter(may_be);
    latest_to_end(candidates.map(|&other| (timeline.end_ns(other), other)))
}

/// Like [`elsewhere`], on one device.
pub(super) fn ended_on_device(
    device: usize,
    work: Order,
    (after_ns, until_ns): (i64, i64),
    least: Mark,
    facts: &Facts<'_>,
) -> Option<(i64, Order)> {
    let timeline = facts.timeline;
    let submitted_ns = timeline.submitted_ns(work);
    let own = facts.streams.stream_of(work);
    let may_be = |&(_, other): &(i64, Order)| {
        facts.marks.of_work(other) >= least
            && timeline.earliest_submission_ns(other) < submitted_ns
            && facts.streams.stream_of(other) != own
    };
    let ended = facts.streams.ending_on_device(device, after_ns, until_ns);
    first_of_last(ended.filter(may_be))
}

// Rivals of an inferred wait: activities of a third stream that ended equally shortly before, and
// may be the awaited ones.
//
// On simulated programs, one in twelve inferred waits with a rival was wrong, and almost none
// without.

/// Returns the rival of `producer` for the start of an activity that was ready at `ready_ns`.
fn of_start(producer: Order, work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Order> {
    let timeline = facts.timeline;
    let times_ns = (ready_ns, timeline.submitted_ns(work), timeline.start_ns(work));
    let own = facts.streams.device_of(work);
    let devices = facts.other_devices_to_wait_for(work).iter().copied().chain([own]);
    of([producer, work], times_ns, devices, facts)
}

/// Returns the activity that may have released a start that comes oddly late after its launch or
/// its predecessor: one of another stream that ended just before, if a wait call may refer to it or
/// if the two streams never overlap.
pub(super) fn of_late_start(work: Order, binding: &Edge, facts: &Facts<'_>) -> Option<Order> {
    let ready_ns = facts.nodes.time_ns(binding.source);
    let start_ns = facts.timeline.start_ns(work);
    if !facts.delays.is_odd(binding.role, start_ns - ready_ns) {
        return None;
    }
    let after_ns = ready_ns.max(start_ns - limits::WAIT_RELEASE_NS - 1);
    let ended_ns = (after_ns, start_ns - limits::QUICKEST_RELEASE_NS);
    let device = facts.streams.device_of(work);
    let asked = facts.asked[work.row()] != Asked::No;
    ended_on_device(device, work, ended_ns, Mark::Unmarked, facts)
        .map(|(_, other)| other)
        .filter(|&other| asked || facts.may_be_serial(other, work))
}

/// Returns the rival of `producer` for a call that names no stream.
pub(super) fn of_call(producer: Order, call: Order, facts: &Facts<'_>) -> Option<Order> {
    let (start_ns, end_ns) = (facts.timeline.start_ns(call), facts.timeline.end_ns(call));
    let devices = 0..facts.streams.n_devices();
    of([producer; 2], (start_ns, start_ns, end_ns), devices, facts)
}

/// On the given devices, returns the last activity to end since `after_ns`, of those submitted
/// before `asked_ns` on streams other than those of `besides`.
fn of(
    besides: [Order; 2],
    (after_ns, asked_ns, target_ns): (i64, i64, i64),
    devices: impl Iterator<Item = usize>,
    facts: &Facts<'_>,
) -> Option<Order> {
    let streams = besides.map(|work| facts.streams.stream_of(work));
    let after_ns = after_ns.max(target_ns - limits::WAIT_RELEASE_NS - 1);
    let may_be = |&(_, work): &(i64, Order)| {
        facts.timeline.earliest_submission_ns(work) < asked_ns
            && !streams.contains(&facts.streams.stream_of(work))
    };
    latest_to_end(devices.filter_map(|device| {
        first_of_last(facts.streams.ending_on_device(device, after_ns, target_ns).filter(may_be))
    }))
}

// Inferred waits between streams: a late start follows the activity of another stream that ended
// just before.
//
// How late a start must be, and how strong the evidence, depends on whether the launching thread
// issued a wait call.

/// Returns the edge from the likeliest activity that ended shortly before the start, at a usual
/// latency; otherwise from the likeliest of all.
pub(super) fn released_edge(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let late_ns = start_ns - ready_ns;
    let Some((reach_ns, least)) = suspicion(work, late_ns, facts) else {
        return unasked(work, ready_ns, facts);
    };
    let likeliest = |reach_ns: i64, until_ns: i64| {
        let ended_ns = (ready_ns.max(start_ns - reach_ns - 1), until_ns);
        let mut marks = Mark::FROM_LIKELY.into_iter().take_while(|&mark| mark >= least);
        paired(work, ended_ns, facts)
            .or_else(|| marks.find_map(|it| elsewhere(work, ended_ns, it, facts)))
    };
    let until = |until_ns: i64| {
        let farther = || likeliest(reach_ns, until_ns);
        let usual_ns = limits::WAIT_RELEASE_NS;
        likeliest(usual_ns, until_ns).or_else(|| (reach_ns > usual_ns).then(farther).flatten())
    };
    // An end closer to the start than a wait takes is accepted only if the start needs a reason.
    let needs_reason =
        late_ns > limits::LATE_START_AFTER_WAIT_CALL_NS || facts.streams.n_siblings() > 0;
    let producer = until(start_ns - limits::QUICKEST_RELEASE_NS)
        .or_else(|| needs_reason.then(|| until(start_ns)).flatten())?;
    let rival = of_start(producer, work, ready_ns, facts);
    Some(facts.wait_edge(producer, work, Evidence::Inferred).with_rival(rival))
}

/// Returns the edge from the last activity to end on the other side of a stream that waits for all
/// others without a wait call, however late the start is.
fn unasked(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let after_ns = ready_ns.max(start_ns - limits::WAIT_RELEASE_NS - 1);
    let ended_ns = (after_ns, start_ns - limits::QUICKEST_RELEASE_NS);
    let device = facts.streams.device_of(work);
    let (_, producer) = ended_on_device(device, work, ended_ns, Mark::Unmarked, facts)
        .filter(|&(_, producer)| facts.are_serial(producer, work))?;
    Some(facts.wait_edge(producer, work, Evidence::Inferred))
}

/// Returns how long before the start the awaited activity may have ended, and the weakest mark
/// accepted. The later the start, the weaker the mark.
fn suspicion(work: Order, late_ns: i64, facts: &Facts<'_>) -> Option<(i64, Mark)> {
    let after_call_ns = limits::WAIT_RELEASE_AFTER_WAIT_CALL_NS;
    let is_late = late_ns > limits::LATE_START_NS;
    let is_rather_late = late_ns > limits::LATE_START_AFTER_WAIT_CALL_NS;
    match facts.asked[work.row()] {
        Asked::JustNow | Asked::Before if is_late => Some((after_call_ns, Mark::Unmarked)),
        Asked::JustNow if is_rather_late => Some((after_call_ns, Mark::Possible)),
        // The calls that record events are unknown, so any wait call may be the one.
        Asked::Before if is_rather_late && !facts.marks.has_records => {
            Some((after_call_ns, Mark::Possible))
        }
        Asked::JustNow => Some((after_call_ns, Mark::Likely)),
        // In a process with several devices, the events recorded before the wait calls are reliable
        // enough.
        Asked::Before if is_rather_late && facts.paired_on_devices(work).is_some() => {
            Some((after_call_ns, Mark::Likely))
        }
        Asked::No if is_late && may_wait_without_call(work, facts) => {
            Some((limits::WAIT_RELEASE_NS, Mark::Unmarked))
        }
        Asked::ByOther if is_late => Some((limits::WAIT_RELEASE_NS, Mark::Possible)),
        Asked::Before | Asked::ByOther | Asked::No => None,
    }
}

/// Whether the activity may have waited without a visible wait call: the trace has no such calls,
/// or they could not be recorded.
fn may_wait_without_call(work: Order, facts: &Facts<'_>) -> bool {
    !facts.has_wait_calls || facts.timeline.launcher(work).is_none() || facts.is_in_graph(work)
}
