//! Windows chosen by the caller: the whole trace, a step, an annotation, two times.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::completion::Submissions;
use super::model::{Moment, Opening, Window, WindowEnd};
use super::steps::{Marked, Steps};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, LaneId};
use crate::link::{self, Launches};
use crate::tables::{EventKind, Tables, by_content};
use crate::time::in_range;
use crate::vocabulary::{ApiRole, Waiting};

fn missing(what: String) -> Error {
    Error::new(ErrorKind::NoWindow(what), 0)
}

/// Returns the window of all events of main threads and devices. Other threads never end a trace,
/// because watchdog threads sleep longest. Calls that unload code when the program exits do not end
/// it either. If only annotations were recorded, they are the trace.
///
/// # Errors
///
/// Returns an error if the trace has no such events.
pub fn whole(tables: &Tables) -> Result<Window> {
    let mut works = work_or_annotations(tables);
    if let Some(exit) = exit(&works, tables) {
        works.retain(|work| !exit.contains(work));
    }
    let first = works.iter().copied().min_by(|&one, &two| by_content(one, two, tables));
    let first = first.ok_or_else(|| {
        missing("the trace has no annotation, and no work on a main thread or a device".to_owned())
    })?;
    let ends = works.into_iter().map(Moment::End).collect();
    Ok(Window::new(tables, ends, Opening::Moments(vec![Moment::Start(first)])))
}

/// Returns the calls at the exit of a program: all that unload code, free memory or destroy
/// something after the last other event of devices and main threads. `None` if no code is unloaded.
fn exit(works: &[EventId], tables: &Tables) -> Option<BTreeSet<EventId>> {
    let (events, roles) = (&tables.events, tables.roles());
    if !roles.contains(&ApiRole::UnloadModule) {
        return None;
    }
    let role = |call: EventId| events.name(call).map(|name| roles[name.row()]);
    let ends_something = |&call: &EventId| {
        let is_destroyed =
            || events.name(call).is_some_and(|name| tables.strings.get(name).contains("Destroy"));
        events.kind(call).is_call()
            && (matches!(role(call), Some(ApiRole::UnloadModule | ApiRole::Free)) || is_destroyed())
    };
    let others = works.iter().filter(|call| !ends_something(call));
    let last_ns = others.filter_map(|&work| events.end_ns(work)).max()?;
    let follows = |call: &EventId| ends_something(call) && events.start_ns(*call) >= last_ns;
    let found: BTreeSet<_> = works.iter().copied().filter(follows).collect();
    let unloads = |&call: &EventId| role(call) == Some(ApiRole::UnloadModule);
    let has_device_work = works.iter().any(|&work| events.kind(work).is_device_work());
    (has_device_work && found.iter().any(unloads)).then_some(found)
}

/// Returns the number of calls that unload code and free memory at the end of a trace, after
/// everything else, and their time range; `None` without such an end.
pub(super) fn exit_calls(tables: &Tables) -> Option<(usize, (i64, i64))> {
    let calls = exit(&leading_work(tables), tables)?;
    let spans = || calls.iter().filter_map(|&call| tables.events.span(call));
    let start_ns = spans().map(|(start_ns, _)| start_ns).min()?;
    let end_ns = spans().map(|(_, end_ns)| end_ns).max()?;
    Some((calls.len(), (start_ns, end_ns)))
}

/// Returns the window of a step, and the index of that step.
pub(super) fn step(
    tables: &Tables,
    launches: &Launches,
    found: &Steps,
    number: i64,
    end: WindowEnd,
) -> Result<(Window, usize)> {
    let row = found.numbered(number, tables).ok_or_else(|| missing(no_step(number, found)))?;
    let step = &found.rows[row];
    let submissions = Submissions::of(tables, launches);
    let moments = match (end, found.marked) {
        (WindowEnd::Period, _) => return Ok((step.period.clone(), row)),
        (_, Marked::Profiler) => submissions.of_annotation(step.event, end, tables),
        (WindowEnd::Last, _) => step.period.candidates.clone(),
        (WindowEnd::Cpu, _) => step.period.candidates[..1].to_vec(),
        (WindowEnd::Gpu, _) => step.period.candidates[1..].to_vec(),
    };
    opened_by(step.start(), moments, tables).map(|window| (window, row))
}

fn opened_by(start: Moment, moments: Vec<Moment>, tables: &Tables) -> Result<Window> {
    if moments.is_empty() {
        return Err(missing("no GPU activity was launched in that window".to_owned()));
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
        None => format!("the trace has no step {number}; it has no steps"),
    }
}

pub(super) fn annotation(tables: &Tables, name: &str, instance: usize) -> Result<EventId> {
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
            0 => format!("the trace has no annotation {name:?}{}", others(tables)),
            1 => format!("the trace has one annotation {name:?}, numbered 0, and none {instance}"),
            count => {
                format!("the trace has {count} annotations {name:?}, none numbered {instance}")
            }
        })
    })
}

/// Maximum number of annotation names in a suggestion, and the maximum length of each.
const MOST_OFFERED: usize = 8;
const LONGEST_OFFERED: usize = 60;

/// Returns the annotations of the trace, most frequent first.
fn others(tables: &Tables) -> String {
    let events = &tables.events;
    let mut counts = vec![0_usize; tables.strings.len()];
    let is_annotation = |event: &EventId| {
        events.kind(*event) == EventKind::Annotation && events.end_ns(*event).is_some()
    };
    for name in events.ids().filter(is_annotation).filter_map(|event| events.name(event)) {
        counts[name.row()] += 1;
    }
    let mut names: Vec<_> =
        tables.strings.iter().zip(counts).filter(|(_, count)| *count > 0).collect();
    names.sort_unstable_by_key(|&(name, count)| (Reverse(count), name));
    if names.is_empty() {
        return "; it has no annotations".to_owned();
    }
    let name = |&(name, count): &(&str, usize)| {
        let short: String = name.chars().take(LONGEST_OFFERED).collect();
        let cut = if short.len() < name.len() { "…" } else { "" };
        format!("\"{}{cut}\" ({count})", short.escape_debug())
    };
    let offered: Vec<_> = names.iter().take(MOST_OFFERED).map(name).collect();
    let more = match names.len() - offered.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; there are {}{more}", offered.join(", "))
}

/// Returns the window of an annotation.
pub(super) fn annotated(
    tables: &Tables,
    launches: &Launches,
    annotation: EventId,
    end: WindowEnd,
) -> Result<Window> {
    let moments = Submissions::of(tables, launches).of_annotation(annotation, end, tables);
    opened_by(Moment::Start(annotation), moments, tables)
}

pub(super) fn between(tables: &Tables, start_ns: i64, end_ns: i64) -> Result<Window> {
    let (start_ns, end_ns) = in_range((start_ns, end_ns));
    let events = &tables.events;
    let works = work_or_annotations(tables);
    let overlaps = |event: &EventId| {
        events.span(*event).is_some_and(|(start, end)| start < end_ns && end > start_ns)
    };
    let mut last: Vec<_> = works.iter().copied().filter(overlaps).collect();
    let lasts = |event: &EventId| events.end_ns(*event).is_some_and(|end| end >= end_ns);
    if !last.iter().any(lasts) {
        last.extend(next_on_main_thread(tables, &works, end_ns));
    }
    if last.is_empty() {
        return Err(missing(no_work((start_ns, end_ns), &works, tables)));
    }
    if last.iter().any(|&event| events.kind(event).is_device_work() && lasts(&event)) {
        let waiting = waiting_lanes(tables, &last, end_ns);
        last.retain(|&event| !lasts(&event) || !waiting.contains(&events.lane(event)));
    }
    let candidates = last.into_iter().map(Moment::End).collect();
    Ok(Window { start_ns, end_ns, candidates, opening: Opening::Time })
}

/// Returns the threads that wait for a device at a time. They do not end a window that ends while
/// the device works: what is left of the wait follows the device.
fn waiting_lanes(tables: &Tables, works: &[EventId], at_ns: i64) -> BTreeSet<LaneId> {
    let (events, roles) = (&tables.events, tables.roles());
    let waits = |call: &EventId| {
        let role = events.name(*call).map(|name| roles[name.row()]);
        let is_over = events.end_ns(*call).is_none_or(|end_ns| end_ns <= at_ns);
        events.kind(*call).is_call()
            && !is_over
            && role.is_some_and(|role| role.waiting() == Waiting::Always)
    };
    works.iter().filter(|call| waits(call)).map(|&call| events.lane(call)).collect()
}

fn no_work((start_ns, end_ns): (i64, i64), works: &[EventId], tables: &Tables) -> String {
    let none = format!("the trace has no work between {start_ns} and {end_ns} ns");
    let first_ns = works.iter().map(|&event| tables.events.start_ns(event)).min();
    let last_ns = works.iter().filter_map(|&event| tables.events.end_ns(event)).max();
    match (first_ns, last_ns) {
        (Some(first), Some(last)) => format!("{none}; its work goes from {first} to {last} ns"),
        _ => none,
    }
}

/// Returns the first event that a main thread begins at or after a time, if it was active before:
/// the path to it covers the time until then.
fn next_on_main_thread(tables: &Tables, works: &[EventId], at_ns: i64) -> Option<EventId> {
    let events = &tables.events;
    let on_thread = || works.iter().filter(|&&event| !events.kind(event).is_device_work());
    let began = on_thread().filter(|&&event| events.start_ns(event) < at_ns);
    let busy: BTreeSet<_> = began.map(|&event| events.lane(event)).collect();
    let next = on_thread()
        .filter(|&&event| events.start_ns(event) >= at_ns && busy.contains(&events.lane(event)));
    next.copied().min_by(|&one, &two| by_content(one, two, tables))
}

/// Returns the events of devices and main threads; if only annotations were recorded, these.
fn work_or_annotations(tables: &Tables) -> Vec<EventId> {
    let works = leading_work(tables);
    if works.is_empty() { annotations(tables) } else { works }
}

fn annotations(tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let is_range = |&event: &EventId| {
        events.kind(event) == EventKind::Annotation && events.end_ns(event).is_some()
    };
    events.ids().filter(is_range).collect()
}

/// Returns the events of devices and main threads. Events with neither a time nor a duration are
/// left out: the profiler had no timestamps for them, and they would start the window in 1970.
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
