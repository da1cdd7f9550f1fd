//! Work without a launcher: the call that launched it is not in the trace.
//!
//! Where it starts late, and may have been submitted just before, the thread that launched the
//! work before it on its stream is taken to have launched it, too, unless only another thread
//! that launches on the device did anything meanwhile. What that thread did until then is what the
//! work waited for: the operator that was open has the time. No device is said to be occupied. Work
//! to which nothing leads, no call in the trace and nothing before it on its stream, counts as late
//! however soon it comes: what ended just before released it, or a running kernel held the device,
//! or it follows the last work of the device unexplained.

use super::ended_before;
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowMap};

/// The edge from what the launching thread did when it must have launched late work.
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

/// Gives the time before late work to the operator that was open on the thread that launched it: the
/// call, which is not in the trace, came at the end of it. `chains` are the edges of threads.
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

/// The reason for the start of work to which nothing leads.
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
