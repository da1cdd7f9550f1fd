//! Gives the events of an XProf profile their kinds, streams and devices.
//!
//! Neither the trace viewer's JSON nor `xplane.pb` has categories: the names of planes and lines,
//! which may stand behind the events, say what they are. So this is done once, when all events
//! are known:
//!
//! | plane | line | events become |
//! |---|---|---|
//! | `/device:GPU:0` | `Stream #14(Compute)` | kernels, memcpys and memsets on the stream |
//! | `/device:TPU:0` | `XLA Ops` | kernels; those that enclose others (loops) are derived |
//! | `/device:GPU:0` | `XLA Ops` | derived where the device has streams |
//! | `/device:...` | `Steps`, `XLA Modules`, `Framework Ops`, ... | derived |
//! | `/host:...` | threads | runtime API calls, Python functions, steps, operators |
//!
//! A step is an event of a thread with the argument `step_num`, which `StepTraceAnnotation` gives
//! it, that lies in no other one. It is named `ProfilerStep#N`, as steps of every profiler are.
//!
//! Limits: events with a category, which XProf does not write, stay as they are. A line of a device that is not known is no work, and counted. User annotations
//! cannot be told from those of the framework: both are operators.

mod details;
mod planes;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::ids::{EventId, LaneId};
use crate::read::column::integer;
use crate::read::profile::Profile;
use crate::tables::{EventTable, Place};
use crate::vocabulary::{EventKind, Line, Plane, xprof_activity, xprof_host_event};
use planes::Planes;

/// Interprets the events of an XProf profile; gives how many stand on a line of a device that is
/// not known. None for other traces, which stay as they are.
pub(super) fn interpret(mut profile: Profile<'_>) -> Option<u64> {
    let profile = &mut profile;
    let planes = Planes::of(profile.metadata, profile.strings)?;
    profile.events.reopen_lanes();
    let (mut n_unknown, mut operations) = (0, BTreeMap::new());
    for event in profile.events.ids() {
        let has_category = profile.events.category(event).is_some();
        if has_category || profile.events.kind(event) == EventKind::Instant {
            continue;
        }
        let place = profile.lanes.place(profile.events.lane(event));
        match planes.of_process(place.process) {
            Some(Plane::Host) => host(event, profile),
            Some(Plane::Device(device)) => {
                let line = planes.line(place);
                n_unknown += u64::from(line == Line::Unknown);
                let on_lane = on_device(event, line, Place { device, ..place }, profile);
                if line == Line::Operations {
                    operations.entry(on_lane).or_insert_with(Vec::new).push(event);
                }
            }
            None => {}
        }
    }
    for events in operations.into_values() {
        derive_enclosing(events, profile.events);
    }
    name_steps(profile);
    profile.events.finish();
    details::add(profile);
    Some(n_unknown)
}

fn on_device(event: EventId, line: Line, place: Place, profile: &mut Profile<'_>) -> LaneId {
    let name = name(event, profile);
    let kind = match line {
        Line::Stream(_) => xprof_activity(name),
        Line::Operations => EventKind::Kernel,
        Line::Repeated => EventKind::Derived,
        Line::Unknown => EventKind::DeviceTask,
    };
    let stream = if let Line::Stream(number) = line { Some(number) } else { None };
    let on_lane = profile.lanes.intern(Place { stream, ..place });
    profile.events.assign_kind(event, kind);
    profile.events.assign_lane(event, on_lane);
    on_lane
}

fn host(event: EventId, profile: &mut Profile<'_>) {
    let name = name(event, profile);
    let role = profile.vocabulary.role(name);
    let has_correlation = profile.events.correlation(event).is_some_and(|number| number != 0);
    profile.events.assign_kind(event, xprof_host_event(name, has_correlation, role));
}

fn name<'a>(event: EventId, profile: &'a Profile<'_>) -> &'a str {
    profile.events.name(event).map_or("", |name| profile.strings.get(name))
}

/// Of operations that lie within one another only the innermost are work: the others are loops,
/// branches and calls around them.
fn derive_enclosing(mut operations: Vec<EventId>, events: &mut EventTable) {
    operations.retain(|&event| events.end_ns(event).is_some());
    operations.sort_by_key(|&event| (events.start_ns(event), Reverse(events.end_ns(event)), event));
    let mut open: Vec<EventId> = Vec::new();
    for &event in &operations {
        let (start_ns, end_ns) = (events.start_ns(event), events.end_ns(event));
        while open.pop_if(|outer| events.end_ns(*outer) <= Some(start_ns)).is_some() {}
        if let Some(&outer) = open.last().filter(|&&outer| end_ns <= events.end_ns(outer)) {
            events.assign_kind(outer, EventKind::Derived);
        }
        open.push(event);
    }
}

/// Makes steps of the events of threads that have a number of one.
fn name_steps(profile: &mut Profile<'_>) {
    let steps: Vec<_> = numbered_steps(profile);
    if steps.is_empty() {
        return;
    }
    profile.events.reopen_names();
    for (event, number) in steps {
        let name = profile.strings.intern(&format!("ProfilerStep#{number}"));
        profile.events.assign_kind(event, EventKind::Annotation);
        profile.events.assign_name(event, name);
    }
}

/// Events of threads with the number of a step, without those inside another one: a part of a step
/// may have its number, too.
fn numbered_steps(profile: &Profile<'_>) -> Vec<(EventId, i64)> {
    let Some(table) = profile.args.of(None) else { return Vec::new() };
    let Some(column) = table.column("step_num") else { return Vec::new() };
    let events = &profile.events;
    let is_host = |event: EventId| events.kind(event) == EventKind::Operator;
    let mut steps: Vec<_> = table
        .events()
        .zip(column.values.iter())
        .filter(|&(event, _)| is_host(event))
        .filter_map(|(event, value)| Some((event, integer(value?, profile.strings)?)))
        .collect();
    steps.sort_by_key(|&(event, _)| {
        (events.lane(event), events.start_ns(event), Reverse(events.end_ns(event)), event)
    });
    let mut around: Option<EventId> = None;
    steps.retain(|&(event, _)| {
        let is_inside = around.is_some_and(|outer| {
            events.lane(outer) == events.lane(event) && events.end_ns(event) <= events.end_ns(outer)
        });
        around = if is_inside { around } else { Some(event) };
        !is_inside
    });
    steps
}
