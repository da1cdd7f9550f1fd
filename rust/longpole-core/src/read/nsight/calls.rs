//! Reads the calls of host threads: CUDA, the operating system, and the profiler itself.

use std::collections::{BTreeMap, HashMap};

use super::device::number;
use super::export::{CONTEXT, Export, SYNC_KIND, WAIT_ON_EVENT, WAIT_ON_RECORD, WAIT_ON_STREAM};
use crate::error::Result;
use crate::ids::{EventId, StringId};
use crate::read::records::Record;
use crate::read::sqlite::Row;
use crate::tables::{ArgValue, EventKind};

pub(super) const RUNTIME: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";

pub(super) const DRIVER: &str = "CUPTI_ACTIVITY_KIND_DRIVER";

pub(super) const SYSTEM: &str = "OSRT_API";

pub(super) const OVERHEAD: &str = "CUPTI_ACTIVITY_KIND_OVERHEAD";

pub(super) const PROFILER_OVERHEAD: &str = "PROFILER_OVERHEAD";

const CALL: &[&str] = &["start", "end", "globalTid", "correlationId", "nameId", "eventClass"];

/// The event class of driver calls.
const DRIVER_CLASS: i64 = 1;

impl Export<'_> {
    /// Reads the calls of threads.
    pub(super) fn calls(&mut self) -> Result<()> {
        let [runtime, driver, system, overhead] =
            ["cuda_runtime", "cuda_driver", "osrt", "overhead"]
                .map(|category| self.reading.records.tables.strings.intern(category));
        self.each(RUNTIME, CALL, |export, row| match row.integer(5) {
            Some(DRIVER_CLASS) => export.call(row, EventKind::Driver, driver),
            _ => export.call(row, EventKind::Runtime, runtime),
        })?;
        self.each(DRIVER, CALL, |export, row| export.call(row, EventKind::Driver, driver))?;
        // System calls have separate correlation ids.
        let uncorrelated = [&CALL[..3], &["", "nameId"]].concat();
        self.each(SYSTEM, &uncorrelated, |it, row| it.call(row, EventKind::Other, system))?;
        for table in [OVERHEAD, PROFILER_OVERHEAD] {
            self.each(table, &uncorrelated, |export, row| {
                export.call(row, EventKind::Overhead, overhead);
            })?;
        }
        Ok(())
    }

    fn call(&mut self, row: &Row<'_>, kind: EventKind, category: StringId) {
        let [start_ns, end_ns, thread, correlation, name] = row.integers(0);
        let name = self.name_of_call(name);
        let records = &mut self.reading.records;
        let lane = self.places.of_thread(thread, records);
        records.add(&Record {
            kind,
            category,
            name,
            lane,
            start_ns,
            end_ns,
            correlation: self.places.correlation(correlation, thread),
        });
    }

    /// Returns the name of a call without the version of the interface, as in
    /// `cudaLaunchKernel_v7000`.
    fn name_of_call(&mut self, number: Option<i64>) -> Option<StringId> {
        let number = number?;
        if let Some(name) = self.call_names.get(number) {
            return name;
        }
        let name = self.reading.text(Some(number));
        let strings = &mut self.reading.records.tables.strings;
        let name = name.map(|name| {
            let plain = without_version(strings.get(name)).to_owned();
            strings.intern(&plain)
        });
        self.call_names.insert(number, name);
        name
    }
}

/// Removes the version of a runtime call, which has four digits or more; `_v2` is part of driver
/// names.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((plain, version))
            if version.len() >= 4 && version.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            plain
        }
        _ => name,
    }
}

// Reads synchronization records: which call waited, and for which stream.
//
// A wait for an event contains the event id. `CUDA_EVENT` records contain the stream on which it
// was recorded and the call; without them, these stay unknown.

pub(super) const WAITS: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";

pub(super) const RECORDS: &str = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";

const WAIT: &[&str] = &[
    "start",
    "end",
    "deviceId",
    "streamId",
    "globalPid",
    "correlationId",
    "contextId",
    "syncType|deprecatedSyncType",
    "eventId",
    "eventSyncId",
];

const RECORD: &[&str] =
    &["globalPid", "contextId", "eventId", "eventSyncId", "correlationId", "streamId"];

/// Kineto's names for the CUPTI types.
const KINDS: &[&str] =
    &["Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"];

/// CUPTI's value for no event.
const NO_EVENT: i64 = 0xffff_ffff;

/// Process, context and number of an event.
type Event = [Option<i64>; 3];

/// The recording of an event: the call and the stream.
type Recorded = (i64, i64);

/// The recordings of each event.
#[derive(Default)]
struct EventRecords {
    /// By the id that a recording and its waits share.
    by_sync: HashMap<(Option<i64>, i64), Recorded>,
    /// In order of calls.
    by_event: BTreeMap<Event, Vec<Recorded>>,
}

impl EventRecords {
    fn add(&mut self, row: &Row<'_>) {
        let [process, context, event, sync, call, stream] = row.integers(0);
        let (Some(call), Some(stream)) = (call, stream) else { return };
        let recorded = (call, stream);
        if let Some(sync) = given(sync) {
            self.by_sync.insert((process, sync), recorded);
        }
        self.by_event.entry([process, context, event]).or_default().push(recorded);
    }

    /// Returns the last recording of an event before a call waited for it.
    fn find(&self, event: Event, sync: Option<i64>, waiter: i64) -> Option<Recorded> {
        if let Some(sync) = given(sync) {
            return self.by_sync.get(&(event[0], sync)).copied();
        }
        let recorded = self.by_event.get(&event)?;
        let before = recorded.partition_point(|&(call, _)| call < waiter);
        before.checked_sub(1).map(|last| recorded[last])
    }
}

fn given(number: Option<i64>) -> Option<i64> {
    number.filter(|&number| number != NO_EVENT && number != 0)
}

impl Export<'_> {
    /// Reads the synchronization records.
    pub(super) fn waits(&mut self) -> Result<()> {
        let mut recorded = EventRecords::default();
        self.each(RECORDS, RECORD, |_, row| recorded.add(row))?;
        for of_event in recorded.by_event.values_mut() {
            of_event.sort_unstable();
        }
        let category = self.reading.records.tables.strings.intern("cuda_sync");
        self.each(WAITS, WAIT, |export, row| export.wait(row, category, &recorded))
    }

    fn wait(&mut self, row: &Row<'_>, category: StringId, recorded: &EventRecords) {
        let [start_ns, end_ns, device, stream, process, correlation, context, kind] =
            row.integers(0);
        let place = kind.and_then(|kind| usize::try_from(kind).ok());
        let kind = place.and_then(|place| KINDS.get(place)).unwrap_or(&KINDS[0]);
        let records = &mut self.reading.records;
        let name = records.tables.strings.intern(kind);
        let device = self.places.device([process, context], device);
        let lane = self.places.of_stream([device, stream, process], records);
        let event = records.add(&Record {
            kind: EventKind::Synchronization,
            category,
            name: Some(name),
            lane,
            start_ns,
            end_ns,
            correlation: self.places.correlation(correlation, process),
        });
        let Some(event) = event else { return };
        records.argument(event, category, CONTEXT, number(context));
        records.argument(event, category, SYNC_KIND, Some(ArgValue::Text(name)));
        let [awaited, sync] = row.integers(8);
        let awaited = awaited.filter(|&number| number != NO_EVENT);
        if awaited.is_some() {
            records.argument(event, category, WAIT_ON_EVENT, number(awaited));
            let of_event = [process, context, awaited];
            let found = correlation.and_then(|waiter| recorded.find(of_event, sync, waiter));
            let place = (device.unwrap_or(0), process);
            self.waited_for(found, place, (event, category));
        }
    }

    /// Keeps the stream and call that recorded the event of a wait.
    fn waited_for(
        &mut self,
        recorded: Option<Recorded>,
        (device, process): (i64, Option<i64>),
        (event, category): (EventId, StringId),
    ) {
        let Some((call, stream)) = recorded else { return };
        let records = &mut self.reading.records;
        let stream = self.places.stream(stream, device, process);
        let call = self.places.correlation(Some(call), process);
        records.argument(event, category, WAIT_ON_STREAM, number(Some(stream)));
        records.argument(event, category, WAIT_ON_RECORD, number(call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_the_runtime_has_its_name_without_a_version() {
        for (name, plain) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
            ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync_ptsz"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("cuLaunchKernel", "cuLaunchKernel"),
        ] {
            assert_eq!(without_version(name), plain);
        }
    }
}
