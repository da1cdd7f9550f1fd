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

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::profile::integer;
use crate::ids::{EventId, LaneId, StringId};
use crate::read::profile::{Profile, statements, text};
use crate::strings::Strings;
use crate::tables::{ArgValue, EventTable, LaneTable, MetadataTable, Place, Values};
use crate::vocabulary::{EventKind, Line, Plane, xprof_activity, xprof_detail, xprof_host_event};

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
    add(profile);
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

// Splits the details that XProf stores as one string per GPU activity into separate arguments.
//
// | argument | from |
// |---|---|
// | `bytes`, `src kind`, `dst kind` | `memcpy_details`: `kind_src:pageable kind_dst:device size:64 ...` |
// | `bytes` | `Memset_details` |
// | `grid`, `block`, `registers per thread`, `shared memory` | `kernel_details`: `regs:32 ... grid:1,1,1` |

/// A new argument: its name, and how it is extracted from the strings of a memcpy, memset or
/// kernel.
type Rule = (&'static str, fn([&str; 3], &mut Strings) -> Option<ArgValue>);

const DETAILS: [&str; 3] = ["memcpy_details", "Memset_details", "kernel_details"];

const RULES: &[Rule] = &[
    ("bytes", |[copy, fill, _], _| {
        number(copy, "size").or_else(|| number(fill, "size")).or_else(|| number(fill, "num_bytes"))
    }),
    ("src kind", |[copy, ..], strings| word(copy, "kind_src", strings)),
    ("dst kind", |[copy, ..], strings| word(copy, "kind_dst", strings)),
    ("grid", |[.., kernel], strings| list(kernel, "grid", strings)),
    ("block", |[.., kernel], strings| list(kernel, "block", strings)),
    ("registers per thread", |[.., kernel], _| number(kernel, "regs")),
    ("shared memory", |[.., kernel], _| shared_memory(kernel)),
];

/// The strings of an activity: of a memcpy, a memset and a kernel.
type Texts = [Option<StringId>; 3];

/// Adds the arguments to GPU activities with such a string. Most strings repeat, and each distinct
/// one is parsed once.
pub(super) fn add(profile: &mut Profile<'_>) {
    let rows = rows(profile);
    let n_rows = profile.args.of(None).map_or(0, |table| table.event.len());
    let mut known: HashMap<Texts, Vec<Option<ArgValue>>> = HashMap::new();
    let mut made: Vec<Option<Values>> = vec![None; RULES.len()];
    for (row, texts) in rows {
        let strings = &mut *profile.strings;
        let values = known.entry(texts).or_insert_with(|| taken_apart(texts, strings));
        for (column, value) in made.iter_mut().zip(values) {
            let Some(value) = *value else { continue };
            column.get_or_insert_with(|| Values::like(value)).put(row, value, strings);
        }
    }
    for (&(key, _), values) in RULES.iter().zip(made) {
        if let Some(values) = values {
            profile.args.of_mut(None).add_column(key, values.padded(n_rows));
        }
    }
}

/// Returns the rows of the arguments of GPU activities, with their strings.
fn rows(profile: &Profile<'_>) -> Vec<(usize, Texts)> {
    let Some(table) = profile.args.of(None) else { return Vec::new() };
    let columns = DETAILS.map(|key| table.column(key));
    let rows = table.events().enumerate();
    rows.filter(|&(_, event)| profile.events.kind(event).is_device_work())
        .map(|(row, _)| (row, columns.map(|column| text(column?.values.get(row)?))))
        .filter(|(_, texts)| texts.iter().any(Option::is_some))
        .collect()
}

fn taken_apart(texts: Texts, strings: &mut Strings) -> Vec<Option<ArgValue>> {
    let texts = texts.map(|text| text.map_or(String::new(), |it| strings.get(it).to_owned()));
    let texts = texts.each_ref().map(String::as_str);
    RULES.iter().map(|(_, rule)| rule(texts, strings)).collect()
}

fn number(details: &str, key: &str) -> Option<ArgValue> {
    xprof_detail(details, key)?.parse().ok().map(ArgValue::Integer)
}

fn word(details: &str, key: &str, strings: &mut Strings) -> Option<ArgValue> {
    xprof_detail(details, key).map(|word| ArgValue::Text(strings.intern(word)))
}

/// Returns numbers separated by commas, in the list format of other profilers.
fn list(details: &str, key: &str, strings: &mut Strings) -> Option<ArgValue> {
    let numbers = xprof_detail(details, key)?.split(',').map(|number| number.parse::<u64>().ok());
    let numbers: Option<Vec<_>> = numbers.collect();
    Some(ArgValue::Text(strings.intern(&format!("{:?}", numbers?))))
}

fn shared_memory(kernel: &str) -> Option<ArgValue> {
    let bytes = |key| xprof_detail(kernel, key)?.parse::<i64>().ok();
    let sum = bytes("static_shared")?.checked_add(bytes("dynamic_shared")?)?;
    Some(ArgValue::Integer(sum))
}

/// The planes of one profile.
pub(super) struct Planes {
    of_process: HashMap<StringId, Plane>,
    lines: HashMap<(StringId, StringId), Line>,
    /// The planes with streams, whose activities are repeated on other lines.
    with_streams: HashSet<StringId>,
}

impl Planes {
    /// Finds the planes; `None` if no process is a plane.
    pub(super) fn of(metadata: &MetadataTable, strings: &Strings) -> Option<Self> {
        let of_process: HashMap<_, _> = statements(metadata, strings, "process_name")
            .filter_map(|statement| Some((statement.process, Plane::of_name(statement.value)?)))
            .collect();
        if of_process.is_empty() {
            return None;
        }
        let lines: HashMap<_, _> = statements(metadata, strings, "thread_name")
            .map(|it| ((it.process, it.thread), Line::of_name(it.value)))
            .collect();
        let is_stream = |line: &Line| matches!(line, Line::Stream(_));
        let streams = lines.iter().filter(|(_, line)| is_stream(line));
        let with_streams = streams.map(|(&(process, _), _)| process).collect();
        Some(Self { of_process, lines, with_streams })
    }

    pub(super) fn of_process(&self, process: StringId) -> Option<Plane> {
        self.of_process.get(&process).copied()
    }

    /// Returns the device line of a track.
    pub(super) fn line(&self, place: Place) -> Line {
        let line = self.lines.get(&(place.process, place.thread)).copied();
        match line.unwrap_or(Line::Unknown) {
            Line::Operations if self.with_streams.contains(&place.process) => Line::Repeated,
            line => line,
        }
    }
}
