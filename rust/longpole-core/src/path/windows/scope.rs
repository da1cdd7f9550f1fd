//! The scope of an answer: the window that is shown, and the windows to which gains refer.

use std::fmt;
use std::ops::Range;

use super::choices::{annotated, annotation, between, exit_calls, step, whole};
use super::markers::single;
use super::model::{Choice, Moment, Window, WindowEnd};
use super::steps::{Marked, Steps, steps};
use crate::error::Result;
use crate::ids::EventId;
use crate::link::Launches;
use crate::names::{Names, named};
use crate::tables::{EventKind, Tables};

named! {
    /// The unit of the windows.
    Unit {
        /// Iterations of the program.
        Step "step",
        /// Repetitions of GPU activities.
        Repetition "repetition",
        /// Annotations.
        Annotation "annotation",
        /// Time ranges.
        TimeRange "time_range",
        /// The whole trace.
        Trace "trace",
    }
}

/// If a scope has more windows than this, this number of windows may represent all of them.
pub(in crate::path) const ENOUGH_WINDOWS: usize = 10;

/// The reciprocal of the largest difference between the mean length of windows that represent all
/// and the mean length of all. It is smaller than any gain that is reported, so nothing that only
/// the other windows contain would be reported.
const LEAST_DIFFERENCE: i128 = 100;

/// The scope of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The unit of its windows.
    pub unit: Unit,
    /// The windows to which gains refer, in order of time and adjacent to each other.
    pub windows: Vec<Window>,
    /// For each window, the time range in which the host work that belongs to it begins: up to
    /// the end of the mark of an iteration, from that of the iteration before. Other windows
    /// contain their host work.
    pub host_ns: Vec<(i64, i64)>,
    /// The moments of these times; empty if the windows contain their host work.
    pub(super) host: Vec<(Moment, Moment)>,
    /// The numbers of the windows, if they have numbers.
    pub numbers: Vec<i64>,
    /// Index of the shown window.
    pub shown: usize,
    /// Why these windows were chosen.
    pub reason: Reason,
}

/// The reason for the choice of windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The full text.
    pub text: String,
    /// The part that affects the answer, for a headline; usually empty.
    pub clause: String,
}

impl Reason {
    fn new(text: impl Into<String>, clause: impl Into<String>) -> Self {
        Self { text: text.into(), clause: clause.into() }
    }

    /// Returns a reason that is shown for any choice of window.
    fn always(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { clause: text.clone(), text }
    }

    fn and(self, more: Option<Self>) -> Self {
        let Some(more) = more else { return self };
        let separator = if self.clause.is_empty() { "" } else { "; " };
        Self {
            text: format!("{}; {}", self.text, more.text),
            clause: format!("{}{separator}{}", self.clause, more.clause),
        }
    }
}

impl Scope {
    fn single(unit: Unit, window: Window, number: Option<i64>, reason: Reason) -> Self {
        let numbers = number.into_iter().collect();
        let host_ns = vec![(window.start_ns, window.end_ns)];
        let host = Vec::new();
        Self { unit, windows: vec![window], host_ns, host, numbers, shown: 0, reason }
    }

    /// Returns the same windows with the host work that begins between two moments each.
    fn with_host(self, host: Vec<(Moment, Moment)>, tables: &Tables) -> Self {
        let host_ns =
            host.iter().map(|(from, to)| (from.time_ns(tables), to.time_ns(tables))).collect();
        Self { host_ns, host, ..self }
    }

    /// Whether the host work of its windows may begin outside of them.
    pub(in crate::path) fn has_host(&self) -> bool {
        !self.host.is_empty()
    }

    /// Returns the shown window.
    pub fn window(&self) -> &Window {
        &self.windows[self.shown]
    }

    /// Returns the windows that represent all of them: `n_enough` consecutive ones around the shown
    /// one, whose mean length is nearest to that of all windows. These are more, or all windows, if
    /// a part of them differs too much from the rest.
    pub(in crate::path) fn representative(&self, n_enough: usize) -> Range<usize> {
        let n_all = self.windows.len();
        let length_ns = |window: &Window| i128::from(window.end_ns) - i128::from(window.start_ns);
        let mut until_ns = vec![0];
        for window in &self.windows {
            until_ns.push(until_ns[until_ns.len() - 1] + length_ns(window));
        }
        let total_ns = until_ns[n_all];
        let mut n_windows = n_enough;
        while n_windows < n_all {
            let count = i128::try_from(n_windows).unwrap_or(1);
            let n_all_windows = i128::try_from(n_all).unwrap_or(1);
            let difference = |first: &usize| {
                let part_ns = until_ns[first + n_windows] - until_ns[*first];
                (part_ns * n_all_windows - total_ns * count).abs()
            };
            let first = (self.shown + 1).saturating_sub(n_windows);
            let nearest = (first..=self.shown.min(n_all - n_windows)).min_by_key(difference);
            if let Some(first) = nearest
                && difference(&first) * LEAST_DIFFERENCE <= total_ns * count
            {
                return first..first + n_windows;
            }
            n_windows *= 2;
        }
        0..n_all
    }

    /// Returns the scope of some of the windows, among which is the shown one.
    pub(in crate::path) fn part(&self, windows: Range<usize>) -> Self {
        Self {
            unit: self.unit,
            host_ns: self.host_ns[windows.clone()].to_vec(),
            host: self.host.get(windows.clone()).unwrap_or_default().to_vec(),
            numbers: self.numbers.get(windows.clone()).unwrap_or_default().to_vec(),
            shown: self.shown.saturating_sub(windows.start),
            windows: self.windows[windows].to_vec(),
            reason: self.reason.clone(),
        }
    }

    /// Returns the number of the shown step.
    pub fn number(&self) -> Option<i64> {
        self.numbers.get(self.shown).copied()
    }
}

/// Returns the window of a choice. `step_name` is a pattern for the annotations that mark
/// iterations.
///
/// # Errors
///
/// Returns an error if the trace has no such step, annotation or events, or if the pattern is not a
/// valid regular expression.
pub fn window(
    tables: &Tables,
    launches: &Launches,
    choice: &Choice,
    step_name: Option<&str>,
) -> Result<Window> {
    match choice {
        Choice::Whole => whole(tables),
        Choice::Usual => usual(tables, launches, step_name).map(|scope| scope.window().clone()),
        Choice::Step(number, end) => {
            let found = steps(tables, launches, step_name)?;
            step(tables, launches, &found, *number, *end).map(|(window, _)| window)
        }
        Choice::Annotation(name, instance, end) => {
            annotated(tables, launches, annotation(tables, name, *instance)?, *end)
        }
        Choice::Between(start_ns, end_ns) | Choice::Now(start_ns, end_ns) => {
            between(tables, *start_ns, *end_ns)
        }
    }
}

/// Returns the scope of a choice. `step_name` is a pattern for the annotations that mark
/// iterations.
///
/// # Errors
///
/// Returns an error if the trace has no such step, annotation or events, or if the pattern is not a
/// valid regular expression.
pub fn scope(
    tables: &Tables,
    launches: &Launches,
    choice: &Choice,
    step_name: Option<&str>,
) -> Result<Scope> {
    let asked = |unit, number| {
        let window = window(tables, launches, choice, step_name)?;
        Ok(Scope::single(unit, window, number, Reason::new("as asked", "")))
    };
    match choice {
        Choice::Usual => usual(tables, launches, step_name),
        Choice::Step(number, end) => {
            let found = steps(tables, launches, step_name)?;
            let (window, row) = step(tables, launches, &found, *number, *end)?;
            let ran_ahead = ran_ahead(&found, row, &window, Unit::Step);
            let reason = Reason::new("as asked", "").and(ran_ahead);
            let scope = Scope::single(Unit::Step, window, Some(*number), reason);
            let is_period = *end == WindowEnd::Period;
            Ok(if is_period {
                scope.with_host(vec![host_of(tables, &found, row)], tables)
            } else {
                scope
            })
        }
        Choice::Annotation(..) => asked(Unit::Annotation, None),
        Choice::Between(start_ns, end_ns) | Choice::Now(start_ns, end_ns) => {
            let found = steps(tables, launches, step_name)?;
            let run = completed_between(&found, *start_ns, *end_ns);
            if run.is_empty() {
                return asked(Unit::TimeRange, None);
            }
            let reason =
                format!("the steps that were completed between {start_ns} and {end_ns} ns");
            Ok(of_run(tables, &found, &run, Reason::new(reason, "")))
        }
        Choice::Whole => {
            let window = whole(tables)?;
            let reason = Reason::new("as asked", "").and(left_out(tables, &window));
            let reason = reason.and(before_exit(tables));
            Ok(Scope::single(Unit::Trace, window, None, reason))
        }
    }
}

/// Returns a note that annotations extend far beyond the events of a whole trace. They are labels
/// and do not end the window.
fn left_out(tables: &Tables, window: &Window) -> Option<Reason> {
    let events = &tables.events;
    let labels = events.ids().filter(|&event| events.kind(event) == EventKind::Annotation);
    let (mut start_ns, mut end_ns) = (window.start_ns, window.end_ns);
    for (start, end) in labels.filter_map(|event| events.span(event)) {
        (start_ns, end_ns) = (start_ns.min(start), end_ns.max(end));
    }
    if end_ns - start_ns <= 2 * (window.end_ns - window.start_ns) {
        return None;
    }
    Some(Reason::always(
        "from the first to the last operator, call or GPU activity: most of the trace is \
         annotations outside of these, to choose with --window or --step",
    ))
}

/// Returns a note that the window of the whole trace ends before the program unloads its code.
fn before_exit(tables: &Tables) -> Option<Reason> {
    let (n_calls, (start_ns, end_ns)) = exit_calls(tables)?;
    let calls = if n_calls == 1 { "call" } else { "calls" };
    Some(Reason::always(format!(
        "without {n_calls} {calls} of {} ms that unload code at the exit of the program",
        (end_ns - start_ns + 999_999) / 1_000_000
    )))
}

/// Returns the steps with a predecessor that began and completed within a time range.
fn completed_between(found: &Steps, start_ns: i64, end_ns: i64) -> Vec<usize> {
    let lies_within = |row: &usize| {
        let step = &found.rows[*row];
        step.before.is_some() && start_ns <= step.period.start_ns && step.period.end_ns <= end_ns
    };
    found.run().into_iter().filter(lies_within).collect()
}

fn usual(tables: &Tables, launches: &Launches, step_name: Option<&str>) -> Result<Scope> {
    let found = steps(tables, launches, step_name)?;
    let run = found.run();
    if !run.is_empty() {
        let reason = run_reason(&found, &run).and(covered(tables, &found, &run));
        return Ok(of_run(tables, &found, &run, reason));
    }
    if let Some(scope) = lone_step(tables, &found) {
        return Ok(scope);
    }
    if let Some((event, n_marked)) = single(tables) {
        let window = annotated(tables, launches, event, WindowEnd::Last)?;
        let name = tables.events.name(event).map_or("", |name| tables.strings.get(name));
        let which = match n_marked {
            1 => "the only iteration".to_owned(),
            count => format!("the longest of {count} iterations"),
        };
        let text = format!("{which} that the trace marks, {name:?}");
        let until = match tables.events.end_ns(event) {
            Some(end_ns) if end_ns < window.end_ns => " and the GPU activities launched in it",
            _ => "",
        };
        let reason = Reason::new(text, format!("{name:?}{until}"));
        return Ok(Scope::single(Unit::Annotation, window, None, reason));
    }
    let window = whole(tables)?;
    let bulk = bulk(tables, &window).map(|bulk| Reason::always(bulk.to_string()));
    let reason = Reason::always("the trace marks no iterations");
    let reason = reason.and(bulk).and(left_out(tables, &window)).and(before_exit(tables));
    Ok(Scope::single(Unit::Trace, window, None, reason))
}

/// Returns a note that the windows cover less than half of the trace.
fn covered(tables: &Tables, found: &Steps, run: &[usize]) -> Option<Reason> {
    let length_ns = |window: &Window| i128::from(window.end_ns) - i128::from(window.start_ns);
    let run_ns: i128 = run.iter().map(|&row| length_ns(&found.rows[row].period)).sum();
    let whole_ns = whole(tables).map_or(0, |window| length_ns(&window));
    if 2 * run_ns >= whole_ns {
        return None;
    }
    let percent = 100 * run_ns / whole_ns;
    let percent = if percent == 0 { "less than 1".to_owned() } else { percent.to_string() };
    let these = match (found.marked, run.len()) {
        (Marked::Repetition(_), 1) => "the repetition used covers",
        (Marked::Repetition(_), _) => "the repetitions used cover",
        (_, 1) => "the step used covers",
        _ => "the steps used cover",
    };
    Some(Reason::always(format!("{these} {percent} % of the trace")))
}

fn of_run(tables: &Tables, found: &Steps, run: &[usize], reason: Reason) -> Scope {
    let median = found.median_of(run);
    let unit = match found.marked {
        Marked::Profiler | Marked::Annotations | Marked::Server => Unit::Step,
        Marked::Repetition(_) => Unit::Repetition,
    };
    let shown = median.and_then(|row| run.iter().position(|&other| other == row)).unwrap_or(0);
    let row = run[shown];
    let scope = Scope {
        unit,
        windows: run.iter().map(|&row| found.rows[row].period.clone()).collect(),
        host_ns: Vec::new(),
        host: Vec::new(),
        numbers: run.iter().map(|&row| found.rows[row].number).collect(),
        shown,
        reason: reason.and(ran_ahead(found, row, &found.rows[row].period, unit)),
    };
    scope.with_host(run.iter().map(|&row| host_of(tables, found, row)).collect(), tables)
}

/// Returns the moments between which the host work of an iteration begins. What begins between two
/// marks belongs to the second.
fn host_of(tables: &Tables, found: &Steps, row: usize) -> (Moment, Moment) {
    let (start, end) = found.rows[row].host;
    let before = found.rows[row].before.map(|before| found.rows[before].host.1);
    let start = before.into_iter().chain([start]).min_by_key(|moment| moment.time_ns(tables));
    (start.unwrap_or(found.rows[row].host.0), end)
}

/// Returns a note that the host did most of the work of a step before its window, while the device
/// was still busy with previous steps, and how many of these had not ended then.
fn ran_ahead(found: &Steps, row: usize, window: &Window, unit: Unit) -> Option<Reason> {
    let (start_ns, end_ns) = found.rows[row].host_ns;
    let inside_ns = end_ns.min(window.end_ns) - start_ns.max(window.start_ns);
    if 2 * inside_ns.max(0) >= end_ns - start_ns {
        return None;
    }
    let most = if inside_ns > 0 { "most of " } else { "" };
    let noun = unit.name();
    let earlier = found.rows[..row].iter().filter(|step| step.host_ns.1 <= end_ns);
    let by = match earlier.filter(|step| step.period.end_ns >= end_ns).count() {
        0 => String::new(),
        1 => format!(" by one {noun}"),
        count => format!(" by {count} {noun}s"),
    };
    Some(Reason::always(format!(
        "the host runs ahead{by}: {most}the host work of this {noun} lies before this window"
    )))
}

/// Returns the scope if no complete step follows another: the step of median length, of the
/// complete ones if any, with a length above zero.
fn lone_step(tables: &Tables, found: &Steps) -> Option<Scope> {
    let takes_time = |row: &usize| found.rows[*row].length_ns() > 0;
    let all: Vec<_> = found.alike().into_iter().filter(takes_time).collect();
    let complete: Vec<_> = all.iter().copied().filter(|&row| found.rows[row].is_complete).collect();
    let (rows, which) = if complete.is_empty() {
        (all, "none of them is complete")
    } else {
        (complete, "the trace has no step before any complete one")
    };
    let row = found.median_of(&rows)?;
    let reason = match (found.rows.len(), rows.len(), found.rows[row].is_complete) {
        (1, _, true) => Reason::new("the only step", ""),
        (1, _, false) => Reason::new("the only step, which is not complete", "not complete"),
        (count, 1, true) => Reason::new(
            format!("the only complete one of {count} steps; the trace has no step before it"),
            "",
        ),
        (count, n_rows, _) => {
            let usual = usual_of(found, &rows);
            Reason::always(format!("{usual} of {n_rows} of {count} steps; {which}"))
        }
    };
    Some(of_run(tables, found, &[row], reason))
}

fn run_reason(found: &Steps, run: &[usize]) -> Reason {
    let (noun, marked) = match (found.marked, &found.pattern) {
        (Marked::Profiler, _) => ("steps".to_owned(), String::new()),
        (Marked::Annotations, pattern) => {
            let name = pattern.as_deref().unwrap_or_default();
            ("steps".to_owned(), format!(", marked by {name:?}"))
        }
        (Marked::Server, _) => {
            let kind = found.kind().map_or_else(String::new, |kind| format!("{} ", kind.name()));
            (format!("{kind}steps"), ", marked by the server".to_owned())
        }
        (Marked::Repetition(n_unlaunched), _) => {
            let more = match n_unlaunched {
                0 => String::new(),
                1 => "; one more has no recorded launch".to_owned(),
                count => format!("; {count} more have no recorded launch"),
            };
            ("repetitions of device work".to_owned(), more)
        }
    };
    let n_all = found.alike().len();
    if run.len() == 1 {
        let only = format!("of {n_all} {noun}, the only complete one with another before it");
        return Reason::new(format!("{only}{marked}"), marked.trim_start_matches([',', ';', ' ']));
    }
    let chosen = format!("{} of {} of {n_all} {noun}{marked}", usual_of(found, run), run.len());
    let differ = !are_alike(run.iter().map(|&row| found.rows[row].length_ns()));
    let clause = if differ { &chosen } else { marked.trim_start_matches([',', ';', ' ']) };
    Reason::new(chosen.clone(), clause)
}

/// Returns which of some iterations is shown: that of median length, of two unlike ones the shorter.
fn usual_of(found: &Steps, rows: &[usize]) -> &'static str {
    let differ = !are_alike(rows.iter().map(|&row| found.rows[row].length_ns()));
    if rows.len() == 2 && differ { "the shorter" } else { "the median" }
}

/// Whether lengths are similar enough that any of them is representative.
fn are_alike(lengths_ns: impl Iterator<Item = i64> + Clone) -> bool {
    let (least, most) = (lengths_ns.clone().min(), lengths_ns.max());
    most.zip(least).is_none_or(|(most, least)| most - least <= least / 50)
}

// The part of a trace that contains most GPU activities, for traces without marked iterations, in
// which start-up can take longer than the part of interest.

/// Minimum number of activities.
const FEWEST: usize = 100;

/// Percentage of the activities that the bulk contains.
const BULK_PERCENT: usize = 90;

/// The bulk must take less than one part in this many of the window.
const TIME_ONE_IN: i64 = 2;

/// The shortest part of a window that contains most of its GPU activities, in ns from the first
/// event of the file.
pub(super) struct Bulk {
    start_ns: i64,
    end_ns: i64,
    activity_percent: usize,
    time_percent: i64,
}

/// Returns the bulk if it is much shorter than the window.
fn bulk(tables: &Tables, window: &Window) -> Option<Bulk> {
    let events = &tables.events;
    let mut works: Vec<_> = events.ids().filter(|&id| events.kind(id).is_device_work()).collect();
    works.sort_by_key(|&work| (events.start_ns(work), work));
    let (start_ns, last_start_ns) = shortest(tables, &works)?;
    let inside: Vec<_> = works
        .iter()
        .filter(|&&work| (start_ns..=last_start_ns).contains(&events.start_ns(work)))
        .collect();
    let end_ns = inside.iter().filter_map(|&&work| events.end_ns(work)).max()?;
    let (length_ns, whole_ns) = (end_ns - start_ns, window.end_ns - window.start_ns);
    let first_ns = events.ids().map(|id| events.start_ns(id)).min()?;
    (length_ns.checked_mul(TIME_ONE_IN)? < whole_ns).then(|| Bulk {
        start_ns: start_ns - first_ns,
        end_ns: end_ns - first_ns,
        activity_percent: 100 * inside.len() / works.len(),
        time_percent: (length_ns.saturating_mul(100) / whole_ns).max(1),
    })
}

/// Returns the first and last start in the shortest such part.
fn shortest(tables: &Tables, works: &[EventId]) -> Option<(i64, i64)> {
    if works.len() < FEWEST {
        return None;
    }
    let start_ns = |work: &EventId| tables.events.start_ns(*work);
    let parts = works.windows((works.len() * BULK_PERCENT).div_ceil(100));
    let times = parts.filter_map(|part| Some((start_ns(part.first()?), start_ns(part.last()?))));
    times.min_by_key(|&(first_ns, last_ns)| (last_ns - first_ns, first_ns))
}

impl fmt::Display for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} % of its GPU activities lie in {} % of its time: to analyse only these, add \
             --window {}..{}",
            self.activity_percent, self.time_percent, self.start_ns, self.end_ns
        )
    }
}
