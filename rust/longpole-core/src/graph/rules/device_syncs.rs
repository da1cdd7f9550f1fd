//! Device and context synchronization: the call waited for the last activity of the device.
//!
//! The call does not name the device. In a process with several devices, it is the one that became
//! idle last during the call, otherwise the one that the thread launched to last.

use super::candidates::{last_ending_in, last_finished, returns_ns, streams_of_device};
use crate::graph::facts::{Facts, Recent};
use crate::graph::model::{latest_to_end, limits};
use crate::ids::Order;

/// Returns the activity that such a call waited for.
pub(super) fn producer(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
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
