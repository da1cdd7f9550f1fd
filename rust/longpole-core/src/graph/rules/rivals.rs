//! Rivals of an inferred wait: work of a third stream that ended just as shortly before,
//! and may have been what was waited for.
//!
//! On simulated programs one inferred wait in twelve with a rival was wrong, and next to
//! none without.

use crate::graph::facts::Facts;
use crate::graph::model::{first_of_last, latest_to_end, limits};
use crate::ids::Order;

/// The rival of `producer` for what happened at `target_ns`, on some streams: the last to
/// end since `after_ns`, of the work submitted before `asked_ns`.
pub(super) fn of(
    producer: Order,
    (after_ns, asked_ns, target_ns): (i64, i64, i64),
    streams: impl Iterator<Item = usize>,
    facts: &Facts<'_>,
) -> Option<Order> {
    let own = facts.streams.stream_of(producer);
    let after_ns = after_ns.max(target_ns - limits::WAIT_RELEASE_NS - 1);
    let was_asked_for =
        |&(_, work): &(i64, Order)| facts.timeline.earliest_submission_ns(work) < asked_ns;
    latest_to_end(streams.filter(|&stream| stream != own).filter_map(|stream| {
        let ended = facts.streams.all[stream].ending_in(after_ns, target_ns);
        first_of_last(ended.filter(was_asked_for))
    }))
}

/// The rival of what a call that names no stream waited for.
pub(super) fn of_call(producer: Order, call: Order, facts: &Facts<'_>) -> Option<Order> {
    let (start_ns, end_ns) = (facts.timeline.start_ns(call), facts.timeline.end_ns(call));
    of(producer, (start_ns, start_ns, end_ns), 0..facts.streams.all.len(), facts)
}
