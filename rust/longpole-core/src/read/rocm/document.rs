//! JSON of `rocprofv3`: one object a process, whose lists of records are read as they stream by.
//!
//! Records name kernels and operations by numbers, which the writer lists before them. A damaged
//! or truncated file keeps the records before the damage.

use std::collections::HashMap;
use std::io::{self, Read};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::activities::{
    ARGUMENTS, Activity, Launch, kernel, kind_of_interface, memory_copy, of_recording, thread,
};
use super::devices::Devices;
use super::fields::{Fields, Paths};
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, Result};
use crate::ids::StringId;
use crate::progress::{Progress, report};
use crate::read::options::Options;
use crate::read::records::{Record, Records};
use crate::read::window::Window;
use crate::tables::{EventKind, Header, Tables};

/// Reads a document.
pub(in crate::read) fn read(
    window: Window<'_>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut records = Records::new(ARGUMENTS, options);
    records.diagnostics = diagnostics;
    let mut trace = Trace { records, devices: Devices::default(), process: Process::default() };
    let compression = window.compression();
    let mut source =
        Source { window, progress, diagnostics: Diagnostics::default(), failure: None };
    let mut input = serde_json::Deserializer::from_reader(io::BufReader::new(&mut source));
    let outcome = Level { trace: &mut trace, place: Place::Document }.deserialize(&mut input);
    drop(input);
    let bytes = source.window.offset();
    if let Some(failure) = source.failure {
        return Err(failure);
    }
    trace.records.diagnostics.append(&source.diagnostics);
    if let Err(error) = outcome
        && !trace.records.is_full()
    {
        let (code, offset) = damage(&error, bytes);
        trace.records.diagnostics.add(code, offset);
    }
    let fields = trace.devices.properties().into_iter().collect();
    let header = Header { fields, format: "rocprofv3-json", compression, ..Header::default() };
    trace.records.finish(header, bytes)
}

/// What ended a document before its end, and at which byte; 0 where the document has several lines,
/// which the writer does not make.
fn damage(error: &serde_json::Error, bytes: u64) -> (Code, u64) {
    match (error.is_eof(), error.line()) {
        (true, _) => (Code::Truncated, bytes),
        (false, 1) => (Code::MalformedEvent, error.column() as u64),
        (false, _) => (Code::MalformedEvent, 0),
    }
}

/// The bytes of a window as they are read.
struct Source<'a> {
    window: Window<'a>,
    progress: Progress<'a>,
    diagnostics: Diagnostics,
    failure: Option<Error>,
}

impl Source<'_> {
    fn fill(&mut self) -> Result<()> {
        report(self.progress, self.window.offset())?;
        if self.window.text().is_empty() {
            self.window.more(&mut self.diagnostics)?;
        }
        Ok(())
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Err(error) = self.fill() {
            self.failure = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        let count = buffer.len().min(self.window.text().len());
        buffer[..count].copy_from_slice(&self.window.text()[..count]);
        self.window.consume(count);
        Ok(count)
    }
}

/// The document on its way into tables.
struct Trace<'a> {
    records: Records<'a>,
    devices: Devices,
    process: Process,
}

/// What is known of the process whose records are read.
#[derive(Default)]
struct Process {
    /// Which of the document it is, from 1.
    place: i64,
    number: Option<i64>,
    kernels: HashMap<i64, StringId>,
    /// The names of operations by their interface.
    operations: Vec<(String, Vec<String>)>,
    /// The texts of markers by their correlation ids.
    markers: HashMap<i64, StringId>,
}

/// Where in the document something stands.
#[derive(Clone, Copy)]
enum Place {
    Document,
    Processes,
    Process,
    Strings,
    Interfaces,
    Buffers,
    List(List),
}

/// A list of objects with members of interest.
#[derive(Clone, Copy)]
enum List {
    Agents,
    Symbols,
    Markers,
    Kernels,
    Copies,
    Calls,
}

const LISTS: &[(&str, List)] = &[
    ("kernel_dispatch", List::Kernels),
    ("memory_copy", List::Copies),
    ("hip_api", List::Calls),
    ("hsa_api", List::Calls),
    ("marker_api", List::Calls),
    ("rccl_api", List::Calls),
];

impl Place {
    /// What stands behind a key.
    fn behind(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Document, "rocprofiler-sdk-tool") => Some(Self::Processes),
            (Self::Process, "agents") => Some(Self::List(List::Agents)),
            (Self::Process, "kernel_symbols") => Some(Self::List(List::Symbols)),
            (Self::Process, "strings") => Some(Self::Strings),
            (Self::Strings, "buffer_records") => Some(Self::Interfaces),
            (Self::Strings, "marker_api") => Some(Self::List(List::Markers)),
            (Self::Process, "buffer_records") => Some(Self::Buffers),
            (Self::Buffers, key) => {
                let list = LISTS.iter().find(|(name, _)| *name == key);
                list.map(|&(_, list)| Self::List(list))
            }
            _ => None,
        }
    }
}

/// One value of the document.
struct Level<'t, 'a> {
    trace: &'t mut Trace<'a>,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for Level<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> std::result::Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.place.behind(&key) {
                Some(place) => map.next_value_seed(Level { trace: &mut *self.trace, place })?,
                None if matches!(self.place, Place::Process) && key == "metadata" => {
                    let found = map.next_value_seed(Paths(&["pid"]))?;
                    self.trace.process.number = found.integer(0);
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> std::result::Result<(), S::Error> {
        loop {
            let is_there = match self.place {
                Place::Processes => {
                    let place = self.trace.process.place + 1;
                    self.trace.process = Process { place, ..Process::default() };
                    let one = Level { trace: &mut *self.trace, place: Place::Process };
                    list.next_element_seed(one)?.is_some()
                }
                Place::Interfaces => {
                    let operations = list.next_element::<Interface>()?;
                    operations.map(|one| self.trace.process.operations.push(one.0)).is_some()
                }
                Place::List(kind) => self.trace.element(kind, &mut list)?,
                _ => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !is_there {
                return Ok(());
            }
            if self.trace.records.is_full() {
                return Err(serde::de::Error::custom("no more records are wanted"));
            }
        }
    }
}

/// The name of an interface and those of its operations.
#[derive(Default)]
struct Interface((String, Vec<String>));

impl<'de> Deserialize<'de> for Interface {
    fn deserialize<D: Deserializer<'de>>(input: D) -> std::result::Result<Self, D::Error> {
        input.deserialize_map(InterfaceVisitor)
    }
}

struct InterfaceVisitor;

impl<'de> Visitor<'de> for InterfaceVisitor {
    type Value = Interface;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the names of an interface")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Interface, M::Error> {
        let mut found = Interface::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => found.0.0 = map.next_value()?,
                "operations" => found.0.1 = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// The times and numbers of a record, which all kinds have.
const TIMES: [&str; 5] = [
    "start_timestamp",
    "end_timestamp",
    "correlation_id.internal",
    "thread_id",
    "stream_id.handle",
];

impl Trace<'_> {
    /// Reads the next element of a list; false at its end.
    fn element<'de, S: SeqAccess<'de>>(
        &mut self,
        kind: List,
        list: &mut S,
    ) -> std::result::Result<bool, S::Error> {
        let [start, end, correlation, thread, stream] = TIMES;
        let found = match kind {
            List::Agents => {
                let paths = ["id.handle", "type", "logical_node_type_id", "product_name", "name"];
                list.next_element_seed(Paths(&paths))?.map(|one| self.agent(&one))
            }
            List::Symbols => {
                let paths = ["kernel_id", "formatted_kernel_name", "kernel_name"];
                list.next_element_seed(Paths(&paths))?.map(|one| self.symbol(&one))
            }
            List::Markers => {
                list.next_element_seed(Paths(&["key", "value"]))?.map(|one| self.marker(&one))
            }
            List::Kernels => {
                let paths = [
                    start,
                    end,
                    correlation,
                    thread,
                    stream,
                    "dispatch_info.agent_id.handle",
                    "dispatch_info.queue_id.handle",
                    "dispatch_info.kernel_id",
                    "dispatch_info.group_segment_size",
                    "dispatch_info.grid_size.x",
                    "dispatch_info.grid_size.y",
                    "dispatch_info.grid_size.z",
                    "dispatch_info.workgroup_size.x",
                    "dispatch_info.workgroup_size.y",
                    "dispatch_info.workgroup_size.z",
                ];
                list.next_element_seed(Paths(&paths))?.map(|one| self.dispatch(&one))
            }
            List::Copies => {
                let paths = [
                    start,
                    end,
                    correlation,
                    thread,
                    stream,
                    "dst_agent_id.handle",
                    "src_agent_id.handle",
                    "kind",
                    "operation",
                    "bytes",
                ];
                list.next_element_seed(Paths(&paths))?.map(|one| self.copy(&one))
            }
            List::Calls => {
                let paths = [start, end, correlation, thread, "kind", "operation"];
                list.next_element_seed(Paths(&paths))?.map(|one| self.call(&one))
            }
        };
        Ok(found.is_some())
    }

    fn agent(&mut self, one: &Fields<5>) {
        /// The type of agents that are devices.
        const DEVICE: i64 = 2;
        if let (Some(agent), Some(DEVICE), Some(device)) =
            (one.integer(0), one.integer(1), one.integer(2))
        {
            let name = one.text(3).filter(|name| !name.is_empty());
            self.devices.add(agent, device, name.or(one.text(4)));
        }
    }

    fn symbol(&mut self, one: &Fields<3>) {
        let name = one.text(1).filter(|name| !name.is_empty()).or(one.text(2));
        if let (Some(number), Some(name)) = (one.integer(0), name) {
            let name = self.records.strings.intern(name);
            self.process.kernels.insert(number, name);
        }
    }

    fn marker(&mut self, one: &Fields<2>) {
        if let (Some(number), Some(text)) = (one.integer(0), one.text(1)) {
            let text = self.records.strings.intern(text);
            self.process.markers.insert(number, text);
        }
    }

    fn dispatch(&mut self, one: &Fields<15>) {
        let activity = Activity {
            start_ns: one.integer(0),
            end_ns: one.integer(1),
            correlation: self.process.correlation(one.integer(2)),
            device: self.devices.of_agent(one.integer(5)),
            stream: one.integer(4).or(one.integer(6)),
        };
        let launch = Launch {
            work_items: [9, 10, 11].map(|place| one.integer(place)),
            block: [12, 13, 14].map(|place| one.integer(place)),
            shared_memory: one.integer(8),
        };
        let name = one.integer(7).and_then(|number| self.process.kernels.get(&number).copied());
        kernel(&activity, &launch, name, &mut self.records);
    }

    fn copy(&mut self, one: &Fields<10>) {
        let [to, from] = [5, 6].map(|place| self.devices.of_agent(one.integer(place)));
        let activity = Activity {
            start_ns: one.integer(0),
            end_ns: one.integer(1),
            correlation: self.process.correlation(one.integer(2)),
            device: to.or(from),
            stream: one.integer(4),
        };
        let (_, operation) = self.process.operation(one.integer(7), one.integer(8));
        let operation = operation.to_owned();
        memory_copy(&activity, &operation, one.integer(9), &mut self.records);
    }

    fn call(&mut self, one: &Fields<6>) {
        let (interface, operation) = self.process.operation(one.integer(4), one.integer(5));
        let (kind, category) = kind_of_interface(interface);
        let records = &mut self.records;
        let named = (!operation.is_empty()).then(|| records.strings.intern(operation));
        let text = one.integer(2).and_then(|number| self.process.markers.get(&number).copied());
        let text = text.filter(|_| kind == EventKind::Annotation);
        let category = records.strings.intern(category);
        let lane = thread([self.process.number, one.integer(3)], records);
        records.add(&Record {
            kind,
            category,
            name: text.or(named),
            lane,
            start_ns: one.integer(0),
            end_ns: one.integer(1),
            correlation: self.process.correlation(one.integer(2).filter(|_| kind.is_call())),
        });
    }
}

impl Process {
    fn correlation(&self, number: Option<i64>) -> Option<i64> {
        of_recording((self.place - 1).max(0), number)
    }

    /// The names of an interface and of its operation.
    fn operation(&self, kind: Option<i64>, operation: Option<i64>) -> (&str, &str) {
        let place = |number: Option<i64>| usize::try_from(number?).ok();
        let known = place(kind).and_then(|place| self.operations.get(place));
        let Some((interface, operations)) = known else { return ("", "") };
        let name = place(operation).and_then(|place| operations.get(place));
        (interface, name.map_or("", String::as_str))
    }
}
