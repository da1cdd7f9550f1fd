//! Waits between streams that had nothing to wait for any more.
//!
//! A thread that let a stream wait meant some work of another stream. Where that was over
//! before anything else that the next work of the stream needed, nothing shows in the times;
//! but the dependency stands, and binds in a program whose host is faster.

use std::collections::BTreeMap;

use crate::graph::facts::{Asked, Facts, Mark};
use crate::graph::model::{Edge, Evidence};
use crate::ids::Order;

/// The edges from what a GPU activity is likely to have been made to wait for, where that
/// ended before it was ready.
pub(super) fn edges<'f>(
    work: Order,
    ready_ns: i64,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = Edge> + use<'f> {
    let was_over = move |&producer: &Order| facts.timeline.end_ns(producer) < ready_ns;
    let producers = producers(work, facts).into_iter().filter(was_over);
    producers.map(move |producer| facts.wait_edge(producer, work, Evidence::Inferred))
}

/// The last work of each stream that it is likely to have waited for.
fn producers(work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let asked = facts.asked[work.row()];
    if matches!(asked, Asked::No | Asked::ByOther) {
        return Vec::new();
    }
    match facts.paired.get(&work) {
        Some(paired) => last_of_streams(paired, work, facts),
        // Without records no mark is likely, and no stream need be looked at.
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

/// The last work of each other stream of the device, where an event stands behind it: another
/// thread, such as that of the backward pass, recorded it.
fn recorded_elsewhere(work: Order, facts: &Facts<'_>) -> Vec<Order> {
    let submitted_ns = facts.timeline.submitted_ns(work);
    let last = |stream: usize| facts.streams.all[stream].last_submitted_before(submitted_ns);
    let is_likely = |&other: &Order| facts.marks.of_work(other) == Mark::Likely;
    facts.other_streams(work).filter_map(last).filter(is_likely).collect()
}
