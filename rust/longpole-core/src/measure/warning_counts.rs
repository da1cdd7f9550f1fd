//! Counts of problems found by linking and nesting.
//!
//! `check` reports these counts. They refer to the whole trace; the graph counts the problems that
//! concern a path.

use std::collections::HashSet;

use crate::ids::EventId;
use crate::link::Launches;
use crate::names::Names;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};

/// Returns the counts of problems found by linking and nesting, each with its name, in a fixed
/// order.
pub fn warning_counts(
    tables: &Tables,
    launches: &Launches,
    nesting: &Nesting,
) -> Vec<(&'static str, u64)> {
    let events = &tables.events;
    let mut n_of_kind = [0; EventKind::ALL.len()];
    for &kind in events.kinds() {
        n_of_kind[usize::from(kind)] += 1;
    }
    let count = |test: &dyn Fn(EventKind) -> bool| -> u64 {
        let kinds = EventKind::ALL.iter().zip(n_of_kind);
        kinds.filter(|&(&kind, _)| test(kind)).map(|(_, n_events)| n_events).sum()
    };
    let leads_ns = || leads_ns(tables, launches);
    let operators = events.ids().filter(|&event| events.kind(event) == EventKind::Operator);
    vec![
        ("device_work", count(&EventKind::is_device_work)),
        ("unlinked_device_work", launches.unlinked),
        ("device_work_without_correlation", launches.without_correlation),
        ("device_work_linked_by_external_id", launches.operators_by_external_id().len() as u64),
        ("ambiguous_correlations", launches.ambiguous),
        ("work_before_its_call", leads_ns().filter(|&ns| ns > 0).count() as u64),
        (
            "largest_lead_over_its_call_ns",
            u64::try_from(leads_ns().max().unwrap_or(0)).unwrap_or(0),
        ),
        ("nested_by_rounding", nesting.rounded),
        ("crossing_events", nesting.crossings.len() as u64),
        ("synchronization_records", count(&|kind| kind == EventKind::Synchronization)),
        ("counter_ranges", count(&|kind| kind == EventKind::CounterRange)),
        ("operators", count(&|kind| kind == EventKind::Operator)),
        (
            "operators_with_external_id",
            operators.filter(|&event| events.external_id(event).is_some()).count() as u64,
        ),
        ("processes_with_calls", n_processes_with_calls(tables)),
    ]
}

/// Returns the time from the start of each GPU activity to the start of its launch call; negative
/// if the activity began later.
fn leads_ns<'a>(tables: &'a Tables, launches: &'a Launches) -> impl Iterator<Item = i64> + 'a {
    let events = &tables.events;
    let is_timed =
        move |event: &EventId| events.kind(*event).is_device_work() && events.start_ns(*event) != 0;
    let activities = events.ids().filter(is_timed);
    activities.filter_map(|activity| {
        let call = launches.launcher(activity)?;
        Some(events.start_ns(call) - events.start_ns(activity))
    })
}

fn n_processes_with_calls(tables: &Tables) -> u64 {
    let events = &tables.events;
    let mut has_calls = vec![false; tables.lanes.len()];
    for call in events.ids().filter(|&event| events.kind(event).is_call()) {
        has_calls[events.lane(call).row()] = true;
    }
    let places = tables.lanes.places().iter().zip(has_calls);
    let with_calls = places.filter(|(_, has_calls)| *has_calls);
    with_calls.map(|(place, _)| place.process).collect::<HashSet<_>>().len() as u64
}
