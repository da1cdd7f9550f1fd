//! Rivals of an inferred wait: activities of a third stream that ended just as shortly before, and
//! may be what was waited for.
//!
//! On simulated programs, one in twelve inferred waits with a rival was wrong, and almost none
//! without.

use super::ended_before;
use crate::graph::facts::{Asked, Facts, Mark};
use crate::graph::model::{Edge, first_of_last, latest_to_end, limits};
use crate::ids::Order;

/// Returns the rival of `producer` for the start of an activity that was ready at `ready_ns`.
pub(super) fn of_start(
    producer: Order,
    work: Order,
    ready_ns: i64,
    facts: &Facts<'_>,
) -> Option<Order> {
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
    ended_before::on_device(device, work, ended_ns, Mark::Unmarked, facts)
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
