//! Event synchronise: the call waited for work behind which an event was recorded.

use super::candidates::{ends_in, has_just_ended, is_short};
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{first_of_last, latest_to_end, limits};
use crate::ids::Order;

/// The last to end of all submitted work behind which some event was recorded.
pub(super) fn producer(call: Order, facts: &Facts<'_>) -> Option<Order> {
    let end_ns = facts.timeline.end_ns(call);
    let late_ns = end_ns + limits::CLOCK_TOLERANCE_NS;
    if !facts.marks.has_records {
        return last_marked(call, late_ns, Mark::Possible, facts);
    }
    let likely = last_marked(call, end_ns, Mark::Likely, facts);
    if is_short(call, facts) {
        return likely;
    }
    let possible = last_marked(call, end_ns, Mark::Possible, facts);
    let has_just_ended = |work: &Order| has_just_ended(*work, call, facts);
    likely
        .filter(has_just_ended)
        .or(possible.filter(has_just_ended))
        .or_else(|| last_marked(call, late_ns, Mark::Likely, facts))
        .or(possible)
}

/// The last to end, up to a time, of all submitted work that is marked at least so.
fn last_marked(call: Order, until_ns: i64, least: Mark, facts: &Facts<'_>) -> Option<Order> {
    let timeline = facts.timeline;
    let called_ns = timeline.start_ns(call);
    let may_be = |&(_, work): &(i64, Order)| {
        facts.marks.of_work(work) >= least
            && timeline.earliest_submission_ns(work) < called_ns
            && ends_in(work, call, facts)
    };
    latest_to_end(
        facts.streams.all.iter().filter_map(|stream| {
            first_of_last(stream.ending_in(called_ns, until_ns).filter(may_be))
        }),
    )
}
