//! Reads databases of rocmProfileData (`trace.rpd`), which `runTracer.sh` writes.
//!
//! | table | events |
//! |---|---|
//! | `rocpd_api` | calls, ranges of roctx and NVTX, and ranges of libraries, by `domain` |
//! | `rocpd_hsaApi` | driver calls |
//! | `rocpd_op` | kernels, copies and memsets; barriers do not count as GPU activities |
//! | `rocpd_monitor` | counters |
//!
//! `rocpd_api_ops` links each call to its activities. Launch parameters and sizes belong to the
//! call, or in the first version of the schema to the activity. Versions 1 and 2 have no domains:
//! there, a call of HIP or CUDA is identified by its name.
//!
//! Limits: the stream is the queue of the hardware, of which HIP streams share a few. The file
//! contains no names of devices and no rank. Stack frames and hardware counters are not read.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::activities::{
    ARGUMENTS, Activity, Launch, barrier, fill, kernel, kind_of_interface, memory_copy, thread,
};
use crate::error::Result;
use crate::ids::StringId;
use crate::progress::Progress;
use crate::read::options::Options;
use crate::read::records::{Record, Records};
use crate::read::sqlite::{Database, Finder, Reading, Row, Rows, Texts};
use crate::tables::{EventKind, Header, Tables};

const CALLS: &str = "rocpd_api";
const HSA_CALLS: &str = "rocpd_hsaApi";
const ACTIVITIES: &str = "rocpd_op";
const LINKS: &str = "rocpd_api_ops";
const SAMPLES: &str = "rocpd_monitor";
const TABLES: [&str; 5] = [CALLS, HSA_CALLS, ACTIVITIES, LINKS, SAMPLES];

/// The table of the arguments of calls since version 3; before, they are with the other strings.
const ARGUMENT_TEXTS: &str = "rocpd_ustring";

/// Columns of calls. Older versions have no domain and no category.
const CALL: &[&str] =
    &["id", "pid", "tid", "start", "end", "apiName_id", "args_id", "domain_id", "category_id"];
const ACTIVITY: &[&str] =
    &["id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"];
const KERNEL: &[&str] = &[
    "groupSegmentSize",
    "gridX",
    "gridY",
    "gridZ|gridz",
    "workgroupX",
    "workgroupY",
    "workgroupZ",
    "kernelName_id",
];
const COPY: &[&str] = &["size", "kind"];

/// The name of the calls that are ranges or marks of the program, whose arguments are their text.
const MARKER: &str = "UserMarker";

/// Whether a database is one of rocmProfileData.
pub(in crate::read) fn is_rpd(database: &Database) -> bool {
    database.has("rocpd_string") && [CALLS, ACTIVITIES].iter().any(|table| database.has(table))
}

/// Reads the tables of a database.
pub(in crate::read) fn read(
    database: &Database,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut records = Records::new(ARGUMENTS, options);
    let texts = Texts::of(database, ["rocpd_string", "id", "string"], &mut records)?;
    let rows = Rows::of(TABLES.iter().copied(), database);
    let reading = Reading::new(database, records, texts, rows, progress);
    let mut trace = Trace {
        reading,
        call_of: HashMap::new(),
        arguments: database.finder(ARGUMENT_TEXTS, "id", &["string"]),
        kernels: Details::of(database, ["rocpd_kernelapi", "rocpd_kernelop"], KERNEL),
        copies: Details::of(database, ["rocpd_copyapi", "rocpd_copyop"], COPY),
    };
    trace.read()?;
    let others = [&trace.arguments, &trace.kernels.finder, &trace.copies.finder];
    trace.reading.note_lookups(&others);
    let mut records = trace.reading.records;
    database.note_damaged_pages(&mut records, progress)?;
    records.finish(Header { format: "rpd", ..Header::default() }, database.n_bytes)
}

/// Rows with details of a kernel or copy, by the call or, in the first version, by the activity.
struct Details<'a> {
    finder: Option<Finder<'a>>,
    is_of_call: bool,
}

impl<'a> Details<'a> {
    fn of(database: &'a Database, [by_call, by_activity]: [&str; 2], columns: &[&str]) -> Self {
        let key = |key| database.finder(by_call, key, columns);
        match key("api_ptr_id").or_else(|| key("api_id")) {
            Some(finder) => Self { finder: Some(finder), is_of_call: true },
            None => Self {
                finder: database.finder(by_activity, "op_ptr_id", columns),
                is_of_call: false,
            },
        }
    }

    fn find<T>(
        &mut self,
        call: Option<i64>,
        activity: Option<i64>,
        take: impl FnOnce(&Row<'_>) -> T,
    ) -> Option<T> {
        let number = if self.is_of_call { call } else { activity };
        self.finder.as_mut()?.find(number?, take)
    }
}

/// The state of reading one database.
struct Trace<'a> {
    reading: Reading<'a>,
    /// The call that launched each activity.
    call_of: HashMap<i64, i64>,
    arguments: Option<Finder<'a>>,
    kernels: Details<'a>,
    copies: Details<'a>,
}

/// What an activity does, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Kernel,
    Copy,
    Fill,
    Barrier,
}

impl Work {
    /// Returns the meaning of `CopyHostToDevice`, `Memcpy`, `FillBuffer` or `Barrier`.
    fn of_type(name: &str, description: &str) -> Self {
        if name.contains("Fill") || name.contains("Memset") || description == "Fill" {
            Self::Fill
        } else if name.starts_with("Copy") || name.contains("Memcpy") {
            Self::Copy
        } else if name.contains("Barrier") || name.contains("Marker") {
            Self::Barrier
        } else {
            Self::Kernel
        }
    }
}

impl Trace<'_> {
    fn read(&mut self) -> Result<()> {
        self.each(LINKS, &["api_id", "op_id"], |it, row| {
            if let [Some(call), Some(activity)] = row.integers(0) {
                it.call_of.insert(activity, call);
            }
        })?;
        self.each(CALLS, CALL, Self::call)?;
        self.each(HSA_CALLS, CALL, |it, row| {
            let name = it.reading.text(row.integer(5));
            it.add_call(row, kind_of_interface("HSA_"), name, None);
        })?;
        self.each(ACTIVITIES, ACTIVITY, Self::activity)?;
        let columns = ["deviceType", "deviceId", "monitorType", "start", "value"];
        self.each(SAMPLES, &columns, Self::sample)
    }

    fn call(&mut self, row: &Row<'_>) {
        let [name, _, domain, category] = row.integers(5);
        let name = self.reading.text(name);
        let [domain, category] = [domain, category].map(|id| self.reading.text(id));
        let get =
            |id: Option<StringId>| id.map_or("", |id| self.reading.records.tables.strings.get(id));
        let is_marker = get(name) == MARKER;
        let kind = kind_of_call(get(name), get(domain), get(category));
        if is_marker {
            let [start_ns, end_ns] = row.integers(3);
            let is_mark = start_ns == end_ns;
            let kind = if is_mark { (EventKind::Instant, "cpu_instant_event") } else { kind };
            let text = self.argument_text(row.integer(6)).or(name);
            self.add_call(row, kind, text, None);
        } else {
            self.add_call(row, kind, name, row.integer(0).filter(|_| kind.0.is_call()));
        }
    }

    /// Returns the text of a marker.
    fn argument_text(&mut self, number: Option<i64>) -> Option<StringId> {
        let Some(finder) = self.arguments.as_mut() else { return self.reading.text(number) };
        let records = &mut self.reading.records;
        finder.find(number?, |row| Some(records.text(row.text(0)?))).flatten()
    }

    fn add_call(
        &mut self,
        row: &Row<'_>,
        (kind, category): (EventKind, &'static str),
        name: Option<StringId>,
        correlation: Option<i64>,
    ) {
        let [process, tid, start_ns, end_ns] = row.integers(1);
        let records = &mut self.reading.records;
        let category = records.tables.strings.intern(category);
        let lane = thread([process, tid], records);
        records.add(&Record { kind, category, name, lane, start_ns, end_ns, correlation });
    }

    fn activity(&mut self, row: &Row<'_>) {
        let [number, device, queue, start_ns, end_ns, description, of_type] = row.integers(0);
        if device.is_some_and(|device| device < 0) {
            return; // a range of the program, which some versions repeat here
        }
        let correlation = number.and_then(|number| self.call_of.get(&number).copied());
        let activity = Activity { start_ns, end_ns, correlation, device, stream: queue };
        let [name, of_type] = [description, of_type].map(|id| self.reading.text(id));
        let strings = &self.reading.records.tables.strings;
        let [text, type_name] =
            [name, of_type].map(|id| id.map_or("", |id| strings.get(id)).to_owned());
        let name = name.filter(|_| !text.is_empty());
        match Work::of_type(&type_name, &text) {
            Work::Kernel => self.kernel(&activity, number, name.or(of_type)),
            Work::Copy => {
                let found = self.copies.find(correlation, number, |row| row.integers(0));
                let [bytes, kind] = found.unwrap_or_default();
                let operation = direction(&type_name, kind);
                memory_copy(&activity, operation, bytes, &mut self.reading.records);
            }
            Work::Fill => fill(&activity, &mut self.reading.records),
            Work::Barrier => barrier(&activity, of_type, &mut self.reading.records),
        }
    }

    fn kernel(&mut self, activity: &Activity, number: Option<i64>, name: Option<StringId>) {
        let found = self.kernels.find(activity.correlation, number, |row| row.integers(0));
        let [shared_memory, grid_x, grid_y, grid_z, x, y, z, own] = found.unwrap_or_default();
        let block = [x, y, z];
        let sizes = [grid_x, grid_y, grid_z];
        let launch = if self.kernels.is_of_call {
            Launch { blocks: sizes, block, shared_memory, ..Launch::default() }
        } else {
            Launch { work_items: sizes, block, shared_memory, ..Launch::default() }
        };
        let name = name.or_else(|| self.reading.text(own));
        kernel(activity, &launch, name, &mut self.reading.records);
    }

    fn sample(&mut self, row: &Row<'_>) {
        let records = &mut self.reading.records;
        let [kind, what, value] =
            [0, 2, 4].map(|column| row.text(column).map(String::from_utf8_lossy));
        let [device] = row.integers(1);
        let device = device.map_or_else(String::new, |device| format!(" {device}"));
        let kind = kind.as_deref().unwrap_or("gpu").to_uppercase();
        let name = format!("{kind}{device} {}", what.as_deref().unwrap_or("sample"));
        let number = row.number(4).or_else(|| value?.trim().parse().ok());
        let [name, series, process] =
            [name.as_str(), "value", device.trim()].map(|text| records.tables.strings.intern(text));
        records.sample(name, series, process, row.integer(3), number);
    }

    fn each(
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

/// Returns the kind of a call, by its domain or, without one, by its name.
fn kind_of_call(name: &str, domain: &str, category: &str) -> (EventKind, &'static str) {
    let is_range = category == "user_scope" || name == MARKER;
    match domain {
        "roctx" | "nvtx" => (EventKind::Annotation, "user_annotation"),
        "torch" if is_range => (EventKind::Annotation, "user_annotation"),
        "torch" => (EventKind::Operator, "cpu_op"),
        "rpd_tracer" => (EventKind::Overhead, "overhead"),
        "cuda" => (EventKind::Runtime, "cuda_runtime"),
        "hip" => kind_of_interface("HIP_"),
        _ if is_range => (EventKind::Annotation, "user_annotation"),
        "" if name.starts_with("overhead") => (EventKind::Overhead, "overhead"),
        "" if name.starts_with("hsa_") => kind_of_interface("HSA_"),
        "" if name.trim_start_matches('_').starts_with("hip") => kind_of_interface("HIP_"),
        "" if name.starts_with("cu") => (EventKind::Runtime, "cuda_runtime"),
        _ => kind_of_interface(""),
    }
}

/// Returns the direction of a copy, by its type or by the number that the call passed.
fn direction(type_name: &str, kind: Option<i64>) -> &'static str {
    const TYPES: [(&str, &str); 4] = [
        ("HostToDevice", "HOST_TO_DEVICE"),
        ("DeviceToHost", "DEVICE_TO_HOST"),
        ("DeviceToDevice", "DEVICE_TO_DEVICE"),
        ("HostToHost", "HOST_TO_HOST"),
    ];
    const KINDS: [&str; 4] =
        ["HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"];
    let of_type = TYPES.iter().find(|(part, _)| type_name.contains(part));
    let of_kind = || KINDS.get(usize::try_from(kind?).ok()?).copied();
    of_type.map(|&(_, known)| known).or_else(of_kind).unwrap_or("UNKNOWN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_its_domain_or_its_name() {
        let kind = |name, domain, category| kind_of_call(name, domain, category).0;
        assert_eq!(kind("hipLaunchKernel", "", ""), EventKind::Runtime);
        assert_eq!(kind("hipLaunchKernel", "hip", ""), EventKind::Runtime);
        assert_eq!(kind("hsa_signal_create", "", ""), EventKind::Driver);
        assert_eq!(kind(MARKER, "", ""), EventKind::Annotation);
        assert_eq!(kind("aten::mm", "torch", "function"), EventKind::Operator);
        assert_eq!(kind("step", "torch", "user_scope"), EventKind::Annotation);
        assert_eq!(kind("flush", "rpd_tracer", "overhead"), EventKind::Overhead);
        assert_eq!(kind("miopenConv", "miopen", "function"), EventKind::Other);
    }

    #[test]
    fn an_activity_is_known_by_its_type() {
        assert_eq!(Work::of_type("KernelExecution", "gemm_Fill"), Work::Kernel);
        assert_eq!(Work::of_type("CopyHostToDevice", ""), Work::Copy);
        assert_eq!(Work::of_type("Memcpy", "SDMA"), Work::Copy);
        assert_eq!(Work::of_type("Memcpy", "Fill"), Work::Fill);
        assert_eq!(Work::of_type("Barrier", ""), Work::Barrier);
        assert_eq!(direction("CopyDeviceToHost2D", Some(1)), "DEVICE_TO_HOST");
        assert_eq!(direction("Memcpy", Some(1)), "HOST_TO_DEVICE");
        assert_eq!(direction("Memcpy", Some(4)), "UNKNOWN");
    }
}
