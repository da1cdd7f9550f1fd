//! Reads `rocpd` databases, which `rocprofv3` writes by default.
//!
//! The names of tables end in the id of the recording; one database may contain several. Times and
//! tracks are in the rows themselves or, in later versions, in separate tables.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::activities::Devices;
use super::activities::{
    ARGUMENTS, Activity, Launch, Symbol, kernel, kind_of_interface, memory_copy, of_recording,
    registers, thread,
};
use serde_json::Value;

use crate::diagnostics::Code;
use crate::error::Result;
use crate::progress::Progress;
use crate::read::options::Options;
use crate::read::records::{Record, Records};
use crate::read::sqlite::{Database, Finder, Reading, Row, Rows, Texts};
use crate::tables::{EventKind, Header, Tables};

const KERNELS: &str = "rocpd_kernel_dispatch";
const COPIES: &str = "rocpd_memory_copy";
const REGIONS: &str = "rocpd_region";

/// Columns for times and tracks, which rows contain directly or by reference.
const COMMON: [&str; 10] = [
    "start",
    "end",
    "start_id",
    "end_id",
    "track_id",
    "event_id",
    "pid",
    "tid",
    "queue_id",
    "stream_id",
];
const KERNEL: &[&str] = &[
    "agent_id",
    "kernel_id",
    "group_segment_size",
    "grid_size_x",
    "grid_size_y",
    "grid_size_z",
    "workgroup_size_x",
    "workgroup_size_y",
    "workgroup_size_z",
];
const COPY: &[&str] = &["dst_agent_id", "src_agent_id", "name_id", "size"];
const REGION: &[&str] = &["name_id"];
const FIRST: usize = COMMON.len();

/// Whether a database is a `rocpd` database.
pub(in crate::read) fn is_rocpd(database: &Database) -> bool {
    recordings(database).next().is_some()
}

/// Returns the ids of the recordings, from the suffixes of table names.
fn recordings(database: &Database) -> impl Iterator<Item = &str> {
    database.names().iter().filter_map(|name| name.strip_prefix(REGIONS))
}

/// Reads the recordings of a database.
pub(in crate::read) fn read(
    database: &Database,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let of_recording = |table: &str, id: &str| format!("{table}{id}");
    let tables: Vec<_> = recordings(database)
        .flat_map(|id| [KERNELS, COPIES, REGIONS].map(|table| of_recording(table, id)))
        .collect();
    let mut rows = Rows::of(tables.iter().map(String::as_str), database);
    let mut records = Records::new(ARGUMENTS, options);
    let mut devices = Devices::default();
    for (number, id) in (0..).zip(recordings(database)) {
        let strings = of_recording("rocpd_string", id);
        let texts = Texts::of(database, [&strings, "id", "string"], &mut records)?;
        let reading = Reading::new(database, records, texts, rows, progress);
        let mut recording = Recording::of(reading, (number, id), devices)?;
        recording.read()?;
        recording.reading.note_lookups(&[&recording.times, &recording.events]);
        rows = recording.reading.rows;
        (records, devices) = (recording.reading.records, recording.devices);
    }
    let fields = devices.properties().into_iter().collect();
    let header = Header { fields, format: "rocpd", ..Header::default() };
    database.note_damaged_pages(&mut records, progress)?;
    records.finish(header, database.n_bytes)
}

/// The state of reading one recording.
struct Recording<'a> {
    reading: Reading<'a>,
    /// Its index in the database.
    number: i64,
    id: &'a str,
    devices: Devices,
    kernels: HashMap<i64, Symbol>,
    tracks: HashMap<i64, Track>,
    /// The system id of each process and thread.
    processes: Numbers,
    threads: Numbers,
    times: Option<Finder<'a>>,
    events: Option<Finder<'a>>,
}

/// Process, thread, agent, queue and stream.
type Track = [Option<i64>; 5];

/// System ids by row id, because some versions refer to rows instead.
#[derive(Default)]
struct Numbers {
    of_row: HashMap<i64, i64>,
    known: HashSet<i64>,
}

impl Numbers {
    fn add(&mut self, row: Option<i64>, number: Option<i64>) {
        if let (Some(row), Some(number)) = (row, number) {
            self.of_row.insert(row, number);
            self.known.insert(number);
        }
    }

    /// Returns the system id, for an id that may be a row id.
    fn number(&self, named: Option<i64>) -> Option<i64> {
        let named = named?;
        if self.known.contains(&named) {
            return Some(named);
        }
        Some(self.of_row.get(&named).copied().unwrap_or(named))
    }
}

const EVENT: &[&str] = &["stack_id", "category_id", "extdata"];

/// The content of a row of `rocpd_event`.
#[derive(Default)]
struct Event {
    correlation: Option<i64>,
    category: Option<i64>,
    /// The text of a marker.
    message: Option<String>,
    /// Whether additional data in the file is damaged.
    is_damaged: bool,
}

impl Event {
    fn of(row: &Row<'_>) -> Self {
        let text = row.text(2).unwrap_or_default();
        let more = serde_json::from_slice::<Value>(text).ok();
        let message = more.as_ref().and_then(|more| more.get("message")?.as_str());
        Self {
            correlation: row.integer(0),
            category: row.integer(1),
            message: message.filter(|text| !text.is_empty()).map(str::to_owned),
            is_damaged: text.contains(&0),
        }
    }
}

impl<'a> Recording<'a> {
    fn of(reading: Reading<'a>, (number, id): (i64, &'a str), devices: Devices) -> Result<Self> {
        let database = reading.database;
        let mut recording = Self {
            reading,
            number,
            id,
            devices,
            kernels: HashMap::new(),
            tracks: HashMap::new(),
            processes: Numbers::default(),
            threads: Numbers::default(),
            times: database.finder(&format!("rocpd_timestamp{id}"), "id", &["value"]),
            events: database.finder(&format!("rocpd_event{id}"), "id", EVENT),
        };
        recording.describe()?;
        Ok(recording)
    }

    /// Reads the tables that records refer to.
    fn describe(&mut self) -> Result<()> {
        let columns = ["id", "type", "logical_index|type_index", "product_name|name"];
        self.each("rocpd_info_agent", &columns, |it, row| {
            let [agent, _, device] = row.integers(0);
            if let (Some(agent), Some(device), Some(b"GPU")) = (agent, device, row.text(1)) {
                let name = row.text(3).map(String::from_utf8_lossy);
                it.devices.add(agent, device, name.as_deref());
            }
        })?;
        let columns = ["id", "display_name|kernel_name", "arch_vgpr_count", "accum_vgpr_count"];
        self.each("rocpd_info_kernel_symbol", &columns, |it, row| {
            if let (Some(kernel), Some(name)) = (row.integer(0), row.text(1)) {
                let name = it.reading.records.text(name);
                let registers = registers(row.integer(2), row.integer(3));
                it.kernels.insert(kernel, Symbol { name, registers });
            }
        })?;
        self.each("rocpd_info_process", &["id", "pid"], |it, row| {
            it.processes.add(row.integer(0), row.integer(1));
        })?;
        self.each("rocpd_info_thread", &["id", "tid"], |it, row| {
            it.threads.add(row.integer(0), row.integer(1));
        })?;
        let columns = ["id", "pid", "tid", "agent_id", "queue_id", "stream_id"];
        self.each("rocpd_track", &columns, |it, row| {
            if let Some(track) = row.integer(0) {
                it.tracks.insert(track, row.integers(1));
            }
        })
    }

    fn read(&mut self) -> Result<()> {
        self.each(KERNELS, &[&COMMON, KERNEL].concat(), |it, row| {
            let [agent, symbol, shared_memory] = row.integers(FIRST);
            let event = it.event(row);
            let activity = it.activity(row, &event, agent);
            let symbol = symbol.and_then(|symbol| it.kernels.get(&symbol).copied());
            let launch = Launch {
                work_items: row.integers(FIRST + 3),
                block: row.integers(FIRST + 6),
                shared_memory,
                registers: symbol.and_then(|symbol| symbol.registers),
                ..Launch::default()
            };
            let name = symbol.map(|symbol| symbol.name);
            kernel(&activity, &launch, name, &mut it.reading.records);
        })?;
        self.each(COPIES, &[&COMMON, COPY].concat(), |it, row| {
            let [to, from, name, bytes] = row.integers(FIRST);
            let event = it.event(row);
            let is_device = |agent: &Option<i64>| it.devices.of_agent(*agent).is_some();
            let agent = [to, from].into_iter().find(is_device).flatten();
            let activity = it.activity(row, &event, agent);
            let operation = it.reading.text(name);
            let records = &mut it.reading.records;
            let operation =
                operation.map_or("", |text| records.tables.strings.get(text)).to_owned();
            memory_copy(&activity, &operation, bytes, records);
        })?;
        self.each(REGIONS, &[&COMMON, REGION].concat(), |it, row| {
            let event = it.event(row);
            it.region(row, event);
        })
    }

    fn region(&mut self, row: &Row<'_>, event: Event) {
        let name = self.reading.text(row.integer(FIRST));
        let interface = self.reading.text(event.category);
        let [process, tid, ..] = self.track(row);
        let [start_ns, end_ns] = self.times(row);
        let records = &mut self.reading.records;
        let interface = interface.map_or("", |text| records.tables.strings.get(text));
        let (kind, category) = kind_of_interface(interface);
        let category = records.tables.strings.intern(category);
        let message = event.message.filter(|_| kind == EventKind::Annotation);
        let name = message.map(|text| records.tables.strings.intern(&text)).or(name);
        let lane = thread([self.processes.number(process), self.threads.number(tid)], records);
        let called = event.correlation.filter(|_| kind.is_call());
        let correlation = of_recording(self.number, called);
        records.add(&Record { kind, category, name, lane, start_ns, end_ns, correlation });
    }

    fn activity(&mut self, row: &Row<'_>, event: &Event, agent: Option<i64>) -> Activity {
        let [.., of_track, queue, stream] = self.track(row);
        let [start_ns, end_ns] = self.times(row);
        Activity {
            start_ns,
            end_ns,
            correlation: of_recording(self.number, event.correlation),
            device: self.devices.of_agent(agent.or(of_track)),
            stream: stream.or(queue),
        }
    }

    /// Returns the track of a row: from the row itself, otherwise from the track that it refers to.
    fn track(&self, row: &Row<'_>) -> Track {
        let [track, _, pid, tid, queue, stream] = row.integers(4);
        let named = track.and_then(|track| self.tracks.get(&track)).copied().unwrap_or_default();
        [pid.or(named[0]), tid.or(named[1]), named[2], queue.or(named[3]), stream.or(named[4])]
    }

    /// Returns the start and end of a row, which may be in a separate table of times.
    fn times(&mut self, row: &Row<'_>) -> [Option<i64>; 2] {
        let [start_ns, end_ns, start, end] = row.integers(0);
        if start_ns.is_some() {
            return [start_ns, end_ns];
        }
        [start, end].map(|time| {
            let found = self.times.as_mut()?.find(time?, |row| row.integer(0));
            found.flatten()
        })
    }

    fn event(&mut self, row: &Row<'_>) -> Event {
        let Some((number, events)) = row.integer(5).zip(self.events.as_mut()) else {
            return Event::default();
        };
        let found = events.find(number, Event::of);
        let records = &mut self.reading.records;
        if found.is_none() {
            records.note(Code::MissingRows);
        }
        let event = found.unwrap_or_default();
        if event.is_damaged {
            records.note(Code::DamagedText);
        }
        event
    }

    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&mut Self, &Row<'_>),
    ) -> Result<()> {
        let (database, name) = (self.reading.database, format!("{table}{}", self.id));
        let end = database.each(&name, columns, &mut |row| {
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
