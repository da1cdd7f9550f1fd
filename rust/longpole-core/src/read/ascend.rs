//! Assigns kinds, streams and threads to the events of an Ascend profile.
//!
//! In the timelines of msprof, `torch_npu` and MindSpore most events have no category. The names of
//! processes and threads identify them, and may come after the events. The events are therefore
//! interpreted once all of them are known:
//!
//! | process | events become |
//! |---|---|
//! | Ascend Hardware | kernels and copies on the stream, by `Task Type`; waits; marks |
//! | HCCL, Communication | one kernel for each collective, on the stream of its tasks |
//! | CANN | runtime calls on the calling thread of the program |
//! | CPU OP | operators |
//! | Overlap Analysis, Scope Layer, Step Trace | derived; not counted as activities |
//!
//! The tasks of a collective occur two or three times in the timeline (as a whole, on a plane, on a
//! stream). Only the whole counts as a GPU activity.
//!
//! Limits: a trace without any of these processes is not changed. The device number is known only
//! if the profiler put it into the process id; otherwise it is null.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::profile;
use super::profile::Column;
use crate::ids::{EventId, LaneId, StringId};
use crate::read::profile::statements;
use crate::strings::Strings;
use crate::tables::{ArgTables, EventTable, LaneTable, MetadataTable, Place};
use crate::vocabulary::{
    CollectiveTrack, DeviceRange, EventKind, Layer, TaskKind, step_number, stream_number,
};

/// Interprets the events of an Ascend profile. Returns the number of tasks of an unknown type.
/// Other traces are not changed.
pub(super) fn interpret(mut parts: Parts<'_>) -> u64 {
    let parts = &mut parts;
    let Some(layers) = Layers::of(parts.metadata, parts.strings) else { return 0 };
    let tasks = Tasks::of(parts, &layers);
    parts.events.reopen_lanes();
    let mut n_unknown = 0;
    for event in parts.events.ids() {
        let place = parts.lanes.place(parts.events.lane(event));
        let Some(layer) = layers.of_process(place.process) else { continue };
        let is_span = !matches!(parts.events.kind(event), EventKind::Instant);
        match layer {
            _ if !is_span => {}
            Layer::Hardware => n_unknown += u64::from(tasks.hardware(event, &layers, parts)),
            Layer::Communication => match layers.track(place) {
                Some(CollectiveTrack::Operations) => tasks.collective(event, &layers, parts),
                Some(CollectiveTrack::Tasks) | None => tasks.part(event, &layers, parts),
            },
            Layer::Cann => {
                let lane = parts.lanes.intern(layers.host_place(place));
                parts.events.assign_kind(event, EventKind::Runtime);
                parts.events.assign_lane(event, lane);
            }
            Layer::HostOperators => parts.events.assign_kind(event, EventKind::Operator),
            Layer::Derived => parts.events.assign_kind(event, EventKind::Derived),
            Layer::Framework => framework(event, parts),
        }
    }
    parts.events.finish();
    n_unknown
}

/// Handles the framework layer, in which `torch_npu` lists steps among the operators.
fn framework(event: EventId, parts: &mut Parts<'_>) {
    let name = parts.events.name(event).map_or("", |name| parts.strings.get(name));
    if parts.events.kind(event) == EventKind::Operator && step_number(name).is_some() {
        parts.events.assign_kind(event, EventKind::Annotation);
    }
}

// The tables of a trace that are needed to identify its events.

/// The tables of a trace, as built by its reader.
pub(in crate::read) struct Parts<'a> {
    pub(in crate::read) strings: &'a Strings,
    pub(in crate::read) events: &'a mut EventTable,
    pub(in crate::read) lanes: &'a mut LaneTable,
    pub(in crate::read) args: &'a ArgTables,
    pub(in crate::read) metadata: &'a MetadataTable,
}

// The layers of an Ascend profile: which process is which layer, and which threads and streams its
// tracks represent.

/// The layers of one profile.
pub(super) struct Layers {
    of_process: HashMap<StringId, Layer>,
    tracks: HashMap<(StringId, StringId), CollectiveTrack>,
    streams: HashMap<(StringId, StringId), i64>,
    /// For each CANN process, the process of the program whose calls it contains.
    hosts: HashMap<StringId, StringId>,
    devices: HashMap<StringId, i64>,
}

/// The parts of the ids that the profiler assigns to its own processes: the process id of the
/// program, the index of the layer in the timeline, and the device.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ProcessId {
    program: i64,
    place: i64,
    device: i64,
}

impl ProcessId {
    fn of(number: i64) -> Self {
        Self { program: number >> 10, place: number >> 5 & 31, device: number & 31 }
    }
}

impl Layers {
    /// Finds the layers; `None` if no process is one that only Ascend profiles have.
    pub(super) fn of(metadata: &MetadataTable, strings: &Strings) -> Option<Self> {
        let mut found = Self {
            of_process: HashMap::new(),
            tracks: HashMap::new(),
            streams: HashMap::new(),
            hosts: HashMap::new(),
            devices: HashMap::new(),
        };
        let mut is_telling = false;
        for statement in statements(metadata, strings, "process_name") {
            let Some(layer) = Layer::of_process(statement.value) else { continue };
            is_telling |= layer.is_telling(statement.value);
            found.of_process.insert(statement.process, layer);
        }
        if !is_telling {
            return None;
        }
        for statement in statements(metadata, strings, "thread_name") {
            let track = (statement.process, statement.thread);
            if let Some(kind) = CollectiveTrack::of_thread(statement.value) {
                found.tracks.insert(track, kind);
            }
            if let Some(stream) = stream_number(statement.value) {
                found.streams.insert(track, stream);
            }
        }
        found.read_process_ids(metadata, strings);
        Some(found)
    }

    /// Extracts device numbers from process ids, if the index in the timeline shows that the ids
    /// contain them, and assigns the process of its program to each CANN process.
    fn read_process_ids(&mut self, metadata: &MetadataTable, strings: &Strings) {
        let mut programs = HashMap::new();
        for statement in statements(metadata, strings, "process_sort_index") {
            let number = strings.get(statement.process).parse::<i64>().ok();
            let place = statement.value.parse::<i64>().ok();
            let (Some(number), Some(place)) = (number, place) else { continue };
            let id = ProcessId::of(number);
            if id.place == place && id.program > 0 {
                self.devices.insert(statement.process, id.device);
                programs.insert(statement.process, id.program);
            }
        }
        let of_layer = |wanted: Layer| {
            let mut processes: Vec<_> = self
                .of_process
                .iter()
                .filter(|(_, layer)| **layer == wanted)
                .map(|(&process, _)| process)
                .collect();
            processes.sort_unstable();
            processes
        };
        let frameworks = of_layer(Layer::Framework);
        for cann in of_layer(Layer::Cann) {
            let program = programs.get(&cann).map(ToString::to_string);
            let named = frameworks.iter().find(|&&it| Some(strings.get(it)) == program.as_deref());
            let only = || frameworks.first().filter(|_| frameworks.len() == 1);
            if let Some(&host) = named.or_else(only) {
                self.hosts.insert(cann, host);
            }
        }
    }

    pub(super) fn of_process(&self, process: StringId) -> Option<Layer> {
        self.of_process.get(&process).copied()
    }

    pub(super) fn track(&self, place: Place) -> Option<CollectiveTrack> {
        self.tracks.get(&(place.process, place.thread)).copied()
    }

    /// Returns the stream of a track, if it is a stream.
    pub(super) fn stream(&self, place: Place) -> Option<i64> {
        self.streams.get(&(place.process, place.thread)).copied()
    }

    pub(super) fn device(&self, process: StringId) -> Option<i64> {
        self.devices.get(&process).copied()
    }

    /// Returns the thread of the program for a CANN track.
    pub(super) fn host_place(&self, place: Place) -> Place {
        let process = self.hosts.get(&place.process).copied().unwrap_or(place.process);
        Place { process, ..place }
    }
}

// Tasks on device streams, and the collectives that contain some of them.

/// A device number, if the profile has one.
type Device = Option<i64>;

/// What is known about tasks before their kinds are assigned.
pub(super) struct Tasks<'a> {
    /// The task kind of each string, as a type or a name.
    kinds: Vec<TaskKind>,
    types: Option<Column<'a>>,
    /// The argument with the stream of the tasks of collectives.
    streams: Option<Column<'a>>,
    /// The streams and starts of the tasks of collectives.
    parts: HashSet<(Device, i64, i64)>,
    /// The lane of each stream.
    lanes: HashMap<(Device, i64), LaneId>,
    /// The process that represents a device.
    processes: HashMap<Device, StringId>,
    /// The lane of the first task that a call launched.
    lane_of_call: HashMap<(Device, i64), LaneId>,
    /// The tasks of collectives by device, in order of time: start, track and stream.
    by_start: BTreeMap<Device, Vec<(i64, i64, i64)>>,
}

impl<'a> Tasks<'a> {
    pub(super) fn of(parts: &mut Parts<'a>, layers: &Layers) -> Self {
        let mut found = Self {
            kinds: parts.strings.iter().map(TaskKind::of_type).collect(),
            types: profile::Column::of("Task Type", parts.args),
            streams: profile::Column::of("stream id", parts.args),
            parts: HashSet::new(),
            lanes: HashMap::new(),
            processes: HashMap::new(),
            lane_of_call: HashMap::new(),
            by_start: BTreeMap::new(),
        };
        for event in parts.events.ids() {
            let place = parts.lanes.place(parts.events.lane(event));
            match layers.of_process(place.process) {
                Some(Layer::Hardware) => found.note_stream(event, place, layers, parts),
                Some(Layer::Communication)
                    if layers.track(place) == Some(CollectiveTrack::Tasks) =>
                {
                    let stream = found.stream_of_part(event, parts);
                    if let Some(stream) = stream {
                        found.note_part(event, layers.device(place.process), stream, parts);
                    }
                }
                _ => {}
            }
        }
        for starts in found.by_start.values_mut() {
            starts.sort_unstable();
        }
        found
    }

    /// Assigns a lane to a device track.
    fn note_stream(
        &mut self,
        event: EventId,
        place: Place,
        layers: &Layers,
        parts: &mut Parts<'_>,
    ) {
        let device = layers.device(place.process);
        self.processes.entry(device).or_insert(place.process);
        let Some(stream) = layers.stream(place) else { return };
        let lanes = &mut *parts.lanes;
        let on_stream = Place { device, stream: Some(stream), ..place };
        let lane = *self.lanes.entry((device, stream)).or_insert_with(|| lanes.intern(on_stream));
        if let Some(call) = parts.events.correlation(event) {
            self.lane_of_call.entry((device, call)).or_insert(lane);
        }
    }

    fn note_part(&mut self, event: EventId, device: Device, stream: i64, parts: &Parts<'_>) {
        let start_ns = parts.events.start_ns(event);
        self.parts.insert((device, stream, start_ns));
        let thread = parts.lanes.place(parts.events.lane(event)).thread;
        let track = parts.strings.get(thread).parse().unwrap_or(i64::MAX);
        self.by_start.entry(device).or_default().push((start_ns, track, stream));
    }

    /// Assigns kind and stream to an event of the hardware layer. Returns whether it is a task of
    /// an unknown type.
    pub(super) fn hardware(&self, event: EventId, layers: &Layers, parts: &mut Parts<'_>) -> bool {
        if let Some(kind) = range(event, parts) {
            parts.events.assign_kind(event, kind);
            return false;
        }
        let place = parts.lanes.place(parts.events.lane(event));
        let device = layers.device(place.process);
        let Some(stream) = layers.stream(place) else {
            parts.events.assign_kind(event, EventKind::DeviceTask);
            return false;
        };
        parts.events.assign_lane(event, self.lanes[&(device, stream)]);
        let is_part = self.parts.contains(&(device, stream, parts.events.start_ns(event)));
        let task = self.task(event, parts);
        parts.events.assign_kind(event, kind_of(task, is_part));
        matches!(task, TaskKind::Unknown | TaskKind::Unnamed) && !is_part
    }

    /// Returns the kind of a task: by its type or, if that is unknown, by its name. A task of type
    /// `Other` with the name of an operator is a compute task, because msprof has no name for its
    /// engine.
    fn task(&self, event: EventId, parts: &Parts<'_>) -> TaskKind {
        let of_text = |text: StringId| self.kinds[text.row()];
        let by_type = self.types.as_ref().and_then(|types| types.text(event)).map(of_text);
        let by_type = by_type.unwrap_or(TaskKind::Unknown);
        let by_name = || parts.events.name(event).map_or(TaskKind::Unknown, of_text);
        match by_type {
            TaskKind::Unknown => by_name(),
            TaskKind::Unnamed => match by_name() {
                TaskKind::Unknown => TaskKind::Compute,
                TaskKind::Unnamed => TaskKind::Unknown,
                known => known,
            },
            known => known,
        }
    }

    /// Assigns a task of a collective to its device and the stream that it records.
    pub(super) fn part(&self, event: EventId, layers: &Layers, parts: &mut Parts<'_>) {
        parts.events.assign_kind(event, EventKind::DeviceTask);
        let place = parts.lanes.place(parts.events.lane(event));
        let device = layers.device(place.process);
        let stream = self.stream_of_part(event, parts);
        let lane = parts.lanes.intern(Place { device, stream, ..place });
        parts.events.assign_lane(event, lane);
    }

    fn stream_of_part(&self, event: EventId, parts: &Parts<'_>) -> Option<i64> {
        self.streams.as_ref().and_then(|streams| streams.integer(event, parts.strings))
    }

    /// Turns a collective into a kernel on the stream of its first task, or on a separate stream if
    /// none is known.
    pub(super) fn collective(&self, event: EventId, layers: &Layers, parts: &mut Parts<'_>) {
        parts.events.assign_kind(event, EventKind::Kernel);
        let place = parts.lanes.place(parts.events.lane(event));
        let device = layers.device(place.process);
        let call = parts.events.correlation(event);
        let lane = call
            .and_then(|call| self.lane_of_call.get(&(device, call)).copied())
            .or_else(|| self.lane_within(event, device, parts))
            .unwrap_or_else(|| {
                let process = self.processes.get(&device).copied().unwrap_or(place.process);
                parts.lanes.intern(Place { process, device, ..place })
            });
        parts.events.assign_lane(event, lane);
    }

    /// Returns the lane of the tasks on the first track inside the collective; the other tracks
    /// only support it.
    fn lane_within(&self, event: EventId, device: Device, parts: &Parts<'_>) -> Option<LaneId> {
        let (start_ns, end_ns) = parts.events.span(event)?;
        let starts = self.by_start.get(&device)?;
        let first = starts.partition_point(|&(at_ns, ..)| at_ns < start_ns);
        let within = starts[first..].iter().take_while(|(at_ns, ..)| *at_ns <= end_ns);
        let &(.., stream) = within.min_by_key(|(at_ns, track, _)| (*track, *at_ns))?;
        self.lanes.get(&(device, stream)).copied()
    }
}

fn kind_of(task: TaskKind, is_part: bool) -> EventKind {
    match task {
        TaskKind::Compute => EventKind::Kernel,
        TaskKind::Copy if !is_part => EventKind::Copy,
        TaskKind::Wait if !is_part => EventKind::Synchronization,
        _ => EventKind::DeviceTask,
    }
}

/// Returns the kind of an event whose category marks it as a range on a device track.
fn range(event: EventId, parts: &Parts<'_>) -> Option<EventKind> {
    let category = parts.events.category(event)?;
    Some(match DeviceRange::of_category(parts.strings.get(category))? {
        DeviceRange::Iteration => EventKind::DeviceAnnotation,
        DeviceRange::Summary => EventKind::Derived,
    })
}
