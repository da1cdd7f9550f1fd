//! Edges into the ends of calls: the recorded wait, or the wait inferred from the name of the call.

use super::clocks::stays_on_device;
use super::{stream_waits, syncs};
use crate::error::Result;
use crate::graph::facts::{Facts, Recent};
use crate::graph::model::{Edge, Evidence, Kind, Role, first_of_last, latest_to_end, limits};
use crate::ids::{NodeId, Order, RowMap};
use crate::progress::{Progress, report};
use crate::tables::EventKind;
use crate::vocabulary::ApiRole;

/// Adds the edges into the ends of calls that waited for a device.
pub(super) fn edges(
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
    progress: Progress<'_>,
) -> Result<()> {
    let mut threads = Threads::new(facts);
    let never_waiting = syncs::never_waiting(facts);
    let may_wait =
        |call| facts.timeline.name(call).is_none_or(|name| !never_waiting.contains(&name));
    for call in facts.calls() {
        if call.row() % (1 << 12) == 0 {
            report(progress, call.row() as u64)?;
        }
        let thread = facts.timeline.lane(call);
        match facts.recorded.producers.get(&call) {
            Some(producers) => edges.extend(
                producers.iter().map(|&it| syncs::edge(it, call, Evidence::Recorded, facts)),
            ),
            None if facts.holders.contains(&call) => {
                let works = facts.streams.launched_by(call).iter();
                let last = latest_to_end(works.map(|&it| (facts.timeline.end_ns(it), it)));
                edges.extend(last.map(|it| syncs::edge(it, call, Evidence::Inferred, facts)));
            }
            None if may_wait(call) => {
                edges.extend(inferred(call, threads.of(thread), facts));
            }
            None => {}
        }
        if let Some(&first) = facts.streams.launched_by(call).first() {
            edges.extend(full_queue_edge(call, first, facts));
            threads.launched_on(facts.streams.stream_of(first), thread, facts);
        }
    }
    Ok(())
}

/// The recent streams of each thread, without and with those of its backward thread.
struct Threads {
    alone: Vec<Recent>,
    with_backward: Vec<Recent>,
}

impl Threads {
    fn new(facts: &Facts<'_>) -> Self {
        let alone = vec![Recent::default(); facts.tables.lanes.len()];
        Self { with_backward: alone.clone(), alone }
    }

    fn of(&self, thread: usize) -> [&Recent; 2] {
        [&self.alone[thread], &self.with_backward[thread]]
    }

    fn launched_on(&mut self, stream: usize, thread: usize, facts: &Facts<'_>) {
        self.alone[thread].launched_on(stream);
        for thread in facts.forward_of(thread) {
            self.with_backward[thread].launched_on(stream);
        }
    }
}

/// Returns the edge of a wait without a record. `recent` and `with_backward` are the streams that
/// the thread launched on, without and with its backward thread.
fn inferred(call: Order, [recent, with_backward]: [&Recent; 2], facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    let may_be_short =
        facts.purpose(call) == ApiRole::DeviceSynchronize && syncs::may_mean_several(recent, facts);
    if timeline.duration_ns(call) < limits::SHORTEST_WAIT_NS && !may_be_short {
        return None;
    }
    let works = facts.streams.launched_by(call).iter().copied();
    let copies = works.filter(|&work| timeline.kind(work) == EventKind::Copy);
    if let Some(copy) = latest_to_end(copies.map(|work| (timeline.end_ns(work), work))) {
        return copy_edge(copy, call, facts);
    }
    let producer = match facts.purpose(call) {
        ApiRole::StreamSynchronize => {
            syncs::awaited_by_stream_sync(call, recent, with_backward, facts)
        }
        _ => producer(call, recent, facts),
    }?;
    let names_no_stream =
        matches!(facts.purpose(call), ApiRole::StreamSynchronize | ApiRole::EventSynchronize);
    let rival = names_no_stream.then(|| stream_waits::of_call(producer, call, facts)).flatten();
    Some(syncs::edge(producer, call, Evidence::Inferred, facts).with_rival(rival))
}

/// Returns the activity that the call waited for, according to its name.
fn producer(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
    match facts.purpose(call) {
        ApiRole::DeviceSynchronize => syncs::last_of_device(call, recent, facts),
        ApiRole::EventSynchronize => syncs::awaited_by_event_sync(call, facts),
        ApiRole::Allocate | ApiRole::Free | ApiRole::LoadModule | ApiRole::UnloadModule => {
            syncs::awaited_implicitly(call, recent, facts)
        }
        _ => None,
    }
}

// Edges into launches that find the queue of their stream full and wait for room in it.

/// Returns the edge from the activity whose end made room; `first` is the activity that the call
/// launched.
fn full_queue_edge(call: Order, first: Order, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    if timeline.duration_ns(call) <= limits::LONG_LAUNCH_NS {
        return None;
    }
    let stream = &facts.streams.all[facts.streams.stream_of(first)];
    let (start_ns, end_ns) = (timeline.start_ns(call), timeline.end_ns(call));
    if stream.n_outstanding(start_ns, timeline) < limits::FULL_QUEUE_OPERATIONS {
        return None;
    }
    let was_before = |&(_, work): &(i64, Order)| timeline.submitted_ns(work) < start_ns;
    let (_, blocker) = first_of_last(stream.ending_in(start_ns, end_ns).filter(was_before))?;
    let nodes = (facts.nodes.end(blocker), facts.nodes.end(call));
    let named = (Kind::QueueFull, Role::QueueFull);
    Some(Edge::new(nodes, named, Some(call), Evidence::Inferred))
}

// Edges from a copy to the end of its call, if the copy had ended by then.
//
// The driver stages pageable memory itself, so such a call may return while the copy still
// runs. Until then it stages the bytes that the copy moves, so its time is that of the copy:
// without the copy there is no such call. It is not a wait: a call that does not wait for its turn
// on the stream still stages.

/// Returns the edge from the copy into the end of its call. A copy within a device is not awaited,
/// however long its call takes.
fn copy_edge(copy: Order, call: Order, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    if stays_on_device(copy, facts) {
        return None;
    }
    let pageable = facts.tables.pageable_ends(timeline.event(copy)).contains(&true);
    let blocks = pageable || !facts.name(call).contains("Async");
    let late_ns = timeline.end_ns(copy) - timeline.end_ns(call);
    if timeline.start_ns(copy) >= timeline.end_ns(call) {
        return None; // launched by the call, not waited for
    }
    if late_ns <= if blocks { limits::CLOCK_TOLERANCE_NS } else { 0 } {
        return Some(syncs::edge(copy, call, Evidence::Inferred, facts));
    }
    let staged = pageable && timeline.start_ns(call) <= timeline.start_ns(copy);
    let nodes = (facts.nodes.start(copy), facts.nodes.end(call));
    let named = (Kind::Copy, Role::Staging);
    staged.then(|| Edge::new(nodes, named, Some(copy), Evidence::Inferred))
}

/// Assigns to the copy the time that its call needs for staging, regardless of its other waits.
/// `chains` are the edges of threads.
pub(super) fn name_staging(edges: &mut [Edge], n_chains: usize, facts: &Facts<'_>) {
    let (chains, others) = edges.split_at_mut(n_chains);
    let staging = others.iter().filter(|edge| edge.role == Role::Staging);
    let copies: RowMap<NodeId, Edge> = staging.map(|edge| (edge.target, *edge)).collect();
    if copies.is_empty() {
        return;
    }
    for chain in chains {
        let Some(staging) = copies.get(&chain.target) else { continue };
        if facts.nodes.time_ns(chain.source) <= facts.nodes.time_ns(staging.source) {
            let nodes = (chain.source, chain.target);
            let named = (Kind::Copy, Role::ThreadOrder);
            *chain = Edge::new(nodes, named, staging.event(), Evidence::Order);
        }
    }
}
