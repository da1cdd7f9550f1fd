//! Collects what linking and nesting could not settle.
//!
//! `check` reports these counts. They are about the whole trace; what concerns a path is counted by
//! its graph.

use std::collections::HashSet;

use crate::link::Launches;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};

/// Counts of what linking and nesting could not settle, or settled with a warning,
/// each with its name, in a fixed order.
pub fn warning_counts(
    tables: &Tables,
    launches: &Launches,
    nesting: &Nesting,
) -> Vec<(&'static str, u64)> {
    let events = &tables.events;
    let count = |test: &dyn Fn(crate::ids::EventId) -> bool| {
        events.ids().filter(|&event| test(event)).count() as u64
    };
    let is_work = |event| events.kind(event).is_device_work();
    let starts_before_its_call = |work| {
        launches.launcher(work).is_some_and(|call| events.start_ns(work) < events.start_ns(call))
    };
    let skew = events
        .ids()
        .filter(|&event| is_work(event))
        .filter_map(|work| Some(events.start_ns(launches.launcher(work)?) - events.start_ns(work)))
        .max()
        .unwrap_or(0);
    let operators = |event| events.kind(event) == EventKind::Operator;
    let mut has_calls = vec![false; tables.lanes.len()];
    for call in events.ids().filter(|&event| events.kind(event).is_call()) {
        has_calls[events.lane(call).row()] = true;
    }
    let with_calls =
        tables.lanes.places().iter().zip(has_calls).filter(|(_, has_calls)| *has_calls);
    let processes: HashSet<_> = with_calls.map(|(place, _)| place.process).collect();
    vec![
        ("device_work", count(&is_work)),
        ("unlinked_device_work", launches.unlinked),
        ("device_work_without_correlation", launches.without_correlation),
        ("device_work_linked_by_external_id", launches.operators_by_external_id().len() as u64),
        ("ambiguous_correlations", launches.ambiguous),
        ("work_before_its_call", count(&|work| is_work(work) && starts_before_its_call(work))),
        ("largest_lead_over_its_call_ns", u64::try_from(skew).unwrap_or(0)),
        ("nested_by_rounding", nesting.rounded),
        ("crossing_events", nesting.crossings.len() as u64),
        (
            "synchronization_records",
            count(&|event| events.kind(event) == EventKind::Synchronization),
        ),
        ("counter_ranges", count(&|event| events.kind(event) == EventKind::CounterRange)),
        ("operators", count(&operators)),
        (
            "operators_with_external_id",
            count(&|event| operators(event) && events.external_id(event).is_some()),
        ),
        ("processes_with_calls", processes.len() as u64),
    ]
}
