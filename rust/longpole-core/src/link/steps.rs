use crate::ids::EventId;
use crate::tables::{EventKind, Tables};

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

fn step_number(name: &str) -> Option<i64> {
    name.strip_prefix("ProfilerStep")?.trim_start().strip_prefix('#')?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_known_by_its_number() {
        assert_eq!(step_number("ProfilerStep#12"), Some(12));
        assert_eq!(step_number("ProfilerStep # 3"), Some(3));
        for other in ["ProfilerStep", "ProfilerStep#x", "step#1", "ProfilerStep#1.5"] {
            assert_eq!(step_number(other), None);
        }
    }
}
