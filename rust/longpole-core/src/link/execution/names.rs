//! Compares names of an execution trace with those of a trace.
//!
//! Each file has its own string table. Names are translated once, so that later comparisons are of
//! numbers.

use crate::ids::{EventId, InColumn, StringId};
use crate::tables::{ExecutionTrace, Tables};
use crate::vocabulary::EventKind;

/// The names of the nodes as strings of the trace.
pub(super) struct Names {
    in_trace: Vec<Option<StringId>>,
}

impl Names {
    pub(super) fn of(trace: &ExecutionTrace, tables: &Tables) -> Self {
        let mut known = vec![None; trace.strings.len()];
        let mut look_up = |name: StringId| {
            *known[name.row()].get_or_insert_with(|| tables.strings.lookup(trace.strings.get(name)))
        };
        Self { in_trace: trace.nodes.iter().map(|node| look_up(node.name)).collect() }
    }

    /// Returns the name of a node as a string of the trace; `None` if the trace has no such string.
    pub(super) fn in_trace(&self, row: usize) -> Option<StringId> {
        self.in_trace[row]
    }

    /// Whether a node and an event have the same name.
    pub(super) fn agree(&self, row: usize, event: EventId, tables: &Tables) -> bool {
        self.in_trace[row].is_some() && self.in_trace[row] == tables.events.name(event)
    }
}

/// Returns the events to which nodes can be linked, in an order that does not depend on the file.
pub(super) fn candidates(tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let is_candidate = |event: &EventId| {
        matches!(events.kind(*event), EventKind::Operator | EventKind::Annotation)
            && events.end_ns(*event).is_some()
    };
    let mut found: Vec<_> = events.ids().filter(is_candidate).collect();
    found.sort_by_cached_key(|&event| {
        let end = events.end_ns(event).map(std::cmp::Reverse);
        let id = events.external_id(event).in_column();
        (events.start_ns(event), end, id, events.kind(event), events.position(event))
    });
    found
}
