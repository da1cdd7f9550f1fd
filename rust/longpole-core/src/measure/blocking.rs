//! Runtime API calls in which a thread of the host waited for a device.
//!
//! Three things speak for a call: that calls of its role always wait, that its own memcpy had
//! ended when it returned, and that the graph found what it waited for. Which of them do is
//! the answer's reason. Queries never wait, whatever was recorded for them.
//!
//! Limits: how long a call waited is not said, only how long it took.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::graph::{Graph, Kind};
use crate::ids::EventId;
use crate::link::Launches;
use crate::names::named;
use crate::progress::{Progress, report};
use crate::tables::{EventKind, Tables};
use crate::vocabulary::{ApiRole, Waiting};

named! {
    /// Why a call is known to block.
    Reason {
        /// Calls of its role do.
        Role "role",
        /// It returned after its own memcpy had ended.
        CopyEnded "copy_ended",
        /// The graph found the work that it waited for.
        Waited "waited",
    }
}

/// A call that blocked its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// The call.
    pub call: EventId,
    /// The strongest reason.
    pub reason: Reason,
}

/// The calls that blocked, in the order of the file.
///
/// # Errors
///
/// Only when `progress` asks to stop.
pub fn blocking_calls(
    tables: &Tables,
    launches: &Launches,
    graph: &Graph,
    progress: Progress<'_>,
) -> Result<Vec<Blocking>> {
    let mut reasons = vec![None; tables.events.len()];
    note_waits(graph, &mut reasons);
    report(progress, tables.events.len() as u64)?;
    note_copies(tables, launches, &mut reasons);
    let roles = tables.roles();
    let role_of = |call| tables.events.name(call).map_or(ApiRole::Other, |name| roles[name.row()]);
    let calls = tables.events.ids().filter(|&event| tables.events.kind(event).is_call());
    Ok(calls
        .filter_map(|call| {
            let role = role_of(call);
            let always = (role.waiting() == Waiting::Always).then_some(Reason::Role);
            let reason = always.or(reasons[call.row()]).filter(|_| role != ApiRole::Query)?;
            Some(Blocking { call, reason })
        })
        .collect())
}

/// The calls with a memcpy out of pageable memory: their threads wait for its turn on the stream,
/// however asynchronous they are.
pub fn copy_from_pageable(tables: &Tables, launches: &Launches) -> BTreeSet<EventId> {
    let events = &tables.events;
    let copies = events.ids().filter(|&event| events.kind(event) == EventKind::Copy);
    copies
        .filter(|&copy| tables.pageable_ends(copy)[0])
        .filter_map(|copy| launches.launcher(copy))
        .collect()
}

/// Notes the calls for which the graph has something they waited for.
fn note_waits(graph: &Graph, reasons: &mut [Option<Reason>]) {
    let waits =
        graph.edges.as_slice().iter().filter(|edge| edge.role.waits() == Some(Kind::SyncReturn));
    for edge in waits {
        let call = graph.timeline.event(graph.nodes.event(edge.target));
        reasons[call.row()] = Some(Reason::Waited);
    }
}

/// Notes the calls whose own memcpy had ended when they returned.
fn note_copies(tables: &Tables, launches: &Launches, reasons: &mut [Option<Reason>]) {
    let events = &tables.events;
    for copy in events.ids().filter(|&event| events.kind(event) == EventKind::Copy) {
        let call = launches.launcher(copy);
        if let Some(call) = call.filter(|&call| has_ended_in(copy, call, tables)) {
            reasons[call.row()] = Some(Reason::CopyEnded);
        }
    }
}

fn has_ended_in(copy: EventId, call: EventId, tables: &Tables) -> bool {
    let ends = (tables.events.end_ns(copy), tables.events.end_ns(call));
    matches!(ends, (Some(copy_end), Some(call_end)) if copy_end <= call_end)
}
