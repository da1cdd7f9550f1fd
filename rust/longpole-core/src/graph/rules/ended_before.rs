//! Candidates for what a start waited for: activities that ended before it.

use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{first_of_last, latest_to_end};
use crate::ids::Order;

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
    let on = |device: usize| on_device(device, work, ended_ns, least, facts);
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
pub(super) fn on_device(
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
