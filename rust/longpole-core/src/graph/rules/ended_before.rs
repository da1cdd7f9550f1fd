//! The candidates for what a start waited for: work that ended before it.

use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{first_of_last, latest_to_end, Stream};
use crate::ids::Order;

/// The work of another stream of the device that ended last before this one began, of
/// those submitted before it and marked at least so.
pub(super) fn elsewhere(
    work: Order,
    after_ns: i64,
    least: Mark,
    facts: &Facts<'_>,
) -> Option<Order> {
    let streams = facts.other_streams(work).map(|stream| &facts.streams.all[stream]);
    latest_to_end(streams.filter_map(|stream| in_stream(stream, work, after_ns, least, facts)))
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
            && timeline.submitted_ns(other) < submitted_ns
            && facts.streams.stream_of(other) != own
    };
    first_of_last(stream.ending_in(after_ns, timeline.start_ns(work)).filter(may_be))
}
