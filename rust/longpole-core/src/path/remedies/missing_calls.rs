//! Calls that were made but are not recorded.
//!
//! The profiler numbers the calls of a process in order. If numbers are missing, neither the calls
//! nor their activities are in the trace. The missing calls may have launched activities, and may
//! have waited. An activity without its call has the number of that call, which therefore does not
//! count as missing.
//!
//! Kineto leaves out calls such as `cudaGetDevice`, which also get numbers. Missing numbers are
//! therefore evidence only if nearly every call is recorded.

use super::question::Question;
use crate::graph::{Graph, Kind, Role};
use crate::ids::{NodeId, Order};
use crate::vocabulary::ApiRole;

/// A trace counts as recording every call if at least this many of three numbers follow the previous
/// one directly.
const MOST_FOLLOW: usize = 2;

/// Two consecutive calls of a thread between which calls of its process are missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct MissingCalls {
    pub(super) thread: usize,
    /// The end of the call before.
    pub(super) before: NodeId,
    /// The start of the call after.
    pub(super) behind: NodeId,
    /// The usual host time of as many calls as are missing. At most the remaining time can be a
    /// wait.
    pub(super) host_ns: i64,
}

impl MissingCalls {
    /// Returns the edges of the thread that may be waits: all but the first ones, which are covered
    /// by the host time of the missing calls.
    pub(super) fn waits(&self, graph: &Graph) -> Vec<usize> {
        let edges = graph.edges.as_slice();
        let mut host_ns = self.host_ns;
        let may_wait = |&place: &usize| {
            let edge = &edges[place];
            let time_ns = graph.nodes.time_ns(edge.target) - graph.nodes.time_ns(edge.source);
            let of_thread = edge.role == Role::ThreadOrder && edge.kind != Kind::DataLoading;
            let is_host = time_ns <= host_ns;
            host_ns -= if of_thread && is_host { time_ns } else { 0 };
            of_thread && !is_host
        };
        let nodes = graph.thread_nodes.between(self.thread, self.before, self.behind);
        nodes.iter().flat_map(|&node| graph.edges.range(node)).filter(may_wait).collect()
    }
}

/// Returns all pairs of calls with missing calls in between, by thread and in order of time, without
/// overlap.
pub(super) fn missing_calls(question: &Question<'_>) -> Vec<MissingCalls> {
    let has_work = |work: Order| question.graph.timeline.kind(work).is_device_work();
    if !question.graph.timeline.orders().any(has_work) {
        return Vec::new();
    }
    let numbered = numbered(question);
    let is_next = |pair: &&[(i64, Option<Order>)]| pair[1].0 - pair[0].0 <= 1;
    let n_next = numbered.windows(2).filter(is_next).count();
    if 3 * n_next < MOST_FOLLOW * numbered.len() {
        return Vec::new();
    }
    let usual_ns = usual_ns(&numbered, question);
    let mut found = Vec::new();
    let (mut last, mut n_missing) = (None, 0);
    for pair in numbered.windows(2) {
        last = pair[0].1.or(last);
        n_missing += (pair[1].0 - pair[0].0 - 1).max(0);
        let (Some(before), Some(behind)) = (last, pair[1].1) else { continue };
        let n_calls = std::mem::take(&mut n_missing);
        if n_calls > 0 {
            found.extend(between(before, behind, usual_ns.saturating_mul(n_calls), question));
        }
    }
    disjoint(found)
}

/// Merges those of a thread that overlap, because calls of other threads are missing as well.
fn disjoint(mut missing_calls: Vec<MissingCalls>) -> Vec<MissingCalls> {
    missing_calls.sort_unstable_by_key(|missing| (missing.thread, missing.before, missing.behind));
    missing_calls.dedup_by(|next, last| {
        let is_one = next.thread == last.thread && next.before < last.behind;
        if is_one {
            last.behind = last.behind.max(next.behind);
            last.host_ns = last.host_ns.min(next.host_ns);
        }
        is_one
    });
    missing_calls
}

/// Returns the median time from a call that does not wait to the next call of its thread.
fn usual_ns(numbered: &[(i64, Option<Order>)], question: &Question<'_>) -> i64 {
    let (timeline, roles) = (&question.graph.timeline, question.tables.roles());
    let usual_ns = |pair: &[(i64, Option<Order>)]| {
        let (call, next) = (pair[0].1?, pair[1].1?);
        let waits = timeline.name(call).is_some_and(|name| may_wait(roles[name.row()]));
        let is_usual =
            !waits && pair[1].0 - pair[0].0 == 1 && timeline.lane(call) == timeline.lane(next);
        is_usual.then(|| timeline.start_ns(next) - timeline.start_ns(call))
    };
    let mut times_ns: Vec<_> = numbered.windows(2).filter_map(usual_ns).collect();
    let middle = times_ns.len() / 2;
    if times_ns.is_empty() { 0 } else { *times_ns.select_nth_unstable(middle).1 }.max(0)
}

/// Returns the numbers of all calls, and of activities whose call is missing, in order.
fn numbered(question: &Question<'_>) -> Vec<(i64, Option<Order>)> {
    let (timeline, events) = (&question.graph.timeline, &question.tables.events);
    let number = |order: Order| {
        let number = events.correlation(timeline.event(order)).filter(|&number| number > 0)?;
        let kind = timeline.kind(order);
        let is_alone = kind.is_device_work() && timeline.launcher(order).is_none();
        (kind.is_call() || is_alone).then(|| (number, kind.is_call().then_some(order)))
    };
    let mut numbered: Vec<_> = timeline.orders().filter_map(number).collect();
    numbered.sort_unstable();
    numbered
}

/// Returns the time without records on the threads of two calls between those calls.
fn between(
    before: Order,
    behind: Order,
    host_ns: i64,
    question: &Question<'_>,
) -> Vec<MissingCalls> {
    let graph = question.graph;
    let (timeline, nodes) = (&graph.timeline, &graph.nodes);
    let (from_ns, until_ns) = (timeline.end_ns(before), timeline.start_ns(behind));
    let mut threads = vec![timeline.lane(before), timeline.lane(behind)];
    threads.dedup();
    let host_ns = if threads.len() == 1 { host_ns } else { 0 };
    let on = |thread: usize| {
        let (before, _) = graph.thread_nodes.around(thread, from_ns, nodes)?;
        let (_, behind) = graph.thread_nodes.around(thread, until_ns - 1, nodes)?;
        (before < behind).then_some(MissingCalls { thread, before, behind, host_ns })
    };
    threads.into_iter().filter_map(on).collect()
}

/// Whether a call returns when a GPU activity has ended.
pub(super) fn may_wait(role: ApiRole) -> bool {
    matches!(
        role,
        ApiRole::StreamSynchronize
            | ApiRole::EventSynchronize
            | ApiRole::DeviceSynchronize
            | ApiRole::BlockingCopy
    )
}
