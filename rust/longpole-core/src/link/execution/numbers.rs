//! Links nodes and events with the same id.

use std::collections::HashMap;

use super::fits::{Names, candidates};
use super::model::{ExecutionLink, LEAST_AGREEMENT_PERCENT, Method, Unlinked, link};
use crate::ids::EventId;
use crate::tables::{ArgValue, ExecutionTrace, Tables};
use crate::vocabulary::EventKind;

/// How well the ids of two files agree.
pub(super) struct Agreement {
    found: Vec<Result<EventId, Unlinked>>,
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

pub(super) fn by_record_function(
    trace: &ExecutionTrace,
    tables: &Tables,
    names: &Names,
) -> Agreement {
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

pub(super) fn by_external_id(trace: &ExecutionTrace, tables: &Tables, names: &Names) -> Agreement {
    let mut events = HashMap::new();
    for event in candidates(tables) {
        if let Some(number) = tables.events.external_id(event) {
            events.entry(number).or_insert(event);
        }
    }
    Agreement::of(trace, tables, names, &events)
}
