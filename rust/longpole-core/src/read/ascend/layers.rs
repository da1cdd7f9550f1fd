//! Which process is which layer, and which threads and streams its tracks stand for.

use std::collections::HashMap;

use crate::ids::StringId;
use crate::read::statements::statements;
use crate::strings::Strings;
use crate::tables::{MetadataTable, Place};
use crate::vocabulary::{CollectiveTrack, Layer, stream_number};

/// The layers of one profile.
pub(super) struct Layers {
    of_process: HashMap<StringId, Layer>,
    tracks: HashMap<(StringId, StringId), CollectiveTrack>,
    streams: HashMap<(StringId, StringId), i64>,
    /// The process of the program whose calls a process of CANN shows.
    hosts: HashMap<StringId, StringId>,
    devices: HashMap<StringId, i64>,
}

/// What the profiler puts into the ids of its own processes: the process id of the program, the
/// place of the layer in the timeline, and the device.
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
    /// The layers, where at least one process is one that only such profiles have.
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

    /// Takes the numbers of devices out of process ids, where the place in the timeline shows
    /// that they hold them; and gives each process of CANN the process of its program.
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

    /// The stream that a track shows, if it is one.
    pub(super) fn stream(&self, place: Place) -> Option<i64> {
        self.streams.get(&(place.process, place.thread)).copied()
    }

    pub(super) fn device(&self, process: StringId) -> Option<i64> {
        self.devices.get(&process).copied()
    }

    /// The thread of the program that a track of CANN shows.
    pub(super) fn host_place(&self, place: Place) -> Place {
        let process = self.hosts.get(&place.process).copied().unwrap_or(place.process);
        Place { process, ..place }
    }
}
