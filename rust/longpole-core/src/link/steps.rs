//! Finds the iterations of the program by their `ProfilerStep#N` annotations.
//!
//! The annotation stands on a thread and once more on the device; only the one of the thread counts.
//! Programs that do not call `prof.step()` have none; see `path::windows` for what marks them then.

use crate::ids::EventId;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::step_number;

/// One iteration of the training or inference loop, as `ProfilerStep#N` marks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The `N`.
    pub number: i64,
    /// The annotation on the CPU side.
    pub event: EventId,
}

/// The steps of the trace, in order of time.
///
/// Only annotations of a thread count: the profiler draws each step again on
/// the streams of the device.
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
