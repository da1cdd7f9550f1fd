//! Warnings about events of a trace, each with the number of events and the first of them.
//!
//! `check` formats them. `warning_counts` has the counts that do not refer to events.

use std::collections::{HashMap, HashSet};

use super::by_name::is_unlinked;
use super::impossible_times::{ImpossibleTimes, overlapping};
use crate::ids::{EventId, StringId};
use crate::link::{Captures, Launches};
use crate::names::Names;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::ApiRole;

/// A warning about events of one category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventWarning {
    /// The code of the warning.
    pub code: &'static str,
    /// Their category, if warnings are separated by category.
    pub category: Option<StringId>,
    /// Number of events.
    pub count: u64,
    /// The first event in the file.
    pub first: EventId,
    /// The largest wrong time, if the warning is about a time.
    pub longest_ns: i64,
}

/// Returns the warnings about events, in a fixed order of their codes, then in file order.
pub fn event_warnings(
    tables: &Tables,
    launches: &Launches,
    nesting: &Nesting,
) -> Vec<EventWarning> {
    let events = &tables.events;
    let work: Vec<_> = events.ids().filter(|&event| events.kind(event).is_device_work()).collect();
    let without = |&work: &EventId| is_unlinked(work, tables, launches);
    let unlinked: Vec<_> = work.iter().copied().filter(without).collect();
    let lost = launches_without_work(tables, launches, nesting);
    let mut found = Vec::new();
    found.extend(warning("unlinked_device_work", None, &at_no_time(&unlinked)));
    found.extend(warning("zero_correlations", None, &at_no_time(&all_zero(tables, &work))));
    let cut = narrowed(tables, &unlinked, |event| events.correlation(event));
    found.extend(warning("narrowed_correlations", None, &at_no_time(&cut)));
    let cut = narrowed(tables, &unlinked, |event| events.external_id(event));
    found.extend(warning("narrowed_external_ids", None, &at_no_time(&cut)));
    found.extend(warning("reused_external_ids", None, &at_no_time(&reused(tables))));
    found.extend(warning("launches_without_work", None, &at_no_time(&lost)));
    by_category("crossing_events", tables, &at_no_time(&nesting.crossings), &mut found);
    by_category("overlapping_device_work", tables, &overlapping(tables, &work), &mut found);
    let times = ImpossibleTimes::of(tables, launches);
    let impossible: HashSet<_> = times.before_launch.iter().map(|&(event, _)| event).collect();
    let mut early = early(tables, launches, &work);
    early.retain(|(event, _)| !impossible.contains(event));
    found.extend(warning("work_before_its_call", None, &early));
    found.extend(warning("long_before_launch", None, &times.before_launch));
    found.extend(warning("out_of_stream_order", None, &times.out_of_order));
    found.extend(warning("late_on_idle_device", None, &times.late_on_idle_device));
    found
}

/// Returns the calls whose launched activities are missing from the trace, in file order. If a
/// runtime call encloses a driver call, only one of them has activities. Launches into a graph that
/// is captured have none.
pub fn launches_without_work(
    tables: &Tables,
    launches: &Launches,
    nesting: &Nesting,
) -> Vec<EventId> {
    let events = &tables.events;
    let work = events.ids().filter(|&event| events.kind(event).is_device_work());
    let having = work.filter_map(|work| launches.launcher(work));
    let related: HashSet<_> =
        having.flat_map(|call| std::iter::once(call).chain(nesting.parent(call))).collect();
    let roles = tables.roles();
    let launches = |&call: &EventId| {
        let role = events.name(call).map(|name| roles[name.row()]);
        events.kind(call).is_call() && matches!(role, Some(ApiRole::Launch | ApiRole::GraphLaunch))
    };
    let is_related = |event| related.contains(&event);
    let lost = |&call: &EventId| !is_related(call) && !nesting.parent(call).is_some_and(is_related);
    let captures = Captures::of(tables);
    let is_captured = |&call: &EventId| captures.contain(call, tables);
    events.ids().filter(launches).filter(lost).filter(|call| !is_captured(call)).collect()
}

/// Returns all GPU activities, if correlation ids are recorded but all are 0.
fn all_zero(tables: &Tables, work: &[EventId]) -> Vec<EventId> {
    let is_zero = |&event: &EventId| tables.events.correlation(event) == Some(0);
    if work.iter().all(is_zero) { work.to_vec() } else { Vec::new() }
}

/// Returns activities without a call whose id is the lower 32 bits of a call's id.
fn narrowed(
    tables: &Tables,
    unlinked: &[EventId],
    number: impl Fn(EventId) -> Option<i64>,
) -> Vec<EventId> {
    let events = &tables.events;
    let of_host = events.ids().filter(|&event| !events.kind(event).is_on_device());
    let wide = of_host.filter_map(&number).filter(|&number| i32::try_from(number).is_err());
    let low: HashSet<i64> = wide.map(low_bits).collect();
    let is_cut = |number: i64| {
        let is_short = i32::try_from(number).is_ok() || u32::try_from(number).is_ok();
        number != 0 && is_short && low.contains(&low_bits(number))
    };
    unlinked.iter().copied().filter(|&work| number(work).is_some_and(is_cut)).collect()
}

fn low_bits(number: i64) -> i64 {
    number & i64::from(u32::MAX)
}

/// Returns operators whose external id was already used by an earlier operator in the file.
fn reused(tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let mut seen = HashSet::new();
    let operators = events.ids().filter(|&event| events.kind(event) == EventKind::Operator);
    let place = |event| tables.lanes.place(events.lane(event)).process;
    operators
        .filter(|&event| {
            let id = events.external_id(event).filter(|&id| id != 0);
            id.is_some_and(|id| !seen.insert((place(event), id)))
        })
        .collect()
}

/// Returns activities that began before their launch call, with the time between them. A time of 0
/// was not recorded.
fn early(tables: &Tables, launches: &Launches, work: &[EventId]) -> Vec<(EventId, i64)> {
    let starts_ns = |event| tables.events.start_ns(event);
    work.iter()
        .filter(|&&work| starts_ns(work) != 0)
        .filter_map(|&work| Some((work, starts_ns(launches.launcher(work)?) - starts_ns(work))))
        .filter(|&(_, lead_ns)| lead_ns > 0)
        .collect()
}

fn at_no_time(events: &[EventId]) -> Vec<(EventId, i64)> {
    events.iter().map(|&event| (event, 0)).collect()
}

/// Groups events by category, in order of first occurrence in the file.
fn by_category(
    code: &'static str,
    tables: &Tables,
    events: &[(EventId, i64)],
    found: &mut Vec<EventWarning>,
) {
    let mut groups: HashMap<_, Vec<_>> = HashMap::new();
    for &(event, time_ns) in events {
        groups.entry(tables.events.category(event)).or_default().push((event, time_ns));
    }
    let warnings =
        groups.into_iter().filter_map(|(category, events)| warning(code, category, &events));
    let mut warnings: Vec<_> = warnings.collect();
    warnings.sort_by_key(|warning| warning.first);
    found.extend(warnings);
}

fn warning(
    code: &'static str,
    category: Option<StringId>,
    events: &[(EventId, i64)],
) -> Option<EventWarning> {
    let first = events.iter().map(|&(event, _)| event).min()?;
    let longest_ns = events.iter().map(|&(_, time_ns)| time_ns).max()?;
    Some(EventWarning { code, category, count: events.len() as u64, first, longest_ns })
}

// Counts of problems found by linking and nesting.
//
// `check` reports these counts. They refer to the whole trace; the graph counts the problems that
// concern a path.

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
    let is_work = |event: &EventId| events.kind(*event).is_device_work();
    let without = |&event: &EventId| is_unlinked(event, tables, launches);
    let n_unlinked = events.ids().filter(is_work).filter(without).count();
    let operators = events.ids().filter(|&event| events.kind(event) == EventKind::Operator);
    vec![
        ("device_work", count(&EventKind::is_device_work)),
        ("unlinked_device_work", n_unlinked as u64),
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
