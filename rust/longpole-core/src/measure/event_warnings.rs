//! Warnings about events of a trace, each with the number of events and the first of them.
//!
//! `check` formats them. `warning_counts` has the counts that do not refer to events.

use std::collections::{HashMap, HashSet};

use crate::ids::{EventId, LaneId, StringId};
use crate::link::{Captures, Launches};
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
    let without = |&work: &EventId| launches.launcher(work).is_none();
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
    found.extend(warning("work_before_its_call", None, &early(tables, launches, &work)));
    found.extend(impossible_times(tables, launches));
    found
}

/// Returns the warnings about impossible times of GPU activities: the order of a stream differs
/// from that of its launches, or the device was idle long before an activity that had already been
/// launched.
fn impossible_times(tables: &Tables, launches: &Launches) -> Vec<EventWarning> {
    let works = Launched::of(tables, launches);
    [
        warning("out_of_stream_order", None, &works.out_of_order()),
        warning("late_on_idle_device", None, &works.late_on_idle_device()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An activity that starts this long after its launch, on a device that was idle meanwhile, has a
/// wrong timestamp: launches take up to 100 us.
const LATE_ON_IDLE_NS: i64 = 10_000_000;

/// The lane of a GPU activity, the spans of its launch call and of itself, and the activity.
type LaunchedWork = (LaneId, (i64, i64), (i64, i64), EventId);

/// GPU activities with their launch calls.
struct Launched {
    /// Sorted by lane of the activity and start of the call.
    rows: Vec<LaunchedWork>,
    /// The activities launched by graph launches.
    replays: HashSet<EventId>,
    /// Start and latest end so far of all GPU activities, in order of start.
    busy_ns: Vec<(i64, i64)>,
}

impl Launched {
    fn of(tables: &Tables, launches: &Launches) -> Self {
        let events = &tables.events;
        let timed =
            |event: &EventId| events.kind(*event).is_device_work() && events.start_ns(*event) != 0;
        let works: Vec<_> = events.ids().filter(timed).collect();
        let roles = tables.roles();
        let is_graph = |call: EventId| {
            events.name(call).is_some_and(|name| roles[name.row()] == ApiRole::GraphLaunch)
        };
        let is_replay = |work: &EventId| launches.launcher(*work).is_some_and(is_graph);
        let replays = works.iter().copied().filter(is_replay).collect();
        let row = |&work: &EventId| {
            let call = events.span(launches.launcher(work)?)?;
            Some((events.lane(work), call, events.span(work)?, work))
        };
        let mut rows: Vec<_> = works.iter().filter_map(row).collect();
        rows.sort_unstable();
        let mut busy_ns: Vec<_> = works.iter().filter_map(|&work| events.span(work)).collect();
        busy_ns.sort_unstable();
        let mut last_ns = i64::MIN;
        for (_, end_ns) in &mut busy_ns {
            last_ns = last_ns.max(*end_ns);
            *end_ns = last_ns;
        }
        Self { rows, replays, busy_ns }
    }

    /// Returns activities that start after the end of an activity of their stream that was launched
    /// later, with the time between the two. Overlapping calls have no order.
    fn out_of_order(&self) -> Vec<(EventId, i64)> {
        let mut found = Vec::new();
        for rows in self.rows.chunk_by(|one, two| one.0 == two.0) {
            // Later launches, from the last call backward, with the smallest end so far.
            let mut later: Vec<(i64, i64)> = Vec::new();
            for &(_, (call_ns, returned_ns), (start_ns, end_ns), work) in rows.iter().rev() {
                let n_after = later.partition_point(|&(other_ns, _)| other_ns >= returned_ns);
                let least_ns = n_after.checked_sub(1).map(|place| later[place].1);
                if let Some(least_ns) = least_ns.filter(|&least_ns| start_ns >= least_ns) {
                    found.push((work, start_ns - least_ns));
                }
                let before_ns = later.last().map_or(i64::MAX, |&(_, least_ns)| least_ns);
                later.push((call_ns, before_ns.min(end_ns)));
            }
        }
        found.sort_unstable();
        found
    }

    /// Returns the graph replays that start long after their call, although no device was busy and
    /// a later call had already launched the next replay on the stream, with the time since the
    /// call. The first launch of a kernel is excluded, because it can take as long to load its
    /// code.
    fn late_on_idle_device(&self) -> Vec<(EventId, i64)> {
        let mut found = Vec::new();
        for rows in self.rows.chunk_by(|one, two| one.0 == two.0) {
            for &(_, (_, returned_ns), (start_ns, _), work) in rows {
                let late_ns = start_ns.saturating_sub(returned_ns);
                let n_before = self.busy_ns.partition_point(|&(other_ns, _)| other_ns < start_ns);
                let busy_until = n_before.checked_sub(1).map(|place| self.busy_ns[place].1);
                let was_idle = busy_until.is_none_or(|end_ns| end_ns <= returned_ns);
                if late_ns <= LATE_ON_IDLE_NS || !was_idle || !self.replays.contains(&work) {
                    continue;
                }
                let next = rows.partition_point(|row| row.1.0 < returned_ns);
                let mut waiting = rows[next..].iter().take_while(|row| row.1.0 < start_ns);
                if waiting.any(|row| self.replays.contains(&row.3)) {
                    found.push((work, late_ns));
                }
            }
        }
        found.sort_unstable();
        found
    }
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

/// Returns activities that began before another one of their stream had ended, with the overlap.
fn overlapping(tables: &Tables, work: &[EventId]) -> Vec<(EventId, i64)> {
    let events = &tables.events;
    let mut spans: Vec<_> = work
        .iter()
        .filter_map(|&event| Some((events.lane(event), events.span(event)?, event)))
        .filter(|&(_, (start, _), _)| start != 0)
        .map(|(lane, (start, end), event)| (lane, start, event, end))
        .collect();
    spans.sort_unstable();
    let mut found = Vec::new();
    let mut before = None;
    for (lane, start, event, end) in spans {
        let last = before.filter(|&(of, _)| of == lane).map(|(_, last): (_, i64)| last);
        let shared_ns = last.map_or(0, |last| last.min(end) - start);
        if shared_ns > 0 {
            found.push((event, shared_ns));
        }
        before = Some((lane, last.map_or(end, |last| last.max(end))));
    }
    found.sort_unstable();
    found
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
    let told = groups.into_iter().filter_map(|(category, events)| warning(code, category, &events));
    let mut told: Vec<_> = told.collect();
    told.sort_by_key(|warning| warning.first);
    found.extend(told);
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
