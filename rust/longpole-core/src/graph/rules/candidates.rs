//! Candidates for what a call waited for: activities submitted before it that ended during it.

use crate::graph::facts::{Facts, Recent};
use crate::graph::model::{latest_to_end, limits};
use crate::ids::Order;

/// Returns the streams of the device to which the calling thread launched last.
pub(super) fn streams_of_device<'f>(recent: &Recent, facts: &'f Facts<'_>) -> &'f [usize] {
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
pub(super) fn last_ending_in(call: Order, streams: &[usize], facts: &Facts<'_>) -> Option<Order> {
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
pub(super) fn has_just_ended(work: Order, call: Order, facts: &Facts<'_>) -> bool {
    returns_ns(work, call, facts) <= limits::SYNC_RETURN_NS
}

/// Whether a call is so short that it may have had nothing to wait for.
pub(super) fn is_short(call: Order, facts: &Facts<'_>) -> bool {
    facts.timeline.duration_ns(call) < limits::LONG_SYNC_NS
}
