//! Stretches of a trace that can be asked about: steps, annotations, two times, all of it.
//!
//! A window is more than two times: it knows which events open and end it, so that it
//! moves with them when a change is tried.

mod completion;
mod cycles;
mod markers;
mod scope;
mod steps;

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::EventId;
use crate::link::{self, Launches};
use crate::tables::{by_content, EventKind, Tables};
use crate::time::in_range;
use completion::Submissions;
pub use scope::{scope, Scope, Unit};
pub use steps::{steps, Marked, Step, Steps};

/// A stretch of a trace and what opens and ends it.
///
/// That is more than two times: when events move, so does the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// What may end it: the last of these moments does.
    pub candidates: Vec<Moment>,
    /// What opens it.
    pub opening: Opening,
}

/// The start or the end of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Its start.
    Start(EventId),
    /// Its end.
    End(EventId),
}

/// What a window begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// The last of some moments.
    Moments(Vec<Moment>),
    /// A time, whatever happens then.
    Time,
}

/// Which of its parts end a step or an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// The last of all; and the window begins where the step before ended so.
    Period,
    /// The last of the annotation and the device work launched inside it.
    Last,
    /// The annotation.
    Cpu,
    /// The last of the device work launched inside it.
    Gpu,
}

/// What stretch of the trace is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All work of main threads and devices.
    Whole,
    /// The iteration of median length, or what comes closest to one; see [`scope`].
    Usual,
    /// The step with a number.
    Step(i64, WindowEnd),
    /// One of the annotations with a name, counted in order of time.
    Annotation(String, usize, WindowEnd),
    /// From one time to another.
    Between(i64, i64),
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
        Choice::Usual => {
            scope(tables, launches, choice, step_name).map(|scope| scope.window().clone())
        }
        Choice::Step(number, end) => step(tables, launches, step_name, *number, *end),
        Choice::Annotation(name, instance, end) => {
            annotated(tables, launches, annotation(tables, name, *instance)?, *end)
        }
        Choice::Between(start_ns, end_ns) => between(tables, *start_ns, *end_ns),
    }
}

fn missing(what: String) -> Error {
    Error::new(ErrorKind::NoWindow(what), 0)
}

/// All work of main threads and devices. Other threads never end a trace: watchdogs
/// sleep longest.
///
/// # Errors
///
/// When there is none.
pub fn whole(tables: &Tables) -> Result<Window> {
    let works = leading_work(tables);
    let first = works.iter().copied().min_by(|&one, &two| by_content(one, two, tables));
    let first = first
        .ok_or_else(|| missing("the trace has no work on a main thread or a device".to_owned()))?;
    let ends = works.into_iter().map(Moment::End).collect();
    Ok(Window::new(tables, ends, Opening::Moments(vec![Moment::Start(first)])))
}

fn step(
    tables: &Tables,
    launches: &Launches,
    step_name: Option<&str>,
    number: i64,
    end: WindowEnd,
) -> Result<Window> {
    let found = steps(tables, launches, step_name)?;
    let row = found.numbered(number, tables).ok_or_else(|| missing(no_step(number, &found)))?;
    let step = &found.rows[row];
    let submissions = Submissions::of(tables, launches);
    let moments = match (end, found.marked) {
        (WindowEnd::Period, _) => return Ok(step.period.clone()),
        (_, Marked::Profiler) => submissions.of_annotation(step.event, end, tables),
        (WindowEnd::Last, _) => step.period.candidates.clone(),
        (WindowEnd::Cpu, _) => step.period.candidates[..1].to_vec(),
        (WindowEnd::Gpu, _) => step.period.candidates[1..].to_vec(),
    };
    let start = found.rows[row].start();
    opened_by(start, moments, tables)
}

fn opened_by(start: Moment, moments: Vec<Moment>, tables: &Tables) -> Result<Window> {
    if moments.is_empty() {
        return Err(missing("no device work was launched in that window".to_owned()));
    }
    Ok(Window::new(tables, moments, Opening::Moments(vec![start])))
}

fn no_step(number: i64, steps: &Steps) -> String {
    match steps.numbers().map(|numbers| (numbers.start, numbers.end)) {
        Some((only, last)) if only == last => {
            format!("the trace has no step {number}; its only step is {only}")
        }
        Some((first, last)) => {
            format!("the trace has no step {number}; its steps go from {first} to {last}")
        }
        None => format!("the trace has no step {number}, nor any other"),
    }
}

fn annotation(tables: &Tables, name: &str, instance: usize) -> Result<EventId> {
    let events = &tables.events;
    let id = tables.strings.lookup(name);
    let is_named = |event: &EventId| {
        events.kind(*event) == EventKind::Annotation
            && id.is_some()
            && events.name(*event) == id
            && events.end_ns(*event).is_some()
    };
    let mut found: Vec<_> = events.ids().filter(is_named).collect();
    found.sort_by(|&one, &two| by_content(one, two, tables));
    found.get(instance).copied().ok_or_else(|| {
        missing(match found.len() {
            0 => format!("the trace has no annotation {name:?}"),
            1 => format!("the trace has one annotation {name:?}, numbered 0, and none {instance}"),
            count => {
                format!("the trace has {count} annotations {name:?}, none numbered {instance}")
            }
        })
    })
}

/// The window of an annotation.
fn annotated(
    tables: &Tables,
    launches: &Launches,
    annotation: EventId,
    end: WindowEnd,
) -> Result<Window> {
    let moments = Submissions::of(tables, launches).of_annotation(annotation, end, tables);
    opened_by(Moment::Start(annotation), moments, tables)
}

fn between(tables: &Tables, start_ns: i64, end_ns: i64) -> Result<Window> {
    let (start_ns, end_ns) = in_range((start_ns, end_ns));
    let events = &tables.events;
    let works = leading_work(tables);
    let overlaps = |event: &EventId| {
        events.span(*event).is_some_and(|(start, end)| start < end_ns && end > start_ns)
    };
    let mut last: Vec<_> = works.iter().copied().filter(overlaps).collect();
    let lasts = |event: &EventId| events.end_ns(*event).is_some_and(|end| end >= end_ns);
    if !last.iter().any(lasts) {
        last.extend(next_on_main_thread(tables, &works, end_ns));
    }
    if last.is_empty() {
        return Err(missing(format!("the trace has no work between {start_ns} and {end_ns} ns")));
    }
    let candidates = last.into_iter().map(Moment::End).collect();
    Ok(Window { start_ns, end_ns, candidates, opening: Opening::Time })
}

/// The first work that a main thread begins at or after a time, if it worked before: what
/// leads there tells what happened until then.
fn next_on_main_thread(tables: &Tables, works: &[EventId], at_ns: i64) -> Option<EventId> {
    let events = &tables.events;
    let on_thread = || works.iter().filter(|&&event| !events.kind(event).is_device_work());
    let began = on_thread().filter(|&&event| events.start_ns(event) < at_ns);
    let busy: BTreeSet<_> = began.map(|&event| events.lane(event)).collect();
    let next = on_thread()
        .filter(|&&event| events.start_ns(event) >= at_ns && busy.contains(&events.lane(event)));
    next.copied().min_by(|&one, &two| by_content(one, two, tables))
}

/// The work of devices and main threads. Work with neither a time nor a duration is
/// work for which the profiler got none: it would begin the window in 1970.
fn leading_work(tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let is_main = link::main_threads(tables);
    let leads = |event: &EventId| {
        let kind = events.kind(*event);
        let works = matches!(kind, EventKind::Operator | EventKind::Python) || kind.is_call();
        let leads = kind.is_device_work() || (works && is_main[events.lane(*event).row()]);
        let is_timed = events.start_ns(*event) != 0 || events.duration_ns(*event) != Some(0);
        leads && is_timed && events.end_ns(*event).is_some()
    };
    events.ids().filter(leads).collect()
}

impl Window {
    /// A window that ends with the last of its candidates, never before it begins.
    fn new(tables: &Tables, candidates: Vec<Moment>, opening: Opening) -> Self {
        let last_ns = |of: &[Moment]| of.iter().map(|moment| moment.time_ns(tables)).max();
        let start_ns = match &opening {
            Opening::Moments(moments) => last_ns(moments).unwrap_or(i64::MIN),
            Opening::Time => i64::MIN,
        };
        let end_ns = last_ns(&candidates).unwrap_or(start_ns).max(start_ns);
        Self { start_ns, end_ns, candidates, opening }
    }
}

impl Moment {
    /// Whose start or end it is.
    pub fn event(self) -> EventId {
        match self {
            Self::Start(event) | Self::End(event) => event,
        }
    }

    /// When it was; an event without an end has none later than its start.
    pub fn time_ns(self, tables: &Tables) -> i64 {
        let events = &tables.events;
        match self {
            Self::Start(event) => events.start_ns(event),
            Self::End(event) => events.end_ns(event).unwrap_or(events.start_ns(event)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{read_bytes, Options};

    /// Two steps of 20 us; the device is done with the first at 30 and with the
    /// second at 60.
    fn two_steps() -> (Tables, Launches) {
        let rows = [
            ("user_annotation", "ProfilerStep#1", 1, 0, 20, 0),
            ("user_annotation", "ProfilerStep#2", 1, 20, 20, 0),
            ("cuda_runtime", "cudaLaunchKernel", 1, 5, 2, 1),
            ("cuda_runtime", "cudaLaunchKernel", 1, 25, 2, 2),
            ("kernel", "K1", 0, 10, 20, 1),
            ("kernel", "K2", 0, 31, 29, 2),
        ];
        let event = |(category, name, pid, ts, dur, correlation): (
            &str,
            &str,
            i64,
            i64,
            i64,
            i64,
        )| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":{pid},"tid":7,"ts":{ts}e-3,"dur":{dur}e-3,
                "args":{{"correlation":{correlation}}}}}"#
            )
        };
        let text = format!("[{}]", rows.map(event).join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        (tables, launches)
    }

    fn times(choice: &Choice) -> Result<(i64, i64)> {
        let (tables, launches) = two_steps();
        window(&tables, &launches, choice, None).map(|window| (window.start_ns, window.end_ns))
    }

    #[test]
    fn a_step_ends_with_its_annotation_and_all_work_it_launched() {
        let step = |end| times(&Choice::Step(2, end));
        assert_eq!(step(WindowEnd::Period), Ok((30, 60)));
        assert_eq!(step(WindowEnd::Last), Ok((20, 60)));
        assert_eq!(step(WindowEnd::Gpu), Ok((20, 60)));
        assert_eq!(step(WindowEnd::Cpu), Ok((20, 40)));
    }

    #[test]
    fn a_period_without_the_step_before_begins_at_its_annotation() {
        assert_eq!(times(&Choice::Step(1, WindowEnd::Period)), Ok((0, 30)));
    }

    #[test]
    fn the_table_of_steps_gives_the_periods() {
        let (tables, launches) = two_steps();
        let found = steps(&tables, &launches, None).unwrap();
        let periods = found.rows.iter().map(|step| (step.period.start_ns, step.period.end_ns));
        let windows: Vec<_> = periods.collect();
        assert_eq!(windows, [(0, 30), (30, 60)]);
    }

    #[test]
    fn what_is_launched_inside_two_steps_completes_both() {
        let text = br#"[
            {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":20},
            {"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":1,"tid":1,"ts":4,"dur":6},
            {"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":5,"dur":1,"args":{"correlation":1}},
            {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":80,"dur":10,"args":{"correlation":1}}]"#;
        let tables = read_bytes(text, &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let found = steps(&tables, &launches, None).unwrap();
        let periods = found.rows.iter().map(|step| (step.period.start_ns, step.period.end_ns));
        let windows: Vec<_> = periods.collect();
        assert_eq!(windows, [(0, 90_000), (4_000, 90_000)]);
    }

    #[test]
    fn a_window_that_is_not_there_is_an_error_in_words() {
        let words = |choice| times(&choice).unwrap_err().to_string();
        assert_eq!(
            words(Choice::Step(7, WindowEnd::Last)),
            "the trace has no step 7; its steps go from 1 to 2"
        );
        assert_eq!(
            words(Choice::Annotation("fit".to_owned(), 0, WindowEnd::Last)),
            "the trace has no annotation \"fit\""
        );
        assert_eq!(words(Choice::Between(70, 80)), "the trace has no work between 70 and 80 ns");
    }
}
