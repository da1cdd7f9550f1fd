//! The layers of an Ascend profile: which process is which layer, and which threads and streams its
//! tracks represent.

use std::collections::HashMap;

use crate::ids::StringId;
use crate::read::profile::statements;
use crate::strings::Strings;
use crate::tables::{MetadataTable, Place};
use crate::vocabulary::{CollectiveTrack, Layer, stream_number};

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
