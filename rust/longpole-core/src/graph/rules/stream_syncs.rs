//! Stream synchronization: the call does not name its stream, but threads synchronize the streams
//! they use.

use super::candidates::{
    ends_in, has_just_ended, is_short, last_ending_in, last_finished, returns_ns,
};
use crate::graph::facts::{Facts, Recent};
use crate::graph::model::{latest_to_end, limits};
use crate::ids::Order;

/// Returns the activity that such a call waited for. If several threads launch, a thread is assumed
/// to synchronize streams on which it or its backward thread launched.
pub(super) fn producer(
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
