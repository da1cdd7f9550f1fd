//! Calls that free, allocate, pin memory or load code, and may wait for the device.
//!
//! Such a call is assumed to have waited only if the device became idle shortly before its end;
//! otherwise it was just slow.

use super::candidates::{last_ending_in, last_finished, streams_of_device};
use crate::graph::facts::{Facts, Recent};
use crate::graph::model::limits;
use crate::ids::Order;

/// Returns the activity that such a call waited for.
pub(super) fn producer(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
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
