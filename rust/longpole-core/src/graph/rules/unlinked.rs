//! GPU activities without a launcher: their launch call is not in the trace.
//!
//! If such an activity starts late and may have been submitted just before, the thread that
//! launched its stream predecessor is assumed to have launched it too, unless only another
//! launching thread of the device was active meanwhile. The activity then waited for that thread,
//! and the operator that was open has the time. The device is not assumed to be occupied. An
//! activity to which no edge leads (no call in the trace and no stream predecessor) always counts
//! as late: it was released by what ended just before, or a running kernel occupied the device, or
//! it follows the last activity of the device, unexplained.

use super::ended_before;
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowMap};

/// Returns the edge from the node of the launching thread at the time when it must have launched a
/// late activity.
pub(super) fn launch(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    let start_ns = timeline.start_ns(work);
    let is_late = start_ns - ready_ns > limits::LATE_AFTER_LOST_NS;
    if !is_late || timeline.launcher(work).is_some() {
        return None;
    }
    let call = facts.streams.linked_before(work)?;
    let launched_ns = start_ns - limits::USUAL_LAUNCH_NS;
    if timeline.submitted_ns(work) < launched_ns {
        return None; // later work was submitted before
    }
    let last = |thread: usize| {
        let node = facts.last_of_thread(thread, launched_ns)?;
        (facts.nodes.time_ns(node) > ready_ns).then_some(node)
    };
    let own = timeline.lane(call);
    let device = facts.streams.device_of(work);
    let others = facts.launching_threads[device].iter().filter(|&&thread| thread != own);
    let before = last(own).or_else(|| others.filter_map(|&thread| last(thread)).max())?;
    let nodes = (before, facts.nodes.start(work));
    Some(Edge::new(nodes, (Kind::Launch, Role::Launch), Some(work), Evidence::Inferred))
}

/// Assigns the time before a late activity to the operator that was open on the launching thread:
/// the missing call came at its end. `chains` are the edges of threads.
pub(super) fn name_by_thread(edges: &mut [Edge], n_chains: usize, facts: &Facts<'_>) {
    let (chains, others) = edges.split_at_mut(n_chains);
    let is_long = |edge: &Edge| edge.gap_ns(facts.nodes) > 2 * limits::USUAL_LAUNCH_NS;
    let guessed = others.iter_mut().filter(|edge| {
        edge.role == Role::Launch && edge.evidence == Evidence::Inferred && is_long(edge)
    });
    let mut guessed: RowMap<NodeId, Vec<&mut Edge>> =
        guessed.fold(RowMap::default(), |mut of_source, edge| {
            of_source.entry(edge.source).or_insert_with(Vec::new).push(edge);
            of_source
        });
    if guessed.is_empty() {
        return;
    }
    for chain in chains.iter().filter(|chain| chain.kind != Kind::Runtime) {
        for edge in guessed.remove(&chain.source).into_iter().flatten() {
            let named = (chain.kind, Role::Launch);
            *edge = Edge::new((edge.source, edge.target), named, chain.event(), edge.evidence);
        }
    }
}

/// Returns the reason for the start of an activity to which no edge leads.
pub(super) fn edge(work: Order, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let number = facts.streams.device_of(work);
    let device = facts.streams.whole_device(number);
    let after_ns = start_ns - limits::WAIT_RELEASE_NS - 1;
    let ended_in =
        |after_ns, mark| ended_before::on_device(number, work, (after_ns, start_ns), mark, facts);
    if let Some((_, producer)) = Mark::FROM_LIKELY.into_iter().find_map(|it| ended_in(after_ns, it))
    {
        return Some(facts.wait_edge(producer, work, Evidence::Inferred));
    }
    if facts.streams.kind_of(work) != Kind::Copy
        && let Some((_, holder)) = device.kernel_running_at(start_ns)
    {
        let start = facts.nodes.start(work);
        return Some(facts.inside_edge(holder, start, Role::DeviceOccupied));
    }
    let (_, before) = ended_in(i64::MIN, Mark::Unmarked)?;
    let nodes = (facts.nodes.end(before), facts.nodes.start(work));
    let named = (Kind::Unexplained, Role::NoReason);
    Some(Edge::new(nodes, named, Some(work), Evidence::None))
}
