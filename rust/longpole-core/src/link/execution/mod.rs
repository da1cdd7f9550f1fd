//! Links the nodes of an execution trace to the CPU events of a Kineto trace.
//!
//! If both observers ran together, both files contain the record function ids of operators. Older
//! files share no ids. In these, the order of names on each thread is compared: an execution trace
//! of one iteration matches the iterations of the Kineto trace that ran the same operators. A few
//! files from 2023 have the record function id as external id.
//!
//! Names are compared to distinguish real matches from ids that agree by chance: a pair of files
//! whose names disagree is rejected with figures.

mod fits;
mod model;
mod windows;

pub use model::{ExecutionLink, Iteration, Method, Unlinked};

use std::collections::HashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::EventId;
use crate::tables::{ArgValue, ExecutionTrace, Tables};
use crate::vocabulary::EventKind;
use fits::{Names, candidates};
use model::{LEAST_AGREEMENT_PERCENT, link, pids_differ};

/// Links each node to its event. `iteration` selects one of the matching iterations if the order of
/// names decides; without it, the one of median length is used.
///
/// # Errors
///
/// Returns [`ErrorKind::NotAPair`] if the files do not belong together, and [`ErrorKind::NoWindow`]
/// if there is no such iteration.
pub fn execution(
    trace: &ExecutionTrace,
    tables: &Tables,
    iteration: Option<usize>,
) -> Result<ExecutionLink> {
    let names = Names::of(trace, tables);
    let by_record = by_record_function(trace, tables, &names);
    if by_record.is_sound() {
        return Ok(by_record.into_link(trace, tables, Method::RecordFunction));
    }
    let found = windows::iterations(trace, tables, &names);
    let is_complete = found.1;
    if !found.0.is_empty() {
        return windows::link_iteration(trace, tables, found, iteration);
    }
    let by_external = by_external_id(trace, tables, &names);
    if by_external.is_sound() && 2 * by_external.n_same_name >= trace.nodes.len() {
        return Ok(by_external.into_link(trace, tables, Method::ExternalId));
    }
    Err(refusal(trace, tables, &by_record, &by_external, is_complete))
}

/// Returns the error for a pair that does not belong together, with figures.
fn refusal(
    trace: &ExecutionTrace,
    tables: &Tables,
    by_record: &Agreement,
    by_external: &Agreement,
    is_complete: bool,
) -> Error {
    let figures = format!(
        "of {} nodes, {} share a record function id with the trace ({} of those the name), {} \
         an External id ({} the name), and no iteration of the trace has the same operators \
         in the same order{}{}",
        trace.nodes.len(),
        by_record.n_common,
        by_record.n_same_name,
        by_external.n_common,
        by_external.n_same_name,
        if is_complete { "" } else { windows::SEARCH_CUT },
        if pids_differ(trace, tables) { "; the process ids differ too" } else { "" },
    );
    Error::new(ErrorKind::NotAPair(figures), 0)
}

// Links nodes and events with the same id.

/// How well the ids of two files agree.
pub(super) struct Agreement {
    found: Vec<std::result::Result<EventId, Unlinked>>,
    /// Number of nodes whose id is in the trace.
    pub(super) n_common: usize,
    /// Number of nodes whose id and name are in the trace.
    pub(super) n_same_name: usize,
}

impl Agreement {
    fn of(
        trace: &ExecutionTrace,
        tables: &Tables,
        names: &Names,
        events: &HashMap<i64, EventId>,
    ) -> Self {
        let mut agreement = Self { found: Vec::new(), n_common: 0, n_same_name: 0 };
        for (row, node) in trace.nodes.iter().enumerate() {
            let event = events.get(&node.rf_id).filter(|_| node.rf_id > 0);
            let agrees = event.is_some_and(|&event| names.agree(row, event, tables));
            agreement.n_common += usize::from(event.is_some());
            agreement.n_same_name += usize::from(agrees);
            agreement.found.push(match event {
                Some(&event) if agrees => Ok(event),
                Some(_) => Err(Unlinked::NameDiffers),
                None => Err(Unlinked::NumberNotInTrace),
            });
        }
        agreement
    }

    /// Whether the ids have the same meaning in both files.
    pub(super) fn is_sound(&self) -> bool {
        self.n_common > 0 && self.n_same_name * 100 >= self.n_common * LEAST_AGREEMENT_PERCENT
    }

    pub(super) fn into_link(
        self,
        trace: &ExecutionTrace,
        tables: &Tables,
        method: Method,
    ) -> ExecutionLink {
        link(trace, tables, method, |row| self.found[row])
    }
}

fn by_record_function(trace: &ExecutionTrace, tables: &Tables, names: &Names) -> Agreement {
    let mut events = HashMap::new();
    for (_, table) in tables.args.iter() {
        let Some(column) = table.column("Record function id") else { continue };
        for (row, event) in table.events().enumerate() {
            let number = column.values.get(row).and_then(|value| integer(value, tables));
            if let Some(number) = number.filter(|_| is_candidate(event, tables)) {
                let earlier = |known: &mut EventId| *known = first(*known, event, tables);
                events.entry(number).and_modify(earlier).or_insert(event);
            }
        }
    }
    Agreement::of(trace, tables, names, &events)
}

fn is_candidate(event: EventId, tables: &Tables) -> bool {
    matches!(tables.events.kind(event), EventKind::Operator | EventKind::Annotation)
        && tables.events.end_ns(event).is_some()
}

fn first(one: EventId, other: EventId, tables: &Tables) -> EventId {
    let key = |event| (tables.events.start_ns(event), tables.events.position(event));
    if key(other) < key(one) { other } else { one }
}

fn integer(value: ArgValue, tables: &Tables) -> Option<i64> {
    match value {
        ArgValue::Integer(number) => Some(number),
        ArgValue::Text(text) => tables.strings.get(text).parse().ok(),
        ArgValue::Float(_) => None,
    }
}

fn by_external_id(trace: &ExecutionTrace, tables: &Tables, names: &Names) -> Agreement {
    let mut events = HashMap::new();
    for event in candidates(tables) {
        if let Some(number) = tables.events.external_id(event) {
            events.entry(number).or_insert(event);
        }
    }
    Agreement::of(trace, tables, names, &events)
}
