use crate::ids::EventId;
use crate::link::{self, Launches, Step};
use crate::tables::{EventKind, Tables};

/// A step and the span in which its work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepWindow {
    /// The number of the step.
    pub number: i64,
    /// Its annotation on the CPU side.
    pub event: EventId,
    /// From the completion of the step before, where that is in the trace, else
    /// from the start of the annotation; to its own completion.
    pub window: (i64, i64),
}

/// The steps with their windows, in order of time.
///
/// A step is complete when its annotation and all device work launched inside
/// it by the same process have ended. Windows run from completion to completion,
/// so that those of consecutive steps tile the run.
pub fn steps(tables: &Tables, launches: &Launches) -> Vec<StepWindow> {
    let steps = link::steps(tables);
    let completions = completions(tables, launches, &steps);
    let events = &tables.events;
    let process = |step: &Step| tables.lanes.place(events.lane(step.event)).process;
    steps
        .iter()
        .zip(&completions)
        .map(|(step, &end)| {
            let before = steps.iter().position(|other| {
                other.number + 1 == step.number && process(other) == process(step)
            });
            let start = before.map_or(events.start_ns(step.event), |before| completions[before]);
            StepWindow { number: step.number, event: step.event, window: (start.min(end), end) }
        })
        .collect()
}

/// When each step was complete.
fn completions(tables: &Tables, launches: &Launches, steps: &[Step]) -> Vec<i64> {
    let events = &tables.events;
    let mut ends: Vec<_> =
        steps.iter().map(|step| events.end_ns(step.event).unwrap_or(i64::MIN)).collect();
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        let (Some(call), Some(end)) = (launches.launcher(work), events.end_ns(work)) else { continue };
        let submitted = events.start_ns(call);
        let process = tables.lanes.place(events.lane(call)).process;
        // Steps stand in order of time; the last that began before the call is the one, if any.
        let behind = steps.partition_point(|step| events.start_ns(step.event) <= submitted);
        let step = steps[..behind].iter().rposition(|step| {
            tables.lanes.place(events.lane(step.event)).process == process
        });
        if let Some(step) = step {
            if events.end_ns(steps[step].event).is_some_and(|end| submitted < end) {
                ends[step] = ends[step].max(end);
            }
        }
    }
    ends
}

/// From the first start to the last end of everything with a duration on a
/// thread or a device. Work with time 0, for which the profiler had no time, and
/// the frame that it draws around all are left out.
pub fn whole_window(tables: &Tables) -> Option<(i64, i64)> {
    let events = &tables.events;
    events
        .ids()
        .filter(|&event| {
            let kind = events.kind(event);
            let untimed = events.start_ns(event) == 0 && kind.is_on_device();
            (kind.is_on_thread() || kind.is_device_work()) && !untimed && kind != EventKind::Span
        })
        .filter_map(|event| events.span(event))
        .reduce(|(start, end), (from, to)| (start.min(from), end.max(to)))
}
