//! Reads the metadata of an export: devices, versions, recording time, and the names of processes
//! and threads.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::MESSAGES;
use super::export::{Export, GlobalId, texts};
use crate::error::Result;
use crate::ids::StringId;
use crate::read::sqlite::Row;
use crate::tables::Header;
use serde_json::{Map, Value};

/// Device columns, and Kineto's names for them.
const DEVICES: &[(&str, &str)] = &[
    ("cuDevice|id", "id"),
    ("name", "name"),
    ("totalMemory", "totalGlobalMem"),
    ("computeMajor", "computeMajor"),
    ("computeMinor", "computeMinor"),
    ("maxThreadsPerBlock", "maxThreadsPerBlock"),
    ("maxRegistersPerBlock", "regsPerBlock"),
    ("maxRegistersPerSm", "regsPerMultiprocessor"),
    ("threadsPerWarp", "warpSize"),
    ("maxShmemPerBlock", "sharedMemPerBlock"),
    ("maxShmemPerBlockOptin", "sharedMemPerBlockOptin"),
    ("maxShmemPerSm", "sharedMemPerMultiprocessor"),
    ("smCount", "numSms"),
];

/// Severities of profiler messages that are kept: warnings and errors, but not verbose messages,
/// which have a larger number.
const GRAVE: std::ops::RangeInclusive<i64> = 2..=3;

/// Maximum number of messages kept, and maximum length of each.
const MOST_MESSAGES: usize = 20;

const LONGEST_MESSAGE: usize = 300;

/// Metadata of the export that is kept.
const VERSIONS: &[&str] =
    &["EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION"];

impl Export<'_> {
    /// Reads the metadata.
    pub(super) fn header(&mut self) -> Result<Header> {
        let mut base_time_ns = None;
        self.describe("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |row| {
            base_time_ns = base_time_ns.or(row.integer(0));
        })?;
        let mut devices = Vec::new();
        let columns: Vec<_> = DEVICES.iter().map(|&(column, _)| column).collect();
        self.describe("TARGET_INFO_GPU", &columns, |row| devices.push(Value::Object(device(row))))?;
        let mut versions = Map::new();
        self.describe("META_DATA_EXPORT", &["name", "value"], |row| {
            let text = |column| row.text(column).map(String::from_utf8_lossy);
            if let (Some(name), Some(value)) = (text(0), text(1))
                && VERSIONS.contains(&name.as_ref())
            {
                versions.insert(name.into_owned(), Value::from(value));
            }
        })?;
        let mut fields = vec![("nsight".to_owned(), Value::Object(versions).to_string())];
        for (name, texts) in
            [("profiler_messages", self.messages()?), ("unread_tables", self.unread_tables())]
        {
            if !texts.is_empty() {
                fields.push((name.to_owned(), Value::from(texts).to_string()));
            }
        }
        if !devices.is_empty() {
            fields.push(("deviceProperties".to_owned(), Value::Array(devices).to_string()));
        }
        Ok(Header { fields, base_time_ns, format: "nsight-sqlite", ..Header::default() })
    }

    /// Returns the profiler's warnings and errors about its own recording, each once.
    fn messages(&mut self) -> Result<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        self.describe(MESSAGES, &["severity", "text"], |row| {
            let is_grave = row.integer(0).is_some_and(|severity| GRAVE.contains(&severity));
            let Some(text) = row.text(1).filter(|_| is_grave && found.len() < MOST_MESSAGES) else {
                return;
            };
            let text: String =
                String::from_utf8_lossy(text).trim().chars().take(LONGEST_MESSAGE).collect();
            if !text.is_empty() && !found.contains(&text) {
                found.push(text);
            }
        })?;
        Ok(found)
    }

    /// Calls `take` with every row of a table that contains no records.
    fn describe(
        &mut self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&Row<'_>),
    ) -> Result<()> {
        let end = self.reading.database.each(table, columns, &mut |row| {
            take(row);
            Ok(ControlFlow::Continue(()))
        })?;
        self.reading.note_end(end);
        Ok(())
    }

    /// Reads the names of processes and threads with events.
    pub(super) fn names(&mut self) -> Result<()> {
        let places = self.reading.records.places().iter();
        let on_host = places.filter(|place| place.device.is_none());
        let threads: HashSet<_> = on_host.map(|place| (place.process, place.thread)).collect();
        let processes: HashSet<StringId> = threads.iter().map(|&(process, _)| process).collect();
        self.each("PROCESSES", &["globalPid", "name"], |export, row| {
            let records = &mut export.reading.records;
            let (process, thread) = texts(GlobalId(row.integer(0).unwrap_or(0)), records);
            if let Some(name) = row.text(1).filter(|_| processes.contains(&process)) {
                let name = records.text(name);
                records.state("process_name", process, thread, name);
            }
        })?;
        self.each("ThreadNames", &["globalTid", "nameId"], |export, row| {
            let id = GlobalId(row.integer(0).unwrap_or(0));
            let (process, thread) = texts(id, &mut export.reading.records);
            if !threads.contains(&(process, thread)) {
                return;
            }
            if let Some(name) = export.reading.text(row.integer(1)) {
                export.reading.records.state("thread_name", process, thread, name);
            }
        })
    }
}

fn device(row: &Row<'_>) -> Map<String, Value> {
    let value = |column| match (row.integer(column), row.text(column)) {
        (Some(number), _) => Some(Value::from(number)),
        (None, Some(text)) => Some(Value::from(String::from_utf8_lossy(text))),
        (None, None) => None,
    };
    let names = DEVICES.iter().enumerate();
    names.filter_map(|(column, &(_, name))| Some((name.to_owned(), value(column)?))).collect()
}
