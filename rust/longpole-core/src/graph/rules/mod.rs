//! The rules: why each node could not happen earlier. `docs/path-rules.md` describes them.
//!
//! `threads` explains the nodes of threads, `starts` and `stream_waits` the starts of activities,
//! `calls` and `syncs` the ends of calls that waited. A rule reads the facts and returns edges. It
//! does not see the edges of other rules, with two exceptions: autograd needs the gaps of a thread,
//! and the rules after `starts` explain delays that order and launches leave open.

mod calls;
mod clocks;
mod graphs;
mod joint_collectives;
mod missing_records;
mod polling;
mod queues;
mod starts;
mod stream_waits;
mod syncs;
mod threads;

pub(super) use clocks::{shifts as clock_shifts, slacks as clock_slacks};

use super::facts::Facts;
use super::model::{Counts, Edge, Kind};
use crate::error::Result;
use crate::progress::Progress;

/// Returns all edges of a trace, and counts of unresolved dependencies.
pub(super) fn edges(facts: &Facts<'_>, progress: Progress<'_>) -> Result<(Vec<Edge>, Counts)> {
    let timeline = facts.timeline;
    let mut edges = Vec::with_capacity(facts.nodes.len() * 5 / 4);
    let crossing = threads::edges(facts, &mut edges, progress)?;
    let n_chains = edges.len();
    let handovers =
        [threads::autograd_edges(&edges, facts), threads::task_queue_edges(facts)].concat();
    let explained = handovers.iter().map(|edge| edge.target).collect();
    let queues = queues::edges(&edges, &explained, facts);
    let polls = polling::polls(facts);
    let polled = polling::apply(&polls, &mut edges, facts);
    let missing_copies = missing_records::edges(&edges, facts);
    let found = (queues.len() as u64, polled.len() as u64, missing_copies.len() as u64);
    let handovers = [handovers, queues, polled, missing_copies].concat();
    starts::edges(facts, &mut edges, progress)?;
    missing_records::name_by_thread(&mut edges, n_chains, facts);
    calls::edges(facts, &mut edges, progress)?;
    calls::name_staging(&mut edges, n_chains, facts);
    let joint = joint_collectives::edges(facts);
    let joint_collectives = joint.len() as u64;
    edges.extend(joint);
    edges.extend(handovers);
    missing_records::rename(&mut edges, facts);
    let unrecorded = edges.iter().filter(|edge| edge.kind == Kind::Unrecorded).count() as u64;
    let first_events = threads::first_event_edges(&edges, facts);
    let n_first_events = first_events.len() as u64;
    edges.extend(first_events);
    let is_unlinked =
        |&work: &_| timeline.kind(work).is_device_work() && timeline.launcher(work).is_none();
    let counts = Counts {
        negative_duration: timeline.negative_durations,
        untimed: timeline.untimed,
        crossing,
        unlinked_work: timeline.orders().filter(is_unlinked).count() as u64,
        unknown_sync: facts.recorded.unknown,
        sync_without_call: facts.recorded.without_call,
        joint_collectives,
        missing_activities: facts.missing_activities.len() as u64,
        missing_nodes: facts.graphs.n_missing_nodes,
        unrecorded_waits: unrecorded,
        queue_waits: found.0,
        polling_loops: found.1,
        missing_copy_calls: found.2,
        thread_starts: n_first_events,
        graph_launches: facts.graphs.n_launches,
        sibling_devices: facts.streams.n_siblings(),
        ..Counts::default()
    };
    Ok((edges, counts))
}
