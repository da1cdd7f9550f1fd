//! Runtime API calls in which a host thread waited for a device.
//!
//! Three facts indicate that a call blocked: calls of its role always wait, its own memcpy had
//! ended when it returned, or the graph found the activity that it waited for. The first that
//! applies is the reported reason. Queries never wait, even if the trace has a record for them.
//!
//! Limits: only the duration of a call is known, not how much of it was waiting.

use std::collections::BTreeSet;

use crate::columns::columns;
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
        /// Calls of its role always block.
        Role "role",
        /// It returned after its own memcpy had ended.
        CopyEnded "copy_ended",
        /// The graph found the activity that it waited for.
        Waited "waited",
    }
}

columns! {
    /// A call that blocked its thread.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Blocking {
        /// The call.
        pub event: EventId,
        /// The strongest reason.
        pub reason: Reason,
    }
}

/// Returns the calls that blocked, in file order.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
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
            Some(Blocking { event: call, reason })
        })
        .collect())
}

/// Returns the calls with a memcpy from pageable memory: their threads wait for its turn on the
/// stream, even if the call is asynchronous.
pub fn copy_from_pageable(tables: &Tables, launches: &Launches) -> BTreeSet<EventId> {
    let events = &tables.events;
    let copies = events.ids().filter(|&event| events.kind(event) == EventKind::Copy);
    copies
        .filter(|&copy| tables.pageable_ends(copy)[0])
        .filter_map(|copy| launches.launcher(copy))
        .collect()
}

/// Marks the calls for which the graph has an activity that they waited for.
fn note_waits(graph: &Graph, reasons: &mut [Option<Reason>]) {
    let waits =
        graph.edges.as_slice().iter().filter(|edge| edge.role.waits() == Some(Kind::SyncReturn));
    for edge in waits {
        let call = graph.timeline.event(graph.nodes.event(edge.target));
        reasons[call.row()] = Some(Reason::Waited);
    }
}

/// Marks the calls whose own memcpy had ended when they returned.
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

/// Returns the role of each call, in file order.
pub fn api_roles(tables: &Tables) -> Vec<(EventId, ApiRole)> {
    let roles = tables.roles();
    let events = &tables.events;
    let calls = events.ids().filter(|&event| events.kind(event).is_call());
    calls
        .map(|call| (call, events.name(call).map_or(ApiRole::Other, |name| roles[name.row()])))
        .collect()
}
