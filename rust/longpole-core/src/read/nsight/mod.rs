//! SQLite exports of Nsight Systems (`nsys export --type sqlite`).
//!
//! Each type of record has a table, mostly as received from CUPTI. The events get the kinds,
//! categories, names and arguments that Kineto uses for the same records, so that later stages
//! handle both alike.
//!
//! | tables | events |
//! |---|---|
//! | `CUPTI_ACTIVITY_KIND_KERNEL`, `_MEMCPY`, `_MEMSET`, `_GRAPH_TRACE` | GPU activities (`device`) |
//! | `CUPTI_ACTIVITY_KIND_RUNTIME`, `_DRIVER`, `OSRT_API`, `..OVERHEAD` | calls (`calls`) |
//! | `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`, `_CUDA_EVENT` | waits (`waits`) |
//! | `NVTX_EVENTS` | annotations, and operators of `emit_nvtx` (`ranges`) |
//! | `GPU_METRICS`, `CUDA_GPU_MEMORY_USAGE_EVENTS` | counters (`counters`) |
//!
//! Limits: CPU samples and context switches are not read. The file contains no rank. Without
//! `CUDA_EVENT` records, the event that a wait refers to is unknown.

mod calls;
mod device;
mod export;
mod header;
mod ranges;

use super::options::Options;
use super::recent::ByNumber;
use super::records::Records;
use super::sqlite::{Database, Reading, Rows, Texts};
use crate::diagnostics::Code;
use crate::error::Result;
use crate::progress::Progress;
use crate::tables::Tables;
use export::{ARGUMENTS, Export, Places};

/// The tables that are read as records.
const TABLES: &[&str] = &[
    device::KERNELS,
    device::COPIES,
    device::FILLS,
    device::GRAPHS,
    calls::RUNTIME,
    calls::DRIVER,
    calls::SYSTEM,
    calls::OVERHEAD,
    calls::PROFILER_OVERHEAD,
    calls::RECORDS,
    calls::WAITS,
    ranges::RANGES,
    device::METRICS,
    device::MEMORY_USAGE,
];

/// The table of the profiler's messages about the recording.
const MESSAGES: &str = "DIAGNOSTIC_EVENT";

/// Tables that only such exports have.
const TELLING: &[&str] = &["ENUM_NSYS_EVENT_TYPE", "TARGET_INFO_SESSION_START_TIME"];

/// Whether a database is an export of Nsight Systems.
pub(super) fn is_export(database: &Database) -> bool {
    let is_known = |name: &&str| database.has(name);
    TELLING.iter().any(is_known) || database.has("StringIds") && TABLES.iter().any(is_known)
}

/// Reads the tables of an export.
pub(super) fn read(
    database: &Database,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut records = Records::new(ARGUMENTS, options);
    let texts = Texts::of(database, ["StringIds", "id", "value"], &mut records)?;
    let rows = Rows::of(TABLES.iter().copied(), database);
    let reading = Reading::new(database, records, texts, rows, progress);
    let mut export = Export { reading, places: Places::default(), call_names: ByNumber::default() };
    export.device()?;
    export.calls()?;
    export.waits()?;
    export.ranges()?;
    export.counters()?;
    export.names()?;
    export.note_unread();
    let header = export.header()?;
    export.reading.note_lookups(&[]);
    database.note_damaged_pages(&mut export.reading.records, progress)?;
    export.reading.records.finish(header, database.n_bytes)
}

impl Export<'_> {
    /// Reports record tables that are not read.
    fn note_unread(&mut self) {
        for _ in self.unread_tables() {
            self.reading.records.note(Code::UnreadTable);
        }
    }

    /// Returns the record tables that are not read.
    fn unread_tables(&self) -> Vec<String> {
        let database = self.reading.database;
        let is_unread = |name: &&String| {
            let columns = database.columns(name);
            let has = |wanted: &str| columns.iter().any(|column| column == wanted);
            !TABLES.contains(&name.as_str())
                && name.as_str() != MESSAGES
                && (has("start") || has("timestamp"))
                && (has("globalTid") || has("globalPid") || has("gpuId") || has("typeId"))
                && database.n_rows(std::iter::once(name.as_str())) > 0
        };
        database.names().iter().filter(is_unread).cloned().collect()
    }
}
