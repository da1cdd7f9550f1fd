//! Edges that replace those of records missing from the trace: launches without a call, calls that
//! waited for an unrecorded activity, and copies without a call.

use super::stream_waits;
use crate::graph::facts::{Facts, Mark};
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowMap};
use crate::vocabulary::ApiRole;

/// Returns the edge from the node of the launching thread at the time when it must have launched a
/// late activity.
pub(super) fn launch(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    let start_ns = timeline.start_ns(work);
    let is_late = start_ns - ready_ns > limits::LATE_AFTER_MISSING_NS;
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

/// Returns the edge into a migration of managed memory from what touched the memory: the kernel
/// that runs, or else a launching thread. Such copies have no launch by nature.
pub(super) fn fault(work: Order, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    if timeline.launcher(work).is_some() || !facts.tables.is_migration(timeline.event(work)) {
        return None;
    }
    let (start, start_ns) = (facts.nodes.start(work), timeline.start_ns(work));
    let number = facts.streams.device_of(work);
    if let Some((_, holder)) = facts.streams.whole_device(number).kernel_running_at(start_ns) {
        return Some(facts.inside_edge(holder, start, Role::DeviceOccupied));
    }
    let threads = facts.launching_threads[number].iter();
    let before = threads.filter_map(|&thread| facts.last_of_thread(thread, start_ns)).max()?;
    let named = (Kind::Launch, Role::Launch);
    Some(Edge::new((before, start), named, Some(work), Evidence::Inferred))
}

/// Returns the reason for the start of an activity to which no edge leads.
pub(super) fn edge(work: Order, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let number = facts.streams.device_of(work);
    let device = facts.streams.whole_device(number);
    let after_ns = start_ns - limits::WAIT_RELEASE_NS - 1;
    let ended_in = |after_ns, mark| {
        stream_waits::ended_on_device(number, work, (after_ns, start_ns), mark, facts)
    };
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

// Calls that waited for something missing from the trace.
//
// Profilers lose records: when a buffer is dropped, or for activities submitted before recording
// began. A synchronization call that returns long after everything it is known to have waited for
// waited for something else. The same holds for a copy call without a copy. A device
// synchronization with nothing to wait for takes up to 47 us on profiles, so shorter ones are not
// renamed, unless the activity of the thread's latest launch is missing. An activity that starts
// late on its stream may also have waited for a missing one.

/// Renames the edges that bind the ends of such calls.
pub(super) fn rename(edges: &mut [Edge], facts: &Facts<'_>) {
    let suspects = suspects(facts);
    if suspects.is_empty() {
        return;
    }
    let mut bindings: RowMap<NodeId, usize> = RowMap::default();
    for (place, edge) in edges.iter().enumerate() {
        if suspects.contains_key(&edge.target) && edge.gap_ns(facts.nodes) >= 0 {
            let best = bindings.entry(edge.target).or_insert(place);
            let order = |edge: &Edge| edge.binding_order(facts.nodes, facts.nodes.times_ns());
            if order(edge) < order(&edges[*best]) {
                *best = place;
            }
        }
    }
    let mut bindings: Vec<_> = bindings.into_values().collect();
    bindings.sort_unstable();
    for place in bindings {
        let (call, least_ns) = suspects[&edges[place].target];
        rename_binding(&mut edges[place], call, least_ns, facts);
    }
}

fn rename_binding(edge: &mut Edge, call: Order, least_ns: i64, facts: &Facts<'_>) {
    let times_ns = facts.nodes.times_ns();
    let may_rename = matches!(edge.role, Role::Sync | Role::ThreadOrder);
    if !may_rename || facts.nodes.time_ns(edge.target) - edge.finished_ns(times_ns) <= least_ns {
        return;
    }
    let nodes = (edge.source, edge.target);
    *edge = Edge::new(nodes, (Kind::Unrecorded, Role::NoReason), Some(call), Evidence::None);
}

/// Returns the ends of synchronization and copy calls, each with the time that the call may take by
/// itself.
fn suspects(facts: &Facts<'_>) -> RowMap<NodeId, (Order, i64)> {
    let mut suspects = RowMap::default();
    let mut is_last_missing = vec![false; facts.streams.n_lanes()];
    if facts.streams.all.is_empty() {
        return suspects;
    }
    for call in facts.calls() {
        let is_last_missing = &mut is_last_missing[facts.timeline.lane(call)];
        let is_missing = facts.missing_activities.contains(call);
        let least_ns = match facts.purpose(call) {
            ApiRole::StreamSynchronize | ApiRole::EventSynchronize | ApiRole::DeviceSynchronize => {
                Some(if *is_last_missing {
                    limits::MISSING_WAIT_NS
                } else {
                    limits::UNRECORDED_WAIT_NS
                })
            }
            ApiRole::Copy | ApiRole::BlockingCopy => is_missing.then_some(limits::MISSING_WAIT_NS),
            _ => None,
        };
        if let Some(least_ns) = least_ns.filter(|&ns| facts.timeline.duration_ns(call) > ns) {
            suspects.insert(facts.nodes.end(call), (call, least_ns));
        }
        if is_missing || !facts.streams.launched_by(call).is_empty() {
            *is_last_missing = is_missing;
        }
    }
    suspects
}

/// Renames the gap before a start that comes late after a launch of its thread whose activity is
/// missing: that activity may have been on the same stream. `before` is its recorded stream
/// predecessor.
pub(super) fn rename_start(
    work: Order,
    before: Option<Order>,
    late_ns: i64,
    binding: &mut Edge,
    facts: &Facts<'_>,
) -> bool {
    let least_ns = match binding.role {
        Role::StreamOrder => limits::LATE_AFTER_MISSING_NS,
        Role::Launch => limits::LATE_LAUNCH_AFTER_MISSING_NS,
        _ => return false,
    };
    let Some(call) = facts.timeline.launcher(work).filter(|_| late_ns > least_ns) else {
        return false;
    };
    let after_ns = before.map_or(i64::MIN, |it| facts.timeline.submitted_ns(it));
    let between_ns = (after_ns, facts.timeline.start_ns(call));
    let is_any = facts.missing_activities.is_any_in(facts.timeline.lane(call), between_ns);
    if is_any {
        let nodes = (binding.source, binding.target);
        *binding = Edge::new(nodes, (Kind::Unrecorded, Role::NoReason), Some(work), Evidence::None);
    }
    is_any
}

// Copies to pageable memory whose call is missing from the trace.
//
// Such a call returns only when the copy is complete. If the thread that launches on the stream
// has no events from before the copy until just after it, and no recorded call covers that time,
// the thread waited for the copy: its next node follows the copy.

/// Returns the edges from such copies to the next node of their thread. `chains` are the edges of
/// threads.
pub(super) fn edges(chains: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    let resumed: RowMap<NodeId, Order> =
        facts.timeline.orders().filter_map(|work| resumed(work, facts)).collect();
    if resumed.is_empty() {
        return Vec::new();
    }
    let wait = |order: &Edge| {
        let copy = *resumed.get(&order.target)?;
        let outside_calls = order.role == Role::ThreadOrder && order.kind != Kind::Runtime;
        let nodes = (facts.nodes.end(copy), order.target);
        let named = (Kind::SyncReturn, Role::Sync);
        outside_calls.then(|| Edge::new(nodes, named, order.event(), Evidence::Inferred))
    };
    chains.iter().filter_map(wait).collect()
}

/// Returns the node at which the thread of a copy without a call continued, just after the copy.
fn resumed(copy: Order, facts: &Facts<'_>) -> Option<(NodeId, Order)> {
    let timeline = facts.timeline;
    let is_missing = timeline.kind(copy).is_device_work()
        && facts.streams.kind_of(copy) == Kind::Copy
        && timeline.launcher(copy).is_none();
    if !is_missing || !facts.tables.pageable_ends(timeline.event(copy)).contains(&true) {
        return None;
    }
    let thread = timeline.lane(facts.streams.linked_before(copy)?);
    let nodes = facts.thread_nodes().of_lane(thread);
    let end_ns = timeline.end_ns(copy);
    let next = nodes.partition_point(|&node| facts.nodes.time_ns(node) < end_ns);
    let (before, next) = (*nodes.get(next.checked_sub(1)?)?, *nodes.get(next)?);
    let is_silent = facts.nodes.time_ns(before) < timeline.start_ns(copy);
    let is_soon = facts.nodes.time_ns(next) - end_ns <= limits::SYNC_RETURN_NS;
    (is_silent && is_soon).then_some((next, copy))
}
