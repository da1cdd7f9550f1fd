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
    let mut completions: Vec<_> =
        steps.iter().map(|step| events.end_ns(step.event).unwrap_or(i64::MIN)).collect();
    let ends = completions.clone();
    let reaches = running_maximum(&ends);
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        let (Some(call), Some(end)) = (launches.launcher(work), events.end_ns(work)) else {
            continue;
        };
        let submitted = events.start_ns(call);
        let process = |event| tables.lanes.place(events.lane(event)).process;
        // Steps stand in order of time. Those that began before the call, from the last
        // back until none before reaches it: one, unless the program nests its steps.
        let behind = steps.partition_point(|step| events.start_ns(step.event) <= submitted);
        for step in (0..behind).rev().take_while(|&step| submitted < reaches[step]) {
            if submitted < ends[step] && process(steps[step].event) == process(call) {
                completions[step] = completions[step].max(end);
            }
        }
    }
    completions
}

/// The largest of the values up to each.
fn running_maximum(values: &[i64]) -> Vec<i64> {
    let mut largest = i64::MIN;
    values
        .iter()
        .map(|&value| {
            largest = largest.max(value);
            largest
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{read_bytes, Options};

    /// The windows, in us, of steps `(number, start, end)` with one call at 5 us whose
    /// kernel ends at 90 us.
    fn windows(rows: &[(i64, i64, i64)]) -> Vec<(i64, i64)> {
        let mut events = vec![
            r#"{"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":5,"dur":1,"args":{"correlation":1}}"#
                .to_owned(),
            r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":80,"dur":10,"args":{"correlation":1}}"#
                .to_owned(),
        ];
        events.extend(rows.iter().map(|(number, start, end)| {
            format!(
                r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,
                "ts":{start},"dur":{}}}"#,
                end - start
            )
        }));
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let micros = |(start, end)| (start / 1000, end / 1000);
        steps(&tables, &launches).iter().map(|step| micros(step.window)).collect()
    }

    #[test]
    fn a_step_lasts_until_its_kernels_and_the_next_begins_there() {
        assert_eq!(windows(&[(1, 0, 10), (2, 10, 120)]), [(0, 90), (90, 120)]);
    }

    #[test]
    fn what_is_launched_inside_two_steps_completes_both() {
        assert_eq!(windows(&[(1, 0, 20), (7, 4, 10)]), [(0, 90), (4, 90)]);
    }
}
