//! Edges into the ends of calls: the recorded wait, or the wait inferred from the name of the call.

use super::{
    copies, device_syncs, event_syncs, full_queue, implicit_waits, learned_waits, returns, rivals,
    stream_syncs,
};
use crate::error::Result;
use crate::graph::facts::{Facts, Recent};
use crate::graph::model::{Edge, Evidence, latest_to_end, limits};
use crate::ids::Order;
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
    let never_waiting = learned_waits::never_waiting(facts);
    let may_wait =
        |call| facts.timeline.name(call).is_none_or(|name| !never_waiting.contains(&name));
    for call in facts.calls() {
        if call.row() % (1 << 12) == 0 {
            report(progress, call.row() as u64)?;
        }
        let thread = facts.timeline.lane(call);
        match facts.recorded.producers.get(&call) {
            Some(producers) => edges.extend(
                producers.iter().map(|&it| returns::edge(it, call, Evidence::Recorded, facts)),
            ),
            None if facts.holders.contains(&call) => {
                let works = facts.streams.launched_by(call).iter();
                let last = latest_to_end(works.map(|&it| (facts.timeline.end_ns(it), it)));
                edges.extend(last.map(|it| returns::edge(it, call, Evidence::Inferred, facts)));
            }
            None if may_wait(call) => {
                edges.extend(inferred(call, threads.of(thread), facts));
            }
            None => {}
        }
        if let Some(&first) = facts.streams.launched_by(call).first() {
            edges.extend(full_queue::edge(call, first, facts));
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
    let may_be_short = facts.purpose(call) == ApiRole::DeviceSynchronize
        && device_syncs::may_mean_several(recent, facts);
    if timeline.duration_ns(call) < limits::SHORTEST_WAIT_NS && !may_be_short {
        return None;
    }
    let works = facts.streams.launched_by(call).iter().copied();
    let copies = works.filter(|&work| timeline.kind(work) == EventKind::Copy);
    if let Some(copy) = latest_to_end(copies.map(|work| (timeline.end_ns(work), work))) {
        return copies::edge(copy, call, facts);
    }
    let producer = match facts.purpose(call) {
        ApiRole::StreamSynchronize => stream_syncs::producer(call, recent, with_backward, facts),
        _ => producer(call, recent, facts),
    }?;
    let names_no_stream =
        matches!(facts.purpose(call), ApiRole::StreamSynchronize | ApiRole::EventSynchronize);
    let rival = names_no_stream.then(|| rivals::of_call(producer, call, facts)).flatten();
    Some(returns::edge(producer, call, Evidence::Inferred, facts).with_rival(rival))
}

/// Returns the activity that the call waited for, according to its name.
fn producer(call: Order, recent: &Recent, facts: &Facts<'_>) -> Option<Order> {
    match facts.purpose(call) {
        ApiRole::DeviceSynchronize => device_syncs::producer(call, recent, facts),
        ApiRole::EventSynchronize => event_syncs::producer(call, facts),
        ApiRole::Allocate | ApiRole::Free | ApiRole::LoadModule | ApiRole::UnloadModule => {
            implicit_waits::producer(call, recent, facts)
        }
        _ => None,
    }
}
