//! Stretches of a trace that can be asked about: steps, annotations, two times, all of it.
//!
//! A window is more than two times: it knows which events open and end it, so that it
//! moves with them when a change is tried.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, StringId};
use crate::link::{self, Launches, Step};
use crate::tables::{by_content, EventKind, Tables};
use crate::time::in_range;

/// A stretch of a trace and what opens and ends it.
///
/// That is more than two times: when events move, so does the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// What may end it: the last of these to end does.
    pub candidates: Vec<EventId>,
    /// What opens it.
    pub opening: Opening,
}

/// What a window begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// The start of an event.
    Start(EventId),
    /// The end of the last of some events.
    Ends(Vec<EventId>),
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
    /// The `ProfilerStep` with a number.
    Step(i64, WindowEnd),
    /// One of the annotations with a name, counted in order of time.
    Annotation(String, usize, WindowEnd),
    /// From one time to another.
    Between(i64, i64),
}

/// A step and the window in which its work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepWindow {
    /// The number of the step.
    pub number: i64,
    /// Its annotation on the CPU side.
    pub event: EventId,
    /// Its period, from completion to completion.
    pub window: (i64, i64),
}

/// Finds the window of a choice.
///
/// # Errors
///
/// When the trace has no such step, annotation or work.
pub fn window(tables: &Tables, launches: &Launches, choice: &Choice) -> Result<Window> {
    match choice {
        Choice::Whole => whole(tables).ok_or_else(|| {
            missing("the trace has no work on a main thread or a device".to_owned())
        }),
        Choice::Step(number, end) => step(tables, launches, *number, *end),
        Choice::Annotation(name, instance, end) => {
            annotation(tables, launches, name, *instance, *end)
        }
        Choice::Between(start_ns, end_ns) => between(tables, *start_ns, *end_ns),
    }
}

fn missing(what: String) -> Error {
    Error::new(ErrorKind::NoWindow(what), 0)
}

/// All work of main threads and devices. Other threads never end a trace: watchdogs
/// sleep longest.
pub fn whole(tables: &Tables) -> Option<Window> {
    let works = leading_work(tables);
    let first = works.iter().copied().min_by(|&one, &two| by_content(one, two, tables))?;
    Some(Window::new(tables, works, Opening::Start(first)))
}

/// The steps with their periods, in order of time. Those of consecutive steps tile
/// the run.
pub fn steps(tables: &Tables, launches: &Launches) -> Vec<StepWindow> {
    let steps = link::steps(tables);
    let submissions = Submissions::of(tables, launches);
    steps
        .iter()
        .map(|step| {
            let ends = submissions.ends(step.event, WindowEnd::Last, tables);
            let before = before(step, &steps, tables);
            let opening = before.map_or(Opening::Start(step.event), |before| {
                Opening::Ends(submissions.ends(before.event, WindowEnd::Last, tables))
            });
            let window = Window::new(tables, ends, opening);
            StepWindow {
                number: step.number,
                event: step.event,
                window: (window.start_ns, window.end_ns),
            }
        })
        .collect()
}

fn step(tables: &Tables, launches: &Launches, number: i64, end: WindowEnd) -> Result<Window> {
    let steps = link::steps(tables);
    let found = first_numbered(&steps, number, tables);
    let step = found.ok_or_else(|| missing(no_step(number, &steps)))?;
    let submissions = Submissions::of(tables, launches);
    match before(step, &steps, tables).filter(|_| end == WindowEnd::Period) {
        Some(before) => {
            let opening = Opening::Ends(submissions.ends(before.event, WindowEnd::Last, tables));
            Ok(Window::new(tables, submissions.ends(step.event, WindowEnd::Last, tables), opening))
        }
        None => submissions.window(step.event, end, tables),
    }
}

fn no_step(number: i64, steps: &[Step]) -> String {
    let mut numbers: Vec<_> = steps.iter().map(|step| step.number).collect();
    numbers.sort_unstable();
    match (numbers.first(), numbers.last()) {
        (Some(only), Some(last)) if only == last => {
            format!("the trace has no step {number}; its only step is {only}")
        }
        (Some(first), Some(last)) => {
            format!("the trace has no step {number}; its steps go from {first} to {last}")
        }
        _ => format!("the trace has no step {number}, nor any other"),
    }
}

/// Several processes may have a step of that number: the first in content order.
fn first_numbered<'s>(steps: &'s [Step], number: i64, tables: &Tables) -> Option<&'s Step> {
    let numbered = steps.iter().filter(|step| step.number == number);
    numbered.min_by(|one, two| by_content(one.event, two.event, tables))
}

fn before<'s>(step: &Step, steps: &'s [Step], tables: &Tables) -> Option<&'s Step> {
    let process = |step: &Step| process_of(step.event, tables);
    let is_before = |other: &&Step| {
        Some(other.number) == step.number.checked_sub(1) && process(other) == process(step)
    };
    let candidates = steps.iter().filter(is_before);
    candidates.min_by(|one, two| by_content(one.event, two.event, tables))
}

fn annotation(
    tables: &Tables,
    launches: &Launches,
    name: &str,
    instance: usize,
    end: WindowEnd,
) -> Result<Window> {
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
    let span = *found.get(instance).ok_or_else(|| {
        missing(match found.len() {
            0 => format!("the trace has no annotation {name:?}"),
            1 => format!("the trace has one annotation {name:?}, numbered 0, and none {instance}"),
            count => {
                format!("the trace has {count} annotations {name:?}, none numbered {instance}")
            }
        })
    })?;
    Submissions::of(tables, launches).window(span, end, tables)
}

fn between(tables: &Tables, start_ns: i64, end_ns: i64) -> Result<Window> {
    let (start_ns, end_ns) = in_range((start_ns, end_ns));
    let events = &tables.events;
    let works = leading_work(tables);
    let overlaps = |event: &EventId| {
        events.span(*event).is_some_and(|(start, end)| start < end_ns && end > start_ns)
    };
    let mut candidates: Vec<_> = works.iter().copied().filter(overlaps).collect();
    let lasts = |event: &EventId| events.end_ns(*event).is_some_and(|end| end >= end_ns);
    if !candidates.iter().any(lasts) {
        candidates.extend(next_on_main_thread(tables, &works, end_ns));
    }
    if candidates.is_empty() {
        return Err(missing(format!("the trace has no work between {start_ns} and {end_ns} ns")));
    }
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
    fn new(tables: &Tables, candidates: Vec<EventId>, opening: Opening) -> Self {
        let events = &tables.events;
        let last_end = |of: &[EventId]| of.iter().filter_map(|&event| events.end_ns(event)).max();
        let start_ns = match &opening {
            Opening::Start(event) => events.start_ns(*event),
            Opening::Ends(ends) => last_end(ends).unwrap_or(i64::MIN),
            Opening::Time => i64::MIN,
        };
        let end_ns = last_end(&candidates).unwrap_or(start_ns).max(start_ns);
        Self { start_ns, end_ns, candidates, opening }
    }
}

fn process_of(event: EventId, tables: &Tables) -> StringId {
    tables.lanes.place(tables.events.lane(event)).process
}

/// The device work that each process submitted, in order of submission.
struct Submissions {
    of_process: BTreeMap<StringId, Vec<(i64, EventId)>>,
}

impl Submissions {
    fn of(tables: &Tables, launches: &Launches) -> Self {
        let events = &tables.events;
        let mut of_process: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
            let call = launches.launcher(work).filter(|&call| events.end_ns(call).is_some());
            if let (Some(call), Some(_)) = (call, events.end_ns(work)) {
                let submitted = (events.start_ns(call), work);
                of_process.entry(process_of(call, tables)).or_default().push(submitted);
            }
        }
        for works in of_process.values_mut() {
            works.sort();
        }
        Self { of_process }
    }

    /// The window of an annotation.
    fn window(&self, span: EventId, end: WindowEnd, tables: &Tables) -> Result<Window> {
        let ends = self.ends(span, end, tables);
        if ends.is_empty() {
            return Err(missing("no device work was launched in that window".to_owned()));
        }
        Ok(Window::new(tables, ends, Opening::Start(span)))
    }

    /// What completes an annotation: its own end, and the device work launched in it.
    fn ends(&self, span: EventId, end: WindowEnd, tables: &Tables) -> Vec<EventId> {
        let works = self.of_process.get(&process_of(span, tables)).map_or(&[][..], Vec::as_slice);
        let events = &tables.events;
        let end_ns = events.end_ns(span).unwrap_or(i64::MIN);
        let first = works.partition_point(|&(submitted, _)| submitted < events.start_ns(span));
        let behind = works.partition_point(|&(submitted, _)| submitted < end_ns).max(first);
        let own = (end != WindowEnd::Gpu).then_some(span);
        let launched = if end == WindowEnd::Cpu { &[] } else { &works[first..behind] };
        own.into_iter().chain(launched.iter().map(|&(_, work)| work)).collect()
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
        window(&tables, &launches, choice).map(|window| (window.start_ns, window.end_ns))
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
        let windows: Vec<_> = steps(&tables, &launches).iter().map(|step| step.window).collect();
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
        let windows: Vec<_> = steps(&tables, &launches).iter().map(|step| step.window).collect();
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
