//! Assigns kinds, streams and devices to the events of an XProf profile.
//!
//! Neither the trace viewer's JSON nor `xplane.pb` has categories. The names of planes and lines,
//! which may come after the events, identify them. The events are therefore interpreted once all of
//! them are known:
//!
//! | plane | line | events become |
//! |---|---|---|
//! | `/device:GPU:0` | `Stream #14(Compute)` | kernels, memcpys and memsets on the stream |
//! | `/device:TPU:0` | `XLA Ops` | kernels; those that enclose others (loops) are derived |
//! | `/device:GPU:0` | `XLA Ops` | derived if the device has streams |
//! | `/device:...` | `Steps`, `XLA Modules`, `Framework Ops`, ... | derived |
//! | `/host:...` | threads | runtime API calls, Python functions, steps, operators |
//!
//! A step is an event of a thread with the argument `step_num`, set by `StepTraceAnnotation`, that
//! is not inside another one. It is named `ProfilerStep#N`, like the steps of other profilers.
//!
//! Limits: events with a category, which XProf does not write, stay unchanged. Events on an unknown
//! line of a device do not count as GPU activities, and are counted. User annotations cannot be
//! distinguished from those of the framework: both are operators.

mod details;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::profile::integer;
use crate::ids::{EventId, LaneId};
use crate::read::profile::Profile;
use crate::strings::Strings;
use crate::tables::{EventTable, LaneTable, Place};
use crate::vocabulary::{EventKind, Line, Plane, xprof_activity, xprof_host_event};
use details::Planes;

/// Interprets the events of an XProf profile. Returns the number of events on unknown device lines;
/// `None` for other traces, which stay unchanged.
pub(super) fn interpret(mut profile: Profile<'_>) -> Option<u64> {
    let profile = &mut profile;
    let planes = Planes::of(profile.metadata, profile.strings)?;
    profile.events.reopen_lanes();
    let (mut n_unknown, mut operations) = (0, BTreeMap::new());
    let mut tracks = vec![None; profile.lanes.len()];
    let mut host_kinds = HostKinds::of(profile.strings);
    for event in profile.events.ids() {
        let has_category = profile.events.category(event).is_some();
        if has_category || profile.events.kind(event) == EventKind::Instant {
            continue;
        }
        let lane = profile.events.lane(event);
        let track = tracks[lane.row()].get_or_insert_with(|| track(lane, &planes, profile.lanes));
        match *track {
            Track::Host => {
                let kind = host_kinds.kind(event, profile);
                profile.events.assign_kind(event, kind);
            }
            Track::Device { line, target } => {
                n_unknown += u64::from(line == Line::Unknown);
                on_device(event, line, target, profile);
                if line == Line::Operations {
                    operations.entry(target).or_insert_with(Vec::new).push(event);
                }
            }
            Track::Other => {}
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

/// The content of a track.
#[derive(Clone, Copy)]
enum Track {
    Host,
    /// A line of a device, and the lane of its events.
    Device {
        line: Line,
        target: LaneId,
    },
    Other,
}

fn track(id: LaneId, planes: &Planes, lanes: &mut LaneTable) -> Track {
    let place = lanes.place(id);
    match planes.of_process(place.process) {
        Some(Plane::Host) => Track::Host,
        Some(Plane::Device(device)) => {
            let line = planes.line(place);
            let stream = if let Line::Stream(number) = line { Some(number) } else { None };
            Track::Device { line, target: lanes.intern(Place { device, stream, ..place }) }
        }
        None => Track::Other,
    }
}

fn on_device(event: EventId, line: Line, target: LaneId, profile: &mut Profile<'_>) {
    let kind = match line {
        Line::Stream(_) => xprof_activity(name(event, profile)),
        Line::Operations => EventKind::Kernel,
        Line::Repeated => EventKind::Derived,
        Line::Unknown => EventKind::DeviceTask,
    };
    profile.events.assign_kind(event, kind);
    profile.events.assign_lane(event, target);
}

/// The kinds of thread events by name, each determined once: without a correlation id, and with
/// one.
struct HostKinds([Vec<Option<EventKind>>; 2]);

impl HostKinds {
    fn of(strings: &Strings) -> Self {
        Self([vec![None; strings.len()], vec![None; strings.len()]])
    }

    fn kind(&mut self, event: EventId, profile: &Profile<'_>) -> EventKind {
        let has_correlation = profile.events.correlation(event).is_some_and(|number| number != 0);
        let of_name = |name| xprof_host_event(name, has_correlation, profile.vocabulary.role(name));
        let Some(id) = profile.events.name(event) else { return of_name("") };
        let known = &mut self.0[usize::from(has_correlation)][id.row()];
        *known.get_or_insert_with(|| of_name(profile.strings.get(id)))
    }
}

fn name<'a>(event: EventId, profile: &'a Profile<'_>) -> &'a str {
    profile.events.name(event).map_or("", |name| profile.strings.get(name))
}

/// Of nested operations, only the innermost are GPU activities; the others are loops, branches and
/// calls around them.
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

/// Turns the thread events with a step number into steps.
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

/// Returns thread events with a step number, without those inside another one, because a part of a
/// step may have its number too.
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
