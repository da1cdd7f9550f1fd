//! Waits between streams that had no effect, because the awaited activity had already ended.
//!
//! A wait call refers to an activity of another stream. If that activity ended before everything
//! else that the next activity of the stream needed, the wait does not show in the times. The
//! dependency still exists, and binds if the host becomes faster.

use std::collections::BTreeMap;

use crate::graph::facts::{Asked, Facts, Mark};
use crate::graph::model::{Edge, Evidence};
use crate::ids::Order;

/// Returns the edges from the activities that a GPU activity likely waits for, if they ended before
/// it was ready.
pub(super) fn edges<'f>(
    work: Order,
    ready_ns: i64,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = Edge> + use<'f> {
    let was_over = move |&producer: &Order| facts.timeline.end_ns(producer) < ready_ns;
    let producers = producers(work, facts).into_iter().filter(was_over);
    producers.map(move |producer| facts.wait_edge(producer, work, Evidence::Inferred))
}

/// For each stream, returns the last activity that it likely waited for.
fn producers(work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let asked = facts.asked[work.row()];
    if matches!(asked, Asked::No | Asked::ByOther) {
        return Vec::new();
    }
    match facts.paired.get(&work) {
        Some(paired) => last_of_streams(paired, work, facts),
        // Without calls that record events no activity is likely, so no stream needs to be
        // searched.
        None if asked == Asked::JustNow && facts.marks.has_records => {
            recorded_elsewhere(work, facts)
        }
        None => Vec::new(),
    }
}

fn last_of_streams(works: &[Order], work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let own = facts.streams.stream_of(work);
    let mut last: BTreeMap<usize, Order> = BTreeMap::new();
    for &other in works.iter().filter(|&&other| facts.streams.stream_of(other) != own) {
        let known = last.entry(facts.streams.stream_of(other)).or_insert(other);
        let finished = |it: Order| (facts.timeline.end_ns(it), it);
        *known = if finished(other) > finished(*known) { other } else { *known };
    }
    last.into_values().collect()
}

/// For each other stream of the device, returns its last activity, if an event follows it that
/// another thread recorded (for example, the backward thread).
fn recorded_elsewhere(work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let submitted_ns = facts.timeline.submitted_ns(work);
    let last = |stream: usize| facts.streams.all[stream].last_submitted_before(submitted_ns);
    let is_likely = |&other: &Order| facts.marks.of_work(other) == Mark::Likely;
    facts.other_streams(work).filter_map(last).filter(is_likely).collect()
}
