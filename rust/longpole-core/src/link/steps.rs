//! Finds the iterations of the program by their `ProfilerStep#N` annotations.
//!
//! Each annotation is recorded on a thread and again on the device; only the one on the thread
//! counts. Programs that do not call `prof.step()` have none; `path::windows` finds other marks for
//! them.

use crate::ids::EventId;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::step_number;

/// One iteration of the training or inference loop, marked by `ProfilerStep#N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The `N`.
    pub number: i64,
    /// The annotation on the host.
    pub event: EventId,
}

/// Returns the steps of the trace, in order of time.
///
/// Only annotations on threads count: the profiler repeats each step on the streams of the device.
pub fn steps(tables: &Tables) -> Vec<Step> {
    let numbers: Vec<_> = tables.strings.iter().map(step_number).collect();
    let events = &tables.events;
    let mut steps: Vec<_> = events
        .ids()
        .filter(|&event| {
            events.kind(event) == EventKind::Annotation && events.end_ns(event).is_some()
        })
        .filter_map(|event| Some(Step { number: numbers[events.name(event)?.row()]?, event }))
        .collect();
    steps.sort_by_key(|step| {
        (events.start_ns(step.event), step.number, events.end_ns(step.event), step.event)
    });
    steps
}
