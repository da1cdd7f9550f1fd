//! Names and labels of processes and threads (`M` events), each distinct one once.

use std::collections::HashMap;

use super::columns::columns;
use crate::ids::{InColumn, LaneId, NO_INTEGER, StringId};

/// Metadata statements about processes and threads (`M`), each distinct one once, in order of first
/// use. Some writers repeat them for every event.
#[derive(Debug, Clone, Default)]
pub struct MetadataTable {
    /// The type of statement: `process_name`, `thread_name`, `process_labels`, ...
    pub name: Vec<u32>,
    /// The process.
    pub process: Vec<u32>,
    /// The thread.
    pub thread: Vec<u32>,
    /// The value.
    pub value: Vec<u32>,
    /// Number of occurrences in the file.
    pub count: Vec<u64>,
    /// Index of the last occurrence in the event list.
    pub last_position: Vec<u32>,
    rows: HashMap<[u32; 4], usize>,
}

columns! {
    MetadataTable:
    name Rows,
    process Rows,
    thread Rows,
    value Rows,
    count Counts,
    last_position Rows,
}

impl MetadataTable {
    /// Adds an occurrence of a statement. Returns its row.
    pub(crate) fn push(
        &mut self,
        name: Option<StringId>,
        process: StringId,
        thread: StringId,
        value: Option<StringId>,
        position: u32,
    ) -> usize {
        let row = self.row(name, process, thread, value);
        self.repeat(row, position);
        row
    }

    /// Returns the row of a statement, which is added without an occurrence if it is new.
    pub(crate) fn row(
        &mut self,
        name: Option<StringId>,
        process: StringId,
        thread: StringId,
        value: Option<StringId>,
    ) -> usize {
        let (process, thread) = (Some(process).in_column(), Some(thread).in_column());
        let key = [name.in_column(), process, thread, value.in_column()];
        let row = *self.rows.entry(key).or_insert(self.name.len());
        if row == self.name.len() {
            self.name.push(key[0]);
            self.process.push(process);
            self.thread.push(thread);
            self.value.push(key[3]);
            self.count.push(0);
            self.last_position.push(0);
        }
        row
    }

    /// Counts another occurrence of the statement in `row`.
    pub(crate) fn repeat(&mut self, row: usize, position: u32) {
        self.count[row] += 1;
        self.last_position[row] = position;
    }

    /// Returns name, process, thread and value of the statement in `row`.
    pub(crate) fn statement(&self, row: usize) -> [u32; 4] {
        [self.name[row], self.process[row], self.thread[row], self.value[row]]
    }

    /// Returns the number of distinct statements.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// Whether there are no statements.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }
}

// The header of a trace: rank, world size, devices, base time.

/// The metadata of a document, at any position in the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// All fields except the events, as name and JSON text, in file order.
    pub fields: Vec<(String, String)>,
    /// The rank of the process in its job (`distributedInfo`).
    pub rank: Option<i64>,
    /// The number of processes of the job (`distributedInfo`).
    pub world_size: Option<i64>,
    /// The base of times in ns since 1970; `None` if times are absolute.
    pub base_time_ns: Option<i64>,
    /// The format: `kineto-json`, `chrome-json` for other JSON, or one of `xprof-json`, `xplane`,
    /// `perfetto`, `nsight-sqlite`, `rocpd`, `rpd`, `rocprofv3-json`, `rocprofv3-csv`,
    /// `rocprof-json`, `rocprof-csv`.
    pub format: &'static str,
    /// `gzip`, `zstd`, `xz` or `None`.
    pub compression: Option<&'static str>,
}

// The lanes of events: threads of processes and streams of devices, each once.
//
// Lanes are identified by the process and thread ids in the file, which may be text.

/// The place of an event: a thread of a process, or a stream of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The `pid` in the file, as a string, because it may be a name.
    pub process: StringId,
    /// The `tid` in the file, as a string.
    pub thread: StringId,
    /// The device, for device lanes.
    pub device: Option<i64>,
    /// The stream of the device.
    pub stream: Option<i64>,
}

/// The lanes of one trace, in order of first use.
#[derive(Debug, Clone, Default)]
pub struct LaneTable {
    places: Vec<Place>,
    rows: HashMap<Place, LaneId>,
}

impl LaneTable {
    /// Returns the handle of a place, which is added if it is new.
    pub fn intern(&mut self, place: Place) -> LaneId {
        *self.rows.entry(place).or_insert_with(|| {
            self.places.push(place);
            LaneId::from_row(self.places.len() - 1)
        })
    }

    /// Returns the place of a lane.
    pub fn place(&self, lane: LaneId) -> Place {
        self.places[lane.row()]
    }

    /// Returns all places, in handle order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns all lanes.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LaneId> + Clone + use<> {
        (0..self.len()).map(LaneId::from_row)
    }

    /// Returns the number of lanes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no lanes.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the processes as a column.
    pub fn processes(&self) -> Vec<u32> {
        self.places.iter().map(|place| Some(place.process).in_column()).collect()
    }

    /// Returns the threads as a column.
    pub fn threads(&self) -> Vec<u32> {
        self.places.iter().map(|place| Some(place.thread).in_column()).collect()
    }

    /// Returns the devices as a column; [`NO_INTEGER`] for none.
    pub fn devices(&self) -> Vec<i64> {
        self.places.iter().map(|place| place.device.unwrap_or(NO_INTEGER)).collect()
    }

    /// Returns the streams as a column; [`NO_INTEGER`] for none.
    pub fn streams(&self) -> Vec<i64> {
        self.places.iter().map(|place| place.stream.unwrap_or(NO_INTEGER)).collect()
    }
}
