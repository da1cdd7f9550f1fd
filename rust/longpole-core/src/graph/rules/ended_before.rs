//! The candidates for what a start waited for: work that ended before it.

use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{first_of_last, latest_to_end, Stream};
use crate::ids::Order;

/// The work of another stream that ended last before this one began, of those submitted
/// before it and marked at least so; of its own device first.
pub(super) fn elsewhere(
    work: Order,
    after_ns: i64,
    least: Mark,
    facts: &Facts<'_>,
) -> Option<Order> {
    let device = facts.streams.device_of(work);
    let on = |is_own: bool| {
        let streams = facts.streams_to_wait_for(work);
        let streams =
            streams.filter(|&it| (facts.streams.device_of_stream(it) == device) == is_own);
        latest_to_end(streams.filter_map(|stream| {
            in_stream(&facts.streams.all[stream], work, after_ns, least, facts)
        }))
    };
    on(true).or_else(|| on(false))
}

/// Of the work that the thread is likely to have let a stream wait for, the last that
/// ended before this one began.
pub(super) fn paired(work: Order, after_ns: i64, facts: &Facts<'_>) -> Option<Order> {
    let timeline = facts.timeline;
    let own = facts.streams.stream_of(work);
    let may_be = |&&other: &&Order| {
        let end_ns = timeline.end_ns(other);
        facts.streams.stream_of(other) != own
            && after_ns < end_ns
            && end_ns <= timeline.start_ns(work)
    };
    let candidates = facts.paired_on_devices(work)?.iter().filter(may_be);
    latest_to_end(candidates.map(|&other| (timeline.end_ns(other), other)))
}

/// The same in one stream, or in a device taken for one.
pub(super) fn in_stream(
    stream: &Stream,
    work: Order,
    after_ns: i64,
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
    first_of_last(stream.ending_in(after_ns, timeline.start_ns(work)).filter(may_be))
}
