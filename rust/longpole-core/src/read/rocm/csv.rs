//! Reads CSV files: those that `rocprofv3` wrote for a process, or the one of `rocprof` 1 and 2.
//!
//! Columns are found by their names, which differ between versions in case and in `_` and `-`.
//! Offsets of findings count the bytes of all files in the order in which they were read.
//!
//! Limits: copies have no size. Without `_agent_info.csv`, the device number is the agent number.
//! `rocprof` 1 and 2 record the total number of work items in all dimensions, so a kernel has no
//! grid.

use std::collections::HashMap;
use std::path::Path;

use super::activities::{
    ARGUMENTS, Activity, Devices, Launch, kernel, kind_of_interface, memory_copy, of_recording,
    registers, thread,
};
use super::layout::{Refused, Rows as Kind, files, rows_of, rows_with};
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::read::csv::{Row, Rows};
use crate::read::options::Options;
use crate::read::records::{Record, Records};
use crate::read::source;
use crate::read::window::Window;
use crate::tables::{Header, Tables};
use serde_json::json;

/// Whether a file is one of these, judged by its first bytes; an error for those that cannot be
/// read.
pub(in crate::read) fn is_csv(head: &[u8]) -> std::result::Result<bool, Refused> {
    rows_of(head).map_or(Ok(false), |found| found.map(|_| true))
}

/// Reads the file in a window, and the files next to its path.
pub(in crate::read) fn read(
    window: Window<'_>,
    path: Option<&Path>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let compression = window.compression();
    let mut records = Records::new(ARGUMENTS, options);
    records.diagnostics = diagnostics;
    let mut trace = Trace::new(records, progress);
    let mut given = Some(window);
    for file in path.map_or_else(|| vec![Path::new("").to_owned()], files) {
        let is_given = path.is_none_or(|path| path == file);
        let window = match given.take_if(|_| is_given) {
            Some(window) => window,
            None => Window::of_file(source::open_regular(&file)?, options.max_bytes)?,
        };
        trace.file(window, &file)?;
        if trace.is_limited() {
            break;
        }
    }
    if !trace.has_events && !trace.is_limited() {
        return Err(Error::new(NOTHING, 0));
    }
    let files = ("files".to_owned(), json!(trace.files).to_string());
    let fields = trace.agents.devices.properties().into_iter().chain([files]).collect();
    let format = if trace.is_old { "rocprof-csv" } else { "rocprofv3-csv" };
    let header = Header { fields, format, compression, ..Header::default() };
    trace.records.finish(header, trace.n_bytes)
}

const NOTHING: ErrorKind = ErrorKind::OtherKind {
    what: "a CSV file of rocprofv3 without kernels, copies and calls",
    hint: "record with `rocprofv3 --kernel-trace --hip-trace` and give the `_kernel_trace.csv`",
};

/// The state of reading the files.
struct Trace<'a> {
    records: Records<'a>,
    progress: Progress<'a>,
    agents: Agents,
    /// The recordings in the rows, in order of first occurrence.
    recordings: HashMap<Vec<u8>, i64>,
    /// The files read: the name of each, and the number of bytes read.
    files: Vec<serde_json::Value>,
    n_bytes: u64,
    has_events: bool,
    /// Whether `rocprof` 1 or 2 wrote it.
    is_old: bool,
}

impl<'a> Trace<'a> {
    fn new(records: Records<'a>, progress: Progress<'a>) -> Self {
        Self {
            records,
            progress,
            agents: Agents::default(),
            recordings: HashMap::new(),
            files: Vec::new(),
            n_bytes: 0,
            has_events: false,
            is_old: false,
        }
    }

    /// Whether a limit of the caller is reached.
    fn is_limited(&self) -> bool {
        self.records.diagnostics.count(Code::LimitReached) > 0
    }

    /// Reads one file. The offsets of its findings are relative to the start of the file; joining
    /// the files makes them absolute.
    fn file(&mut self, window: Window<'a>, path: &Path) -> Result<()> {
        let before = std::mem::take(&mut self.records.diagnostics);
        let mut found = Diagnostics::default();
        let (mut rows, columns) = Rows::of(window, &mut found, self.progress)?;
        self.records.offset = Some(0);
        let mut n_rows = 0_u64;
        match rows_with(&columns) {
            Some(Ok(Kind::Others)) => self.records.note(Code::UnreadTable),
            Some(Ok(kind)) => n_rows = self.rows(kind, &columns, &mut rows, &mut found)?,
            None | Some(Err(_)) => self.records.note(Code::MalformedHeader),
        }
        found.append(&self.records.diagnostics);
        self.records.diagnostics = before;
        self.records.diagnostics.append_at(&found, self.n_bytes);
        self.n_bytes += rows.offset();
        let name = path.file_name().map(|name| name.to_string_lossy());
        self.files.push(json!({"name": name, "rows": n_rows, "bytes": rows.offset()}));
        Ok(())
    }

    /// Reads the rows of a file. Returns their number.
    fn rows(
        &mut self,
        kind: Kind,
        columns: &[String],
        rows: &mut Rows<'a>,
        found: &mut Diagnostics,
    ) -> Result<u64> {
        let columns = Columns::of(columns);
        self.has_events |= kind != Kind::Agents;
        self.is_old |= columns.is_old && kind == Kind::Kernels;
        let mut n_rows = 0;
        while !self.records.is_full() {
            let Some(row) = rows.next(found)? else { break };
            self.records.offset = Some(row.offset);
            if row.is_last && is_cut(&columns, &row) {
                self.records.note(Code::Truncated);
                break;
            }
            if row.is_last {
                self.records.note(Code::MissingEnd);
            }
            match kind {
                Kind::Kernels => self.kernel(&columns, &row),
                Kind::Copies => self.copy(&columns, &row),
                Kind::Calls => self.call(&columns, &row),
                Kind::Agents => self.agent(&columns, &row),
                Kind::Others => {}
            }
            n_rows += 1;
        }
        Ok(n_rows)
    }

    fn kernel(&mut self, columns: &Columns, row: &Row<'_>) {
        let Some(activity) = self.activity(columns, columns.agent, row) else { return };
        let launch = Launch {
            work_items: columns.work_items.map(|size| self.size(size, row)),
            block: columns.block.map(|size| self.size(size, row)),
            shared_memory: self.size(columns.shared_memory, row),
            registers: registers(
                self.size(columns.registers, row),
                self.size(columns.accumulation, row),
            ),
            ..Launch::default()
        };
        let name = row.text(columns.kernel).map(|name| self.records.text(name));
        kernel(&activity, &launch, name, &mut self.records);
    }

    fn copy(&mut self, columns: &Columns, row: &Row<'_>) {
        let direction = String::from_utf8_lossy(row.text(columns.direction).unwrap_or_default());
        let agent = match direction.trim_start_matches("MEMORY_COPY_").split_once("_TO_") {
            Some((_, "DEVICE")) => columns.to,
            Some(("DEVICE", _)) => columns.from,
            _ => None,
        };
        let Some(activity) = self.activity(columns, agent, row) else { return };
        memory_copy(&activity, &direction, None, &mut self.records);
    }

    /// Returns the activity on the device of an agent; `None` without times.
    fn activity(
        &mut self,
        columns: &Columns,
        agent: Option<usize>,
        row: &Row<'_>,
    ) -> Option<Activity> {
        let [start_ns, end_ns] = self.times(columns, row)?;
        let recording = self.recording(columns, row);
        let correlation = self.number(Code::BadId, columns.correlation, row);
        Some(Activity {
            start_ns,
            end_ns,
            correlation: of_recording(recording, correlation),
            device: self.agents.device(recording, row.text(agent)),
            stream: self.stream(columns, row),
        })
    }

    fn call(&mut self, columns: &Columns, row: &Row<'_>) {
        let Some([start_ns, end_ns]) = self.times(columns, row) else { return };
        let recording = self.recording(columns, row);
        let interface = String::from_utf8_lossy(row.text(columns.domain).unwrap_or_default());
        let (kind, category) = kind_of_interface(&interface);
        let place = [columns.process, columns.thread];
        let place = place.map(|place| self.number(Code::BadId, place, row));
        let called = columns.correlation.filter(|_| kind.is_call());
        let called = self.number(Code::BadId, called, row);
        let name = row.text(columns.function).map(|name| self.records.text(name));
        let lane = thread(place, &mut self.records);
        let category = self.records.tables.strings.intern(category);
        let correlation = of_recording(recording, called);
        self.records.add(&Record { kind, category, name, lane, start_ns, end_ns, correlation });
    }

    fn agent(&mut self, columns: &Columns, row: &Row<'_>) {
        let recording = self.recording(columns, row);
        let numbers = [columns.logical_node, columns.node];
        let numbers = numbers.map(|number| self.number(Code::BadId, number, row));
        if row.text(columns.agent_type) == Some(b"GPU") {
            let name = row.text(columns.product).map(String::from_utf8_lossy);
            self.agents.add((recording, numbers), name.as_deref());
        }
    }

    /// Returns the start and end of a row; `None` if unknown, which is reported.
    fn times(&mut self, columns: &Columns, row: &Row<'_>) -> Option<[Option<i64>; 2]> {
        let start_ns = self.time(Code::BadTimestamp, columns.start, row);
        if start_ns.is_none() && row.text(columns.start).is_some() {
            return None;
        }
        Some([start_ns, self.time(Code::InvalidNumber, columns.end, row)])
    }

    /// Parses a time in whole nanoseconds; `None` if it is missing, or malformed, which is
    /// reported.
    fn time(&mut self, fault: Code, column: Option<usize>, row: &Row<'_>) -> Option<i64> {
        let time_ns = nanoseconds(row.text(column)?);
        if time_ns.is_none() {
            self.records.note(fault);
        }
        time_ns
    }

    fn stream(&mut self, columns: &Columns, row: &Row<'_>) -> Option<i64> {
        let column = columns.stream.filter(|&stream| row.text(Some(stream)).is_some());
        self.number(Code::BadId, column.or(columns.queue), row)
    }

    fn size(&mut self, column: Option<usize>, row: &Row<'_>) -> Option<i64> {
        self.number(Code::InvalidNumber, column, row)
    }

    /// Parses an integer; `None` if it is missing, or invalid, which is reported.
    fn number(&mut self, fault: Code, column: Option<usize>, row: &Row<'_>) -> Option<i64> {
        let text = row.text(column)?;
        let number = integer(text);
        if number.is_none() {
            self.records.note(fault);
        }
        number
    }

    /// Returns the recording of a row: a file may contain several with overlapping ids.
    fn recording(&mut self, columns: &Columns, row: &Row<'_>) -> i64 {
        let Some(name) = row.text(columns.recording) else { return 0 };
        if let Some(&number) = self.recordings.get(name) {
            return number;
        }
        let number = i64::try_from(self.recordings.len()).unwrap_or(i64::MAX);
        self.recordings.insert(name.to_owned(), number);
        number
    }
}

/// Whether the last row of a file lost digits at its end, where call files have the end time.
fn is_cut(columns: &Columns, row: &Row<'_>) -> bool {
    let [start_ns, end_ns] = [columns.start, columns.end].map(|time| nanoseconds(row.text(time)?));
    end_ns < start_ns
}

/// Parses a time, rounded to whole nanoseconds. Programs that average or merge the rows of
/// `rocprofv3` write fractions (`564450429888574.8`), and exponents (`1.70416151142e+18`) for
/// doubles.
fn nanoseconds(text: &[u8]) -> Option<i64> {
    if let Some(whole_ns) = integer(text) {
        return Some(whole_ns);
    }
    let text = std::str::from_utf8(text).ok()?;
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => {
            let whole_ns: i64 = whole.parse().ok()?;
            let rounds_up = fraction.as_bytes().first().is_some_and(|&tenths| tenths >= b'5');
            let away = if whole.starts_with('-') { -1 } else { 1 };
            whole_ns.checked_add(if rounds_up { away } else { 0 })
        }
        _ => of_double(text.parse().ok()?),
    }
}

/// Returns a double as an integer, if it fits.
#[allow(clippy::cast_possible_truncation)] // it is in range
fn of_double(time_ns: f64) -> Option<i64> {
    const LIMIT: f64 = 9.2e18;
    (time_ns.abs() < LIMIT).then(|| time_ns.round() as i64)
}

/// Parses an integer, optionally with `.0`, as pandas writes the integers of a column with missing
/// values.
fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

/// The devices by agent number: rows contain the logical node, or the node.
#[derive(Default)]
struct Agents {
    of_number: [HashMap<(i64, i64), i64>; 2],
    n_devices: HashMap<i64, i64>,
    devices: Devices,
}

impl Agents {
    /// Adds the next device of a recording.
    fn add(&mut self, (recording, numbers): (i64, [Option<i64>; 2]), name: Option<&str>) {
        let next = self.n_devices.entry(recording).or_default();
        let device = *next;
        *next += 1;
        self.devices.add(device, device, name);
        for (of_number, number) in self.of_number.iter_mut().zip(numbers) {
            if let Some(number) = number {
                of_number.entry((recording, number)).or_insert(device);
            }
        }
    }

    /// Returns the device of `GPU 0`, `Agent 4` or 4. Without a list of agents, it is the number
    /// itself.
    fn device(&self, recording: i64, agent: Option<&[u8]>) -> Option<i64> {
        let text = agent?;
        let digits = text.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        let number = integer(&text[digits..])?;
        if text.starts_with(b"GPU") {
            return Some(number);
        }
        if self.n_devices.is_empty() {
            return Some(number).filter(|_| !text.starts_with(b"CPU"));
        }
        self.of_number.iter().find_map(|known| known.get(&(recording, number)).copied())
    }
}

/// The columns of a file, as far as it has them.
struct Columns {
    start: Option<usize>,
    end: Option<usize>,
    correlation: Option<usize>,
    recording: Option<usize>,
    kernel: Option<usize>,
    agent: Option<usize>,
    stream: Option<usize>,
    queue: Option<usize>,
    work_items: [Option<usize>; 3],
    block: [Option<usize>; 3],
    shared_memory: Option<usize>,
    registers: Option<usize>,
    accumulation: Option<usize>,
    direction: Option<usize>,
    from: Option<usize>,
    to: Option<usize>,
    domain: Option<usize>,
    function: Option<usize>,
    process: Option<usize>,
    thread: Option<usize>,
    node: Option<usize>,
    logical_node: Option<usize>,
    agent_type: Option<usize>,
    product: Option<usize>,
    /// Whether the columns are named as in `rocprof` 1 or 2.
    is_old: bool,
}

impl Columns {
    /// Finds the columns by their [normalized names](crate::read::csv::columns).
    fn of(columns: &[String]) -> Self {
        let one = |name: &str| columns.iter().position(|column| column == name);
        let any = |names: [&str; 2]| names.into_iter().find_map(one);
        let axes = |name: &str| ["x", "y", "z"].map(|axis| one(&format!("{name}{axis}")));
        Self {
            start: any(["starttimestamp", "beginns"]),
            end: any(["endtimestamp", "endns"]),
            correlation: one("correlationid"),
            recording: one("guid"),
            kernel: one("kernelname"),
            agent: any(["agentid", "gpuid"]),
            stream: one("streamid"),
            queue: one("queueid"),
            work_items: axes("gridsize"),
            block: axes("workgroupsize"),
            shared_memory: any(["ldsblocksize", "groupsegmentsize"])
                .or_else(|| any(["ldsperworkgroup", "lds"])),
            registers: any(["vgprcount", "archvgpr"]),
            accumulation: any(["accumvgprcount", "accumvgpr"]),
            direction: one("direction"),
            from: one("sourceagentid"),
            to: one("destinationagentid"),
            domain: one("domain"),
            function: one("function"),
            process: one("processid"),
            thread: one("threadid"),
            node: one("nodeid"),
            logical_node: one("logicalnodeid"),
            agent_type: one("agenttype"),
            product: any(["productname", "name"]),
            is_old: one("gpuid").is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_have_a_fraction_or_a_power_of_ten() {
        for (text, time_ns) in [
            ("564450429888574", Some(564_450_429_888_574)),
            ("564450429888574.8", Some(564_450_429_888_575)),
            ("564450429888574.25", Some(564_450_429_888_574)),
            ("1704161511420000123.5", Some(1_704_161_511_420_000_124)),
            ("1.5e+3", Some(1_500)),
            ("-0.75", Some(-1)),
            ("12.5x", None),
            ("nan", None),
            ("1e30", None),
            ("", None),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), time_ns, "{text}");
        }
    }
}
