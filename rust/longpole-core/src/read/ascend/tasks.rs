//! Tasks on device streams, and the collectives that contain some of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::layers::Layers;
use super::parts::Parts;
use crate::ids::{EventId, LaneId, StringId};
use crate::read::column::Column;
use crate::tables::Place;
use crate::vocabulary::{CollectiveTrack, DeviceRange, EventKind, Layer, TaskKind};

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
            types: Column::of("Task Type", parts.args),
            streams: Column::of("stream id", parts.args),
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
