//! The iterations of a program, and the representative ones among them.
//!
//! Iterations are marked by the profiler's steps, otherwise by regular annotations, otherwise by
//! repeating GPU activities. Gains are computed over the longest run of complete iterations with a
//! predecessor, because launch queues and the previous iteration are then in their usual state. The
//! first iteration after the profiler started has no predecessor, and is left out with everything
//! that happens only once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::completion::{Submissions, process_of};
use super::cycles::cycle;
use super::markers::{markers, median, single};
use super::model::{Moment, Opening, Window, WindowEnd};
use super::serving;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, StringId};
use crate::link::{self, Captures, Launches};
use crate::tables::{EventKind, Tables, by_content};
use crate::vocabulary::{ApiRole, IterationKind};

/// An iteration is incomplete if more than one in this many of its launches lack their activity:
/// the profiler started or stopped during it.
const MOST_MISSING_ONE_IN: usize = 100;

/// An iteration is incomplete if it has fewer than one in this many of the median number of
/// launches.
const FEWEST_LAUNCHES_ONE_IN: usize = 2;

/// Markers count if at least one in this many GPU activities was launched between them.
const LEAST_MARKED_ONE_IN: usize = 2;

/// Minimum number of server iterations that count as steps.
const FEWEST_MARKED: usize = 3;

/// How the iterations of a trace were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    /// By `ProfilerStep#N` annotations.
    Profiler,
    /// By regular annotations.
    Annotations,
    /// By the marks of an inference server.
    Server,
    /// By repeating GPU activities, which may not be iterations of the program; with the number of
    /// repetitions whose launch is missing.
    Repetition(usize),
}

/// An iteration of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The profiler's number, otherwise the index.
    pub number: i64,
    /// The event that marks it.
    pub event: EventId,
    /// The moment that marks its start on the host.
    pub mark: Moment,
    /// Start and end on the host.
    pub host_ns: (i64, i64),
    /// The moments of these times.
    pub host: (Moment, Moment),
    /// From the completion of the previous iteration to its own; without a previous one, from its
    /// start.
    pub period: Window,
    /// Index of the previous iteration.
    pub before: Option<usize>,
    /// Whether the trace contains the activities that it launched.
    pub is_complete: bool,
    /// The kind of its requests, if an inference server records it.
    pub kind: Option<IterationKind>,
}

impl Step {
    /// Returns the moment at which it begins on the host.
    pub(super) fn start(&self) -> Moment {
        self.mark
    }

    /// Returns the length of its period.
    pub fn length_ns(&self) -> i64 {
        self.period.end_ns - self.period.start_ns
    }
}

/// The iterations of a trace, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// How they were found.
    pub marked: Marked,
    /// The name of their markers with numbers replaced by `#`, if annotations mark them.
    pub pattern: Option<String>,
    /// The iterations.
    pub rows: Vec<Step>,
}

/// Returns the iterations. `pattern` selects the annotations that mark them.
///
/// # Errors
///
/// Returns an error if the pattern is not a valid regular expression, or matches no annotation that
/// marks iterations.
pub fn steps(tables: &Tables, launches: &Launches, pattern: Option<&str>) -> Result<Steps> {
    let submissions = Submissions::of(tables, launches);
    let profiled = if pattern.is_none() { link::steps(tables) } else { Vec::new() };
    let mut steps = if profiled.is_empty() {
        unprofiled(tables, launches, &submissions, pattern)?
    } else {
        let rows = profiler_steps(&profiled, tables, launches, &submissions);
        Steps { marked: Marked::Profiler, pattern: None, rows }
    };
    Completeness::of(tables, launches).judge(&mut steps.rows, tables);
    Ok(steps)
}

fn profiler_steps(
    found: &[link::Step],
    tables: &Tables,
    launches: &Launches,
    submissions: &Submissions,
) -> Vec<Step> {
    let completion = |event| submissions.of_annotation(event, WindowEnd::Last, tables);
    let process = |step: &link::Step| process_of(step.event, tables);
    let mut place: HashMap<(StringId, i64), usize> = HashMap::new();
    for (row, step) in found.iter().enumerate() {
        let first = place.entry((process(step), step.number)).or_insert(row);
        if by_content(step.event, found[*first].event, tables).is_lt() {
            *first = row;
        }
    }
    let start_ns = |step: &&link::Step| (tables.events.start_ns(step.event), step.event);
    let first = found.iter().min_by_key(start_ns).map(|step| step.event);
    let step = |step: &link::Step| {
        let number = step.number.checked_sub(1);
        let before = number.and_then(|number| place.get(&(process(step), number)).copied());
        let opening = match before {
            Some(before) => completion(found[before].event),
            None if Some(step.event) == first => opening(step.event, tables, launches),
            None => vec![Moment::Start(step.event)],
        };
        Step {
            number: step.number,
            event: step.event,
            mark: Moment::Start(step.event),
            host_ns: tables.events.span(step.event).unwrap_or_default(),
            host: (Moment::Start(step.event), Moment::End(step.event)),
            period: Window::new(tables, completion(step.event), Opening::Moments(opening)),
            before,
            is_complete: true,
            kind: None,
        }
    };
    found.iter().map(step).collect()
}

/// Returns what opens the first step of a trace: its annotation and, if that is
/// recorded on a device too, the work launched before the recording that ends before it there.
fn opening(step: EventId, tables: &Tables, launches: &Launches) -> Vec<Moment> {
    let events = &tables.events;
    let on_device = events.ids().filter(|&event| {
        events.kind(event) == EventKind::DeviceAnnotation && events.name(event) == events.name(step)
    });
    let begun_ns = on_device.map(|event| events.start_ns(event)).min();
    let earlier = events.ids().filter(|&event| {
        events.kind(event).is_device_work()
            && launches.launcher(event).is_none()
            && events.end_ns(event).is_some_and(|end_ns| begun_ns.is_some_and(|at| end_ns <= at))
    });
    let last = earlier.max_by_key(|&event| (events.end_ns(event), event));
    std::iter::once(Moment::Start(step)).chain(last.map(Moment::End)).collect()
}

fn unprofiled(
    tables: &Tables,
    launches: &Launches,
    submissions: &Submissions,
    pattern: Option<&str>,
) -> Result<Steps> {
    if pattern.is_none()
        && let Some(steps) = of_server(tables, submissions)
    {
        return Ok(steps);
    }
    let mut has_parts = false;
    let found = markers(tables, launches, pattern)?.into_iter().find_map(|markers| {
        let rows = between(&markers.moments, tables, submissions);
        let marked = pattern.is_some() || holds_half(&rows, tables, submissions);
        let is_part = pattern.is_none()
            && markers.around.is_some_and(|around| is_part(&rows, around, tables, submissions));
        has_parts |= is_part;
        (marked && !is_part).then_some((markers.name, rows))
    });
    if let Some((pattern, rows)) = found {
        return Ok(Steps { marked: Marked::Annotations, pattern: Some(pattern), rows });
    }
    if let Some(pattern) = pattern {
        let why = format!("no repeated annotation has a name that matches {pattern:?}");
        return Err(Error::new(ErrorKind::NoWindow(why), 0));
    }
    let is_open = single(tables).is_none() && !has_parts;
    let cycle = is_open.then(|| cycle(tables, launches)).flatten();
    let n_unlaunched = cycle.as_ref().map_or(0, |cycle| cycle.n_unlaunched);
    let rows = cycle.map_or_else(Vec::new, |cycle| between(&cycle.moments, tables, submissions));
    Ok(Steps { marked: Marked::Repetition(n_unlaunched), pattern: None, rows })
}

/// Returns the iterations of an inference server, each up to the next.
fn of_server(tables: &Tables, submissions: &Submissions) -> Option<Steps> {
    let found = serving::marked(tables)?.rows;
    let moments: Vec<_> = found.iter().map(|&(event, _)| Moment::Start(event)).collect();
    let mut rows = between(&moments, tables, submissions);
    for (row, (_, iteration)) in rows.iter_mut().zip(&found) {
        row.kind = iteration.kind;
    }
    let is_enough = found.len() >= FEWEST_MARKED && holds_half(&rows, tables, submissions);
    is_enough.then_some(Steps { marked: Marked::Server, pattern: None, rows })
}

/// Returns the time ranges between consecutive moments.
fn between(moments: &[Moment], tables: &Tables, submissions: &Submissions) -> Vec<Step> {
    let mut completed: Option<Vec<Moment>> = None;
    let time_ranges = moments.windows(2).enumerate();
    let rows = time_ranges.map(|(place, pair)| {
        let process = process_of(pair[0].event(), tables);
        let host_ns = (pair[0].time_ns(tables), pair[1].time_ns(tables));
        let completion = submissions.completion(process, host_ns, pair[1]);
        let opening = completed.replace(completion.clone()).unwrap_or_else(|| vec![pair[0]]);
        Step {
            number: i64::try_from(place).unwrap_or(i64::MAX),
            event: pair[0].event(),
            mark: pair[0],
            host_ns,
            host: (pair[0], pair[1]),
            period: Window::new(tables, completion, Opening::Moments(opening)),
            before: place.checked_sub(1),
            is_complete: true,
            kind: None,
        }
    });
    rows.collect()
}

/// Whether ranges inside one annotation are parts of it, such as the layers of a model, and no
/// iterations: most of the device time that was launched in it was launched outside of them.
fn is_part(rows: &[Step], around: EventId, tables: &Tables, submissions: &Submissions) -> bool {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return false };
    let Some(whole_ns) = tables.events.span(around) else { return false };
    let process = process_of(around, tables);
    let busy_ns = |within_ns| -> i64 {
        let works = submissions.launched(process, within_ns).iter();
        works.filter_map(|&(_, work)| tables.events.duration_ns(work)).sum()
    };
    2 * busy_ns((first.host_ns.0, last.host_ns.1)) < busy_ns(whole_ns)
}

/// Whether half of all GPU activities were launched within some iterations.
fn holds_half(rows: &[Step], tables: &Tables, submissions: &Submissions) -> bool {
    let events = &tables.events;
    let n_work = events.ids().filter(|&event| events.kind(event).is_device_work()).count();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return false };
    let process = process_of(first.event, tables);
    let within = submissions.launched(process, (first.host_ns.0, last.host_ns.1)).len();
    within * LEAST_MARKED_ONE_IN >= n_work
}

/// The calls that launch kernels, and whether the trace contains their activities.
struct Completeness {
    calls: BTreeMap<StringId, Vec<(i64, bool)>>,
    any_linked: bool,
}

impl Completeness {
    fn of(tables: &Tables, launches: &Launches) -> Self {
        let events = &tables.events;
        let mut has_work = vec![false; events.len()];
        for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
            if let Some(call) = launches.launcher(work) {
                has_work[call.row()] = true;
            }
        }
        let roles = tables.roles();
        let launches_work = |role: ApiRole| matches!(role, ApiRole::Launch | ApiRole::GraphLaunch);
        let mut calls: BTreeMap<StringId, Vec<(i64, bool)>> = BTreeMap::new();
        let captures = Captures::of(tables);
        let launching = events.ids().filter(|&event| {
            events.kind(event).is_call()
                && events.name(event).is_some_and(|name| launches_work(roles[name.row()]))
                && !captures.contain(event, tables)
        });
        for call in launching {
            let row = (events.start_ns(call), has_work[call.row()]);
            calls.entry(process_of(call, tables)).or_default().push(row);
        }
        for calls in calls.values_mut() {
            calls.sort_unstable();
        }
        Self { calls, any_linked: has_work.contains(&true) }
    }

    fn within(&self, step: &Step, tables: &Tables) -> &[(i64, bool)] {
        let calls = self.calls.get(&process_of(step.event, tables)).map_or(&[][..], Vec::as_slice);
        let before = |time_ns| move |&(start_ns, _): &(i64, bool)| start_ns < time_ns;
        let first = calls.partition_point(before(step.host_ns.0));
        let behind = calls.partition_point(before(step.host_ns.1)).max(first);
        &calls[first..behind]
    }

    fn judge(&self, rows: &mut [Step], tables: &Tables) {
        if !self.any_linked {
            return;
        }
        let count =
            |step: &Step| i64::try_from(self.within(step, tables).len()).unwrap_or(i64::MAX);
        let mut counts: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for step in rows.iter().filter(|step| count(step) > 0) {
            counts.entry(step.kind).or_default().push(count(step));
        }
        let usual: BTreeMap<_, _> =
            counts.into_iter().map(|(kind, counts)| (kind, median(counts))).collect();
        for step in rows {
            let calls = self.within(step, tables);
            let n_missing = calls.iter().filter(|(_, has_work)| !has_work).count();
            let usual = usual.get(&step.kind).copied().unwrap_or(0);
            let is_full =
                calls.len() * FEWEST_LAUNCHES_ONE_IN >= usize::try_from(usual).unwrap_or(0);
            step.is_complete = is_full && n_missing * MOST_MISSING_ONE_IN <= calls.len();
        }
    }
}

impl Steps {
    /// Returns the kind of server iterations in the scope of the answer: the one with the most
    /// total time.
    pub fn kind(&self) -> Option<IterationKind> {
        let mut total_ns: BTreeMap<_, i64> = BTreeMap::new();
        for step in &self.rows {
            let of_kind = total_ns.entry(step.kind).or_default();
            *of_kind = of_kind.saturating_add(step.length_ns());
        }
        total_ns.into_iter().max_by_key(|&(_, total_ns)| total_ns).and_then(|(kind, _)| kind)
    }

    /// Returns the longest run of consecutive complete iterations of one kind, each with a
    /// predecessor; of equals, the first. Runs in which no time passes, because everything
    /// completed with the iteration before, do not count.
    pub fn run(&self) -> Vec<usize> {
        let kind = self.kind();
        let qualifies = |row: usize| {
            let step = &self.rows[row];
            step.is_complete && step.before.is_some() && step.kind == kind
        };
        let mut order: Vec<_> = (0..self.rows.len()).filter(|&row| qualifies(row)).collect();
        order.sort_by_key(|&row| (self.rows[row].number, row));
        let mut length = vec![0_usize; self.rows.len()];
        let mut total_ns = vec![0_i64; self.rows.len()];
        for &row in &order {
            let before = self.rows[row].before;
            length[row] = 1 + before.map_or(0, |before| length[before]);
            let before_ns = before.map_or(0, |before| total_ns[before]);
            total_ns[row] = before_ns.saturating_add(self.rows[row].length_ns());
        }
        let takes_time = |row: &usize| total_ns[*row] > 0;
        let last = (0..self.rows.len()).rev().filter(takes_time).max_by_key(|&row| length[row]);
        let mut run = Vec::new();
        let mut next = last;
        while let Some(row) = next.filter(|&row| length[row] > 0) {
            run.push(row);
            next = self.rows[row].before;
        }
        run.reverse();
        run
    }

    /// Of some iterations, returns the one of median length: the lower median, and of equals the
    /// first.
    pub fn median_of(&self, rows: &[usize]) -> Option<usize> {
        let mut sorted = rows.to_vec();
        sorted.sort_by_key(|&row| (self.rows[row].length_ns(), row));
        let usual_ns = self.rows[*sorted.get(sorted.len().saturating_sub(1) / 2)?].length_ns();
        rows.iter().copied().find(|&row| self.rows[row].length_ns() == usual_ns)
    }

    /// Returns the iterations of the kind in the scope of the answer.
    pub fn alike(&self) -> Vec<usize> {
        let kind = self.kind();
        (0..self.rows.len()).filter(|&row| self.rows[row].kind == kind).collect()
    }

    /// Returns the index of the iteration with a number; if several processes have one, the first
    /// in content order.
    pub fn numbered(&self, number: i64, tables: &Tables) -> Option<usize> {
        let rows = (0..self.rows.len()).filter(|&row| self.rows[row].number == number);
        rows.min_by(|&one, &two| by_content(self.rows[one].event, self.rows[two].event, tables))
    }

    /// Returns the smallest and largest number.
    pub fn numbers(&self) -> Option<Range<i64>> {
        let numbers = || self.rows.iter().map(|step| step.number);
        Some(numbers().min()?..numbers().max()?)
    }
}
