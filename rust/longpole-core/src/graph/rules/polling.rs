//! Polling loops: a run of queries that ends when an activity has ended counts as one waiting call.
//!
//! Allocators also query events, in short runs at any time, without waiting. A run therefore counts
//! only if it is long and an activity ended between its last two queries, and the runs of a thread
//! count only if this holds for half of its long runs.

use super::syncs;
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{Edge, Evidence, Kind, Role, first_of_last, latest_to_end, limits};
use crate::ids::{NodeId, Order, RowMap};
use crate::vocabulary::ApiRole;

/// A run of queries, and the activity whose end ended it.
pub(super) struct Poll {
    first: Order,
    last: Order,
    producer: Order,
}

/// Returns the runs of queries that waited.
pub(super) fn polls(facts: &Facts<'_>) -> Vec<Poll> {
    let mut found = Vec::new();
    for runs in runs_by_thread(facts) {
        let hits: Vec<_> = runs.iter().filter_map(|run| poll(run, facts)).collect();
        if hits.len() * 2 >= runs.len() {
            found.extend(hits);
        }
    }
    found
}

/// Turns each run of queries into one call that returns after its activity.
pub(super) fn apply(polls: &[Poll], chains: &mut [Edge], facts: &Facts<'_>) -> Vec<Edge> {
    if polls.is_empty() {
        return Vec::new();
    }
    let starts: RowMap<NodeId, (NodeId, Order)> = polls
        .iter()
        .map(|poll| (facts.nodes.end(poll.last), (facts.nodes.start(poll.first), poll.last)))
        .collect();
    for edge in chains.iter_mut() {
        if let Some(&(source, call)) = starts.get(&edge.target) {
            let named = (Kind::Runtime, Role::ThreadOrder);
            *edge = Edge::new((source, edge.target), named, Some(call), Evidence::Order);
        }
    }
    let wait = |poll: &Poll| syncs::edge(poll.producer, poll.last, Evidence::Inferred, facts);
    polls.iter().map(wait).collect()
}

/// Returns the long runs of queries of each thread, without another call or operator in between.
fn runs_by_thread(facts: &Facts<'_>) -> Vec<Vec<Vec<Order>>> {
    let timeline = facts.timeline;
    let mut open: Vec<Vec<Order>> = vec![Vec::new(); facts.streams.n_lanes()];
    let mut runs: Vec<Vec<Vec<Order>>> = vec![Vec::new(); facts.streams.n_lanes()];
    let mut close = |run: &mut Vec<Order>| {
        let run = std::mem::take(run);
        if let [first, .., last] = run[..]
            && timeline.end_ns(last) - timeline.start_ns(first) >= limits::LONG_POLL_NS
        {
            runs[timeline.lane(first)].push(run);
        }
    };
    for event in timeline.orders() {
        let kind = timeline.kind(event);
        if kind.is_call() && facts.purpose(event) == ApiRole::Query {
            open[timeline.lane(event)].push(event);
        } else if kind.is_call() || kind == crate::tables::EventKind::Operator {
            close(&mut open[timeline.lane(event)]);
        }
    }
    open.iter_mut().for_each(close);
    runs.into_iter().filter(|runs| !runs.is_empty()).collect()
}

/// Returns the activity that ended between the second-last query and the end of the last.
fn poll(run: &[Order], facts: &Facts<'_>) -> Option<Poll> {
    let timeline = facts.timeline;
    let [first, .., before_last, last] = *run else { return pair(run, facts) };
    let (after_ns, until_ns) =
        (timeline.start_ns(before_last), timeline.start_ns(last) + limits::QUERY_SEES_NS);
    let ended = |least| ended_between(first, (after_ns, until_ns), least, facts);
    let producer = ended(Mark::Likely).or_else(|| ended(Mark::Unmarked))?;
    Some(Poll { first, last, producer })
}

/// Like [`poll`], for a run of only two queries: the activity must be likely.
fn pair(run: &[Order], facts: &Facts<'_>) -> Option<Poll> {
    let timeline = facts.timeline;
    let &[first, last] = run else { return None };
    let until_ns = timeline.start_ns(last) + limits::QUERY_SEES_NS;
    let ended = (timeline.start_ns(first), until_ns);
    let producer = ended_between(first, ended, Mark::Likely, facts)?;
    Some(Poll { first, last, producer })
}

/// Of the activities submitted before a call, returns the last to end in the given time.
fn ended_between(
    first: Order,
    (after_ns, until_ns): (i64, i64),
    least: Mark,
    facts: &Facts<'_>,
) -> Option<Order> {
    let asked_ns = facts.timeline.start_ns(first);
    let may_be = |&(_, work): &(i64, Order)| {
        facts.marks.of_work(work) >= least && facts.timeline.earliest_submission_ns(work) < asked_ns
    };
    latest_to_end(
        facts.streams.all.iter().filter_map(|stream| {
            first_of_last(stream.ending_in(after_ns, until_ns).filter(may_be))
        }),
    )
}
