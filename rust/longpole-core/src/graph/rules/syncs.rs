//! Edges into the ends of calls that waited: for a device, an event or a stream, or as a side effect
//! of allocating and freeing memory.

use std::collections::{BTreeMap, HashSet};

use crate::graph::facts::{Facts, Mark, Recent};
use crate::graph::model::{Edge, Evidence, Kind, Role, first_of_last, latest_to_end, limits};
use crate::ids::{Order, StringId};
use crate::vocabulary::ApiRole;

/// Returns the streams of the device to which the calling thread launched last.
fn streams_of_device<'f>(recent: &Recent, facts: &'f Facts<'_>) -> &'f [usize] {
    let streams = &facts.streams;
    let last = recent.streams().next().map(|stream| streams.device_of_stream(stream));
    let only_device = (streams.n_devices() == 1).then_some(0);
    last.or(only_device).map_or(&[], |device| streams.of_device(device))
}

/// For each stream, returns the activity that finishes last, of those submitted before the call.
pub(super) fn last_finished<'s>(
    call: Order,
    streams: &'s [usize],
    facts: &'s Facts<'_>,
) -> impl Iterator<Item = (i64, Order)> + 's {
    streams.iter().filter_map(move |&stream| {
        let stream = &facts.streams.all[stream];
        let work = stream.last_awaited(facts.timeline.start_ns(call), call, facts.timeline)?;
        Some((facts.timeline.end_ns(work), work))
    })
}

/// Returns the last of these that ended during the call.
fn last_ending_in(call: Order, streams: &[usize], facts: &Facts<'_>) -> Option<Order> {
    let ended = last_finished(call, streams, facts).filter(|&(_, work)| ends_in(work, call, facts));
    latest_to_end(ended)
}

/// Whether an activity ended during a call, within the tolerance of the clocks.
pub(super) fn ends_in(work: Order, call: Order, facts: &Facts<'_>) -> bool {
    let timeline = facts.timeline;
    let latest_ns = timeline.end_ns(call) + limits::CLOCK_TOLERANCE_NS;
    let end_ns = timeline.end_ns(work);
    timeline.start_ns(call) < end_ns
        && end_ns <= latest_ns
        && timeline.start_ns(work) < timeline.end_ns(call)
}

/// Returns the time from the end of an activity to the end of the call.
pub(super) fn returns_ns(work: Order, call: Order, facts: &Facts<'_>) -> i64 {
    facts.timeline.end_ns(call) - facts.timeline.end_ns(work)
}

/// Whether an activity ended shortly enough before the end of the call to explain it.
fn has_just_ended(work: Order, call: Order, facts: &Facts<'_>) -> bool {
    returns_ns(work, call, facts) <= limits::SYNC_RETURN_NS
}

/// Whether a call is so short that it may have had nothing to wait for.
pub(super) fn is_short(call: Order, facts: &Facts<'_>) -> bool {
    facts.timeline.duration_ns(call) < limits::LONG_SYNC_NS
}

// Edges from an activity to the end of the call that waited for it.

/// Returns the edge from an activity to the end of its call. An activity whose timestamps end
/// slightly later is clipped, and one that lies slightly after the call is replaced by the one
/// before it on its stream.
pub(super) fn edge(producer: Order, call: Order, evidence: Evidence, facts: &Facts<'_>) -> Edge {
    let timeline = facts.timeline;
    let tolerated_ns = limits::tolerated_ns(timeline.duration_ns(call));
    let producer = begun_in(producer, call, tolerated_ns, facts);
    let late_ns = timeline.end_ns(producer) - timeline.end_ns(call);
    let target = facts.nodes.end(call);
    if 0 < late_ns && late_ns <= tolerated_ns && timeline.start_ns(producer) < timeline.end_ns(call)
    {
        let mut edge = facts.inside_edge(producer, target, Role::SyncInside);
        edge.evidence = evidence;
        return edge;
    }
    let named = (Kind::SyncReturn, Role::Sync);
    Edge::new((facts.nodes.end(producer), target), named, Some(call), evidence)
}

/// Returns the awaited activity, or an earlier one of its stream if it seems to begin when the call
/// has returned.
fn begun_in(producer: Order, call: Order, tolerated_ns: i64, facts: &Facts<'_>) -> Order {
    let timeline = facts.timeline;
    let (start_ns, end_ns) = (timeline.start_ns(call), timeline.end_ns(call));
    let mut found = producer;
    while timeline.start_ns(found) >= end_ns
        && timeline.end_ns(producer) - end_ns <= tolerated_ns
        && let Some(before) = facts.streams.before_on_stream(found)
        && timeline.end_ns(before) > start_ns
    {
        found = before;
    }
    found
}

// Device and context synchronization: the call waited for the last activity of the device.
//
// The call does not name the device. In a process with several devices, it is the one that became
// idle last during the call, otherwise the one that the thread launched to last.

/// Returns the activity that such a call waited for.
pub(super) fn last_of_device(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
    let is_short = facts.timeline.duration_ns(call) < limits::SHORTEST_WAIT_NS;
    let on_last_device = || last_ending_in(call, streams_of_device(recent, facts), facts);
    of_several_devices(call, recent, facts)
        .or_else(|| if is_short { None } else { on_last_device() })
}

/// Whether a call of any length may have waited for one of several devices.
pub(super) fn may_mean_several(recent: &Recent, facts: &Facts<'_>) -> bool {
    let device = recent.streams().next().map(|stream| facts.streams.device_of_stream(stream));
    device.is_some_and(|device| facts.streams.has_siblings(device))
}

/// Returns the last activity of the device that became idle last during the call, shortly before
/// its end.
fn of_several_devices(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
    let streams = &facts.streams;
    let device = streams.device_of_stream(recent.streams().next()?);
    if !streams.has_siblings(device) {
        return None;
    }
    let devices = streams.siblings_of(device).iter().copied().chain([device]);
    let last = |device| last_finished(call, streams.of_device(device), facts).max();
    let fell_idle_in = |&(end_ns, work): &(i64, Order)| {
        facts.timeline.start_ns(call) < end_ns
            && returns_ns(work, call, facts) >= limits::QUICKEST_RETURN_NS
    };
    latest_to_end(devices.filter_map(last).filter(fell_idle_in))
}

// Event synchronization: the call waited for an activity after which an event was recorded, by its
// own thread if that thread records events.

/// Of the submitted activities after which an event was recorded, returns the last to end.
pub(super) fn awaited_by_event_sync(call: Order, facts: &Facts<'_>) -> Option<Order> {
    let end_ns = facts.timeline.end_ns(call);
    let late_ns = end_ns + limits::CLOCK_TOLERANCE_NS;
    let marked = |until_ns, least| {
        last_ending(call, until_ns, facts, |work| facts.marks.of_work(work) >= least)
    };
    if !facts.marks.has_records {
        return marked(late_ns, Mark::Possible);
    }
    let likely = marked(end_ns, Mark::Likely);
    let is_own = |work: Order| is_recorded_by_caller(work, call, facts);
    let records = facts.marks.is_recording(facts.timeline.lane(call));
    let own = |until_ns| records.then(|| last_ending(call, until_ns, facts, is_own)).flatten();
    if is_short(call, facts) {
        return if records { own(end_ns) } else { likely };
    }
    let possible = marked(end_ns, Mark::Possible);
    let has_just_ended = |work: &Order| has_just_ended(*work, call, facts);
    own(end_ns)
        .filter(has_just_ended)
        .or(likely.filter(has_just_ended))
        .or(possible.filter(has_just_ended))
        .or_else(|| own(late_ns))
        .or_else(|| marked(late_ns, Mark::Likely))
        .or(possible)
}

/// Whether the thread of a call, or its backward thread, recorded the event after an activity.
fn is_recorded_by_caller(work: Order, call: Order, facts: &Facts<'_>) -> bool {
    let caller = facts.timeline.lane(call);
    let recorder = facts.marks.recorded_by(work);
    recorder.is_some_and(|recorder| facts.forward_of(recorder).any(|thread| thread == caller))
}

/// Of the submitted activities that `is_meant` accepts, returns the last to end by a time.
fn last_ending(
    call: Order,
    until_ns: i64,
    facts: &Facts<'_>,
    is_meant: impl Fn(Order) -> bool,
) -> Option<Order> {
    let timeline = facts.timeline;
    let called_ns = timeline.start_ns(call);
    let may_be = |&(_, work): &(i64, Order)| {
        is_meant(work)
            && timeline.earliest_submission_ns(work) < called_ns
            && ends_in(work, call, facts)
    };
    latest_to_end(
        facts.streams.all.iter().filter_map(|stream| {
            first_of_last(stream.ending_in(called_ns, until_ns).filter(may_be))
        }),
    )
}

// Stream synchronization: the call does not name its stream, but threads synchronize the streams
// they use.

/// Returns the activity that such a call waited for. If several threads launch, a thread is assumed
/// to synchronize streams on which it or its backward thread launched.
pub(super) fn awaited_by_stream_sync(
    call: Order,
    recent: &Recent,
    with_backward: &Recent,
    facts: &Facts<'_>,
) -> Option<Order> {
    let streams = &facts.streams.all;
    if streams.len() == 1 {
        return last_ending_in(call, &[0], facts);
    }
    let own: Vec<_> = with_backward.streams().collect();
    let lately: Vec<_> = recent.streams().collect();
    let lately: Vec<_> = last_finished(call, &lately, facts).map(|(_, work)| work).collect();
    if is_short(call, facts) && !lately.is_empty() {
        return over_lately(call, &lately, facts);
    }
    let is_soon_over =
        |work: &Order| ends_in(*work, call, facts) && returns_ns(*work, call, facts) < 0;
    let has_just_ended = |work: &Order| has_just_ended(*work, call, facts);
    let every_stream: Vec<_> = (0..streams.len()).collect();
    let just_over = |streams: &[usize]| {
        last_over(call, streams, limits::QUICKEST_RETURN_NS, facts)
            .filter(has_just_ended)
            .or_else(|| last_over(call, streams, 0, facts).filter(has_just_ended))
    };
    just_over(&own)
        .or_else(|| just_over(&every_stream))
        .or_else(|| lately.first().copied().filter(is_soon_over))
        .or_else(|| last_ending_in(call, &every_stream, facts))
}

/// Assumes that the call refers to the first of the given streams that has nothing left at its end.
fn over_lately(call: Order, last_of_streams: &[Order], facts: &Facts<'_>) -> Option<Order> {
    let mut works = last_of_streams.iter().copied();
    let over = works.find(|&work| returns_ns(work, call, facts) >= 0)?;
    let waited = returns_ns(over, call, facts) >= limits::QUICKEST_RETURN_NS;
    (waited && ends_in(over, call, facts)).then_some(over)
}

/// On the given streams, returns the last activity to end during the call and at least `least_ns`
/// before its end.
fn last_over(call: Order, streams: &[usize], least_ns: i64, facts: &Facts<'_>) -> Option<Order> {
    let is_over = |&(_, work): &(i64, Order)| {
        ends_in(work, call, facts) && returns_ns(work, call, facts) >= least_ns
    };
    latest_to_end(last_finished(call, streams, facts).filter(is_over))
}

// Calls that free, allocate, pin memory or load code, and may wait for the device.
//
// Such a call is assumed to have waited only if the device became idle shortly before its end;
// otherwise it was just slow.

/// Returns the activity that such a call waited for.
pub(super) fn awaited_implicitly(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
    let streams = streams_of_device(recent, facts);
    let share_ns = facts.timeline.duration_ns(call) / limits::IMPLICIT_RETURN_PART;
    let end_ns = facts.timeline.end_ns(call);
    let earliest_ns = end_ns - limits::IMPLICIT_RETURN_NS.max(share_ns);
    let last_ns = last_finished(call, streams, facts).map(|(end, _)| end).max()?;
    if last_ns > end_ns || last_ns < earliest_ns {
        return None;
    }
    last_ending_in(call, streams, facts)
}

// Learns from the trace which calls that allocate or free wait for the device.
//
// Whether `cudaMalloc` waits depends on the driver and the allocator. If calls of a name
// repeatedly return while GPU activities still run, calls of that name never wait.

/// Returns the names of calls that never wait.
pub(super) fn never_waiting(facts: &Facts<'_>) -> HashSet<StringId> {
    let mut threads = vec![Recent::default(); facts.tables.lanes.len()];
    let mut counts: BTreeMap<StringId, (usize, usize)> = BTreeMap::new();
    for call in facts.calls() {
        let recent = &mut threads[facts.timeline.lane(call)];
        if let Some(&first) = facts.streams.launched_by(call).first() {
            recent.launched_on(facts.streams.stream_of(first));
        }
        let may_wait = matches!(
            facts.purpose(call),
            ApiRole::Allocate | ApiRole::Free | ApiRole::LoadModule | ApiRole::UnloadModule
        );
        if !may_wait || facts.timeline.duration_ns(call) < limits::LONG_SYNC_NS {
            continue;
        }
        let (start_ns, end_ns) = (facts.timeline.start_ns(call), facts.timeline.end_ns(call));
        let streams = streams_of_device(recent, facts);
        let last_ns = last_finished(call, streams, facts).map(|(end, _)| end).max();
        let outstanding = last_ns.filter(|&ns| ns > start_ns + limits::OUTSTANDING_NS);
        if let (Some(last_ns), Some(name)) = (outstanding, facts.timeline.name(call)) {
            let (n_calls, n_early) = counts.entry(name).or_default();
            *n_calls += 1;
            *n_early += usize::from(last_ns > end_ns + limits::CLOCK_TOLERANCE_NS);
        }
    }
    let never = counts.into_iter().filter(|&(_, (n_calls, n_early))| {
        n_early > 0 && n_early * limits::NEVER_WAITING_PART >= n_calls
    });
    never.map(|(name, _)| name).collect()
}
