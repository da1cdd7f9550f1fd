//! What an answer is about: one window to show, and the windows over which gains hold.

use super::bulk::bulk;
use super::choices::{annotated, annotation, between, step, whole};
use super::markers::single;
use super::model::{Choice, Window, WindowEnd};
use super::steps::{Marked, Step, Steps, steps};
use crate::error::Result;
use crate::link::Launches;
use crate::names::{Names, named};
use crate::tables::{EventKind, Tables};

named! {
    /// What a window is one of.
    Unit {
        /// Iterations of the program.
        Step "step",
        /// Repetitions of device work.
        Repetition "repetition",
        /// Annotations.
        Annotation "annotation",
        /// Stretches between two times.
        Stretch "stretch",
        /// The whole trace.
        Trace "trace",
    }
}

/// What an answer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// What its windows are.
    pub unit: Unit,
    /// The windows over which gains hold, in order of time. They follow one another.
    pub windows: Vec<Window>,
    /// The number of each, where they have numbers.
    pub numbers: Vec<i64>,
    /// The place of the window that is shown.
    pub shown: usize,
    /// Why these.
    pub reason: String,
}

impl Scope {
    fn single(unit: Unit, window: Window, number: Option<i64>, reason: String) -> Self {
        let numbers = number.into_iter().collect();
        Self { unit, windows: vec![window], numbers, shown: 0, reason }
    }

    /// The window that is shown.
    pub fn window(&self) -> &Window {
        &self.windows[self.shown]
    }

    /// The number of the step that is shown.
    pub fn number(&self) -> Option<i64> {
        self.numbers.get(self.shown).copied()
    }
}

/// Finds the window of a choice. `step_name` is a pattern of the annotations that mark
/// iterations.
///
/// # Errors
///
/// When the trace has no such step, annotation or work, and when the pattern is no regular
/// expression.
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
        Choice::Between(start_ns, end_ns) => between(tables, *start_ns, *end_ns),
    }
}

/// Finds what an answer about a choice is about. `step_name` is a pattern of the
/// annotations that mark iterations.
///
/// # Errors
///
/// When the trace has no such step, annotation or work, and when the pattern is no regular
/// expression.
pub fn scope(
    tables: &Tables,
    launches: &Launches,
    choice: &Choice,
    step_name: Option<&str>,
) -> Result<Scope> {
    let asked = |unit, number| {
        let window = window(tables, launches, choice, step_name)?;
        Ok(Scope::single(unit, window, number, "as asked".to_owned()))
    };
    match choice {
        Choice::Usual => usual(tables, launches, step_name),
        Choice::Step(number, end) => {
            let found = steps(tables, launches, step_name)?;
            let (window, row) = step(tables, launches, &found, *number, *end)?;
            let reason = format!("as asked{}", ran_ahead(&found.rows[row], &window, Unit::Step));
            Ok(Scope::single(Unit::Step, window, Some(*number), reason))
        }
        Choice::Annotation(..) => asked(Unit::Annotation, None),
        Choice::Between(start_ns, end_ns) => {
            let found = steps(tables, launches, step_name)?;
            let run = completed_between(&found, *start_ns, *end_ns);
            if run.is_empty() {
                return asked(Unit::Stretch, None);
            }
            let reason =
                format!("the steps that were completed between {start_ns} and {end_ns} ns");
            Ok(of_run(&found, &run, reason))
        }
        Choice::Whole => {
            let window = whole(tables)?;
            let reason = format!("as asked{}", left_out(tables, &window));
            Ok(Scope::single(Unit::Trace, window, None, reason))
        }
    }
}

/// Says so where annotations reach far beyond the work of a whole trace: they are labels, and no
/// end of a trace.
fn left_out(tables: &Tables, window: &Window) -> String {
    let events = &tables.events;
    let labels = events.ids().filter(|&event| events.kind(event) == EventKind::Annotation);
    let (mut start_ns, mut end_ns) = (window.start_ns, window.end_ns);
    for (start, end) in labels.filter_map(|event| events.span(event)) {
        (start_ns, end_ns) = (start_ns.min(start), end_ns.max(end));
    }
    if end_ns - start_ns <= 2 * (window.end_ns - window.start_ns) {
        return String::new();
    }
    "; from the first to the last operator, call or GPU activity: most of the trace is annotations \
     outside of these, to choose with --annotation or --step"
        .to_owned()
}

/// The steps with a predecessor that began and were completed within a stretch of time.
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
        let reason = run_reason(&found, &run) + &covered(tables, &found, &run);
        return Ok(of_run(&found, &run, reason));
    }
    if let Some(scope) = lone_step(&found) {
        return Ok(scope);
    }
    if let Some((event, n_marked)) = single(tables) {
        let window = annotated(tables, launches, event, WindowEnd::Last)?;
        let name = tables.events.name(event).map_or("", |name| tables.strings.get(name));
        let which = match n_marked {
            1 => "the only iteration".to_owned(),
            count => format!("the longest of {count} iterations"),
        };
        let reason = format!("{which} that the trace marks, {name:?}");
        return Ok(Scope::single(Unit::Annotation, window, None, reason));
    }
    let window = whole(tables)?;
    let bulk = bulk(tables, &window);
    let part = bulk.map_or_else(String::new, |bulk| format!("; {bulk}"));
    let reason = format!("the trace marks no iterations{part}{}", left_out(tables, &window));
    Ok(Scope::single(Unit::Trace, window, None, reason))
}

/// Says so where the windows are less than half of the trace.
fn covered(tables: &Tables, found: &Steps, run: &[usize]) -> String {
    let length_ns = |window: &Window| i128::from(window.end_ns) - i128::from(window.start_ns);
    let run_ns: i128 = run.iter().map(|&row| length_ns(&found.rows[row].period)).sum();
    let whole_ns = whole(tables).map_or(0, |window| length_ns(&window));
    if 2 * run_ns >= whole_ns {
        return String::new();
    }
    let (percent, them) =
        (100 * run_ns / whole_ns, if run.len() == 1 { "it is" } else { "they are" });
    let percent = if percent == 0 { "less than 1".to_owned() } else { percent.to_string() };
    format!("; {them} {percent} % of the trace")
}

fn of_run(found: &Steps, run: &[usize], reason: String) -> Scope {
    let median = found.median_of(run);
    let unit = match found.marked {
        Marked::Profiler | Marked::Annotations | Marked::Server => Unit::Step,
        Marked::Repetition(_) => Unit::Repetition,
    };
    let shown = median.and_then(|row| run.iter().position(|&other| other == row)).unwrap_or(0);
    let step = &found.rows[run[shown]];
    Scope {
        unit,
        windows: run.iter().map(|&row| found.rows[row].period.clone()).collect(),
        numbers: run.iter().map(|&row| found.rows[row].number).collect(),
        shown,
        reason: reason + &ran_ahead(step, &step.period, unit),
    }
}

/// Says so where most of what the host did for a step lies before its window: the device was
/// still at the step before.
fn ran_ahead(step: &Step, window: &Window, unit: Unit) -> String {
    let (start_ns, end_ns) = step.host_ns;
    let inside_ns = end_ns.min(window.end_ns) - start_ns.max(window.start_ns);
    if 2 * inside_ns.max(0) >= end_ns - start_ns {
        return String::new();
    }
    let most = if inside_ns > 0 { "most " } else { "" };
    let noun = unit.name();
    format!("; the host ran ahead, so {most}host times in this window belong to other {noun}s")
}

/// Where no complete step follows another: the median of the complete ones, else of all, in
/// which time passes.
fn lone_step(found: &Steps) -> Option<Scope> {
    let takes_time = |row: &usize| found.rows[*row].length_ns() > 0;
    let all: Vec<_> = found.alike().into_iter().filter(takes_time).collect();
    let complete: Vec<_> = all.iter().copied().filter(|&row| found.rows[row].is_complete).collect();
    let (rows, which) = if complete.is_empty() {
        (all, "none of them is complete")
    } else {
        (complete, "the trace has no step before any complete one")
    };
    let row = found.median_of(&rows)?;
    let which = match (found.rows.len(), rows.len(), found.rows[row].is_complete) {
        (1, _, true) => "the only step".to_owned(),
        (1, _, false) => "the only step, which is not complete".to_owned(),
        (count, 1, true) => {
            format!("the only complete one of {count} steps; the trace has no step before it")
        }
        (count, n_rows, _) => format!("the median of {n_rows} of {count} steps; {which}"),
    };
    Some(of_run(found, &[row], which))
}

fn run_reason(found: &Steps, run: &[usize]) -> String {
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
    match run.len() {
        1 => format!("of {n_all} {noun}, the only complete one with another before it{marked}"),
        count => format!("the median of {count} of {n_all} {noun}{marked}"),
    }
}
