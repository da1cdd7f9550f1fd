//! Event synchronization: the call waited for an activity after which an event was recorded, by its
//! own thread if that thread records events.

use super::candidates::{ends_in, has_just_ended, is_short};
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{first_of_last, latest_to_end, limits};
use crate::ids::Order;

/// Of the submitted activities after which an event was recorded, returns the last to end.
pub(super) fn producer(call: Order, facts: &Facts<'_>) -> Option<Order> {
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
