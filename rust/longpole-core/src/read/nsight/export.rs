//! The state of reading an export, and the arguments of its events.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::ids::{LaneId, StringId};
use crate::read::recent::{ByNumber, Recent};
use crate::read::records::Records;
use crate::read::sqlite::{Reading, Row};
use crate::tables::Place;

/// The arguments of events, with Kineto's names; the constants are their indices.
pub(super) const ARGUMENTS: &[&str] = &[
    "context",
    "graph node id",
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "bytes",
    "cuda_sync_kind",
    "wait_on_stream",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_cuda_event_id",
    "Record function id",
    "Sequence number",
    "Input Dims",
];

pub(super) const CONTEXT: usize = 0;

pub(super) const GRAPH_NODE: usize = 1;

pub(super) const GRID: usize = 2;

pub(super) const BLOCK: usize = 3;

pub(super) const REGISTERS: usize = 4;

pub(super) const SHARED_MEMORY: usize = 5;

pub(super) const BYTES: usize = 6;

pub(super) const SYNC_KIND: usize = 7;

pub(super) const WAIT_ON_STREAM: usize = 8;

pub(super) const WAIT_ON_RECORD: usize = 9;

pub(super) const WAIT_ON_EVENT: usize = 10;

pub(super) const RECORD_FUNCTION: usize = 11;

pub(super) const SEQUENCE: usize = 12;

pub(super) const INPUT_DIMS: usize = 13;

/// The state of reading an export.
pub(super) struct Export<'a> {
    pub(super) reading: Reading<'a>,
    pub(super) places: Places,
    pub(super) call_names: ByNumber<Option<StringId>>,
}

impl Export<'_> {
    /// Calls `take` with every row of a table.
    pub(super) fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&mut Self, &Row<'_>),
    ) -> Result<()> {
        let database = self.reading.database;
        let end = database.each(table, columns, &mut |row| {
            if self.reading.is_full()? {
                return Ok(ControlFlow::Break(()));
            }
            take(self, row);
            Ok(ControlFlow::Continue(()))
        })?;
        self.reading.note_end(end);
        Ok(())
    }
}

// Maps the ids of an export to processes, threads, devices and streams.

/// A process or thread id: 8 bits of hardware, 8 of the machine, 24 of the process and 24 of the
/// thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GlobalId(pub(super) i64);

impl GlobalId {
    pub(super) fn process(self) -> i64 {
        self.0 >> 24 & 0xff_ffff
    }

    pub(super) fn thread(self) -> i64 {
        self.0 & 0xff_ffff
    }
}

/// CUPTI's value for no stream and no event.
const NONE: i64 = 0xffff_ffff;

/// Factor that makes ids unique across processes: correlation ids and stream numbers have fewer
/// digits.
const CORRELATIONS: i64 = 10_000_000_000;

const STREAMS: i64 = 1_000_000;

/// The lanes seen so far.
#[derive(Default)]
pub(super) struct Places {
    /// The first process with GPU activities or calls, whose ids are used unchanged.
    first: Option<i64>,
    /// The first process on each device.
    first_of_device: HashMap<i64, i64>,
    /// The device of each context of a process.
    device_of_context: HashMap<[Option<i64>; 2], i64>,
    /// Contexts whose device was recently recorded.
    learned: Recent<([Option<i64>; 2], i64), ()>,
    threads: Recent<GlobalId, LaneId>,
    streams: Recent<[Option<i64>; 3], LaneId>,
}

impl Places {
    /// Returns a correlation id that is unique across processes, which count separately.
    pub(super) fn correlation(&mut self, id: Option<i64>, process: Option<i64>) -> Option<i64> {
        let id = id.filter(|&id| id != NONE)?;
        let process = GlobalId(process.unwrap_or(0)).process();
        if *self.first.get_or_insert(process) == process {
            return Some(id);
        }
        process.checked_mul(CORRELATIONS)?.checked_add(id)
    }

    /// Returns a stream number that is unique across the processes on a device.
    pub(super) fn stream(&mut self, stream: i64, device: i64, process: Option<i64>) -> i64 {
        number_of_stream(stream, device, process.unwrap_or(0), &mut self.first_of_device)
    }

    /// Records the device of a context of a process.
    pub(super) fn learn(&mut self, context: [Option<i64>; 2], device: Option<i64>) {
        let Some(device) = device else { return };
        let devices = &mut self.device_of_context;
        self.learned.get((context, device), || {
            devices.entry(context).or_insert(device);
        });
    }

    /// Returns the device of a context. Synchronization records have the context, but always device
    /// 0.
    pub(super) fn device(&self, context: [Option<i64>; 2], recorded: Option<i64>) -> Option<i64> {
        self.device_of_context.get(&context).copied().or(recorded)
    }

    /// Returns the lane of a stream.
    #[inline]
    pub(super) fn of_stream(
        &mut self,
        [device, stream, process]: [Option<i64>; 3],
        records: &mut Records<'_>,
    ) -> LaneId {
        let first_of_device = &mut self.first_of_device;
        self.streams.get([device, stream, process], || {
            let known = stream.zip(device);
            let stream = known.map_or(stream, |(stream, device)| {
                Some(number_of_stream(stream, device, process.unwrap_or(0), first_of_device))
            });
            let [process, thread] = [device, stream].map(|number| {
                let text = number.map_or_else(String::new, |number| number.to_string());
                records.tables.strings.intern(&text)
            });
            records.lane(Place { process, thread, device, stream })
        })
    }

    /// Returns the lane of a thread.
    #[inline]
    pub(super) fn of_thread(&mut self, id: Option<i64>, records: &mut Records<'_>) -> LaneId {
        let id = GlobalId(id.unwrap_or(0));
        self.threads.get(id, || {
            let (process, thread) = texts(id, records);
            records.lane(Place { process, thread, device: None, stream: None })
        })
    }
}

/// Returns the stream number, combined with the process number unless this process was the first on
/// the device.
fn number_of_stream(
    stream: i64,
    device: i64,
    process: i64,
    first_of_device: &mut HashMap<i64, i64>,
) -> i64 {
    let process = GlobalId(process).process();
    if stream == NONE {
        return -1;
    }
    if *first_of_device.entry(device).or_insert(process) == process {
        return stream;
    }
    process.saturating_mul(STREAMS).saturating_add(stream)
}

/// Returns a process and a thread as strings.
pub(super) fn texts(id: GlobalId, records: &mut Records<'_>) -> (StringId, StringId) {
    let mut text = |number: i64| records.tables.strings.intern(&number.to_string());
    (text(id.process()), text(id.thread()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the id of the process with this number.
    const fn id_of(process: i64) -> i64 {
        process << 24 | 1 << 48
    }

    #[test]
    fn the_numbers_of_the_first_process_stand_as_they_are() {
        let mut places = Places::default();
        assert_eq!(places.correlation(Some(7), Some(id_of(111))), Some(7));
        assert_eq!(places.correlation(Some(7), Some(id_of(222))), Some(2_220_000_000_007));
        assert_eq!(places.correlation(Some(NONE), Some(id_of(111))), None);
    }

    #[test]
    fn a_context_tells_its_device_better_than_a_record_of_synchronisation() {
        let mut places = Places::default();
        places.learn([Some(id_of(111)), Some(2)], Some(1));
        assert_eq!(places.device([Some(id_of(111)), Some(2)], Some(0)), Some(1));
        assert_eq!(places.device([Some(id_of(222)), Some(2)], Some(0)), Some(0));
    }

    #[test]
    fn streams_of_two_processes_on_one_device_are_two() {
        let mut places = Places::default();
        assert_eq!(places.stream(7, 0, Some(id_of(111))), 7);
        assert_eq!(places.stream(7, 0, Some(id_of(222))), 222_000_007);
        assert_eq!(places.stream(7, 1, Some(id_of(222))), 7);
    }
}
