//! Device and context synchronise: the call waited for the last work of the device.

use super::candidates::{last_ending_in, streams_of_device};
use crate::graph::facts::{Facts, Recent};
use crate::ids::Order;

/// What such a call waited for.
pub(super) fn producer(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
    last_ending_in(call, streams_of_device(recent, facts), facts)
}
