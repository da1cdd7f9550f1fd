//! Reads the JSON of `rocprofv3`: one object per process, whose lists of records are streamed.
//!
//! Records refer to kernels and operations by ids, which are defined before them. The records
//! before damage or truncation are kept.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Read};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::activities::Devices;
use super::activities::{
    ARGUMENTS, Activity, Launch, Symbol, kernel, kind_of_interface, memory_copy, of_recording,
    registers, thread,
};
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
    let n_taken = &Cell::new(0);
    let (devices, process) = (Devices::default(), Process::default());
    let mut trace = Trace { records, devices, process, n_taken };
    let compression = window.compression();
    let mut source = Source::new(window, progress, n_taken);
    let mut input = serde_json::Deserializer::from_reader(&mut source);
    let outcome = Level { trace: &mut trace, place: Place::Document }.deserialize(&mut input);
    let is_over = outcome.is_ok();
    let outcome = outcome.and_then(|()| input.end());
    drop(input);
    if let Some(failure) = source.failure {
        return Err(failure);
    }
    let mut bytes = n_taken.get();
    if let Err(error) = outcome
        && !trace.records.is_full()
    {
        let (code, offset) = match (is_over, error.is_eof()) {
            (true, _) => (Code::TextAfterEnd, bytes.saturating_sub(1)),
            (false, true) if source.window.is_limited() => (Code::LimitReached, bytes),
            (false, true) => (Code::Truncated, bytes),
            (false, false) => (Code::MalformedEvent, bytes.saturating_sub(1)),
        };
        source.skip_rest()?;
        bytes = source.end;
        trace.records.diagnostics.add(code, offset);
    }
    trace.records.diagnostics.append(&source.diagnostics);
    let fields = trace.devices.properties().into_iter().collect();
    let header = Header { fields, format: "rocprofv3-json", compression, ..Header::default() };
    trace.records.finish(header, bytes)
}

/// The bytes of a window, taken one by one; their count is the offset of a record.
struct Source<'a> {
    window: Window<'a>,
    progress: Progress<'a>,
    diagnostics: Diagnostics,
    failure: Option<Error>,
    n_taken: &'a Cell<u64>,
    /// The offset after the fetched bytes.
    end: u64,
}

impl<'a> Source<'a> {
    fn new(window: Window<'a>, progress: Progress<'a>, n_taken: &'a Cell<u64>) -> Self {
        n_taken.set(window.offset());
        let end = window.offset() + window.text().len() as u64;
        Self { window, progress, diagnostics: Diagnostics::default(), failure: None, n_taken, end }
    }

    /// Fetches the next bytes. Returns false at the end.
    #[cold]
    fn fill(&mut self) -> Result<bool> {
        report(self.progress, self.end)?;
        self.window.consume(self.window.text().len());
        let is_more = self.window.more(&mut self.diagnostics)?;
        self.end = self.window.offset() + self.window.text().len() as u64;
        Ok(is_more)
    }

    /// Skips to the end, so that all bytes are counted.
    fn skip_rest(&mut self) -> Result<()> {
        while self.fill()? {}
        Ok(())
    }
}

impl Read for Source<'_> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.n_taken.get();
        if taken == self.end
            && let Err(error) = self.fill()
        {
            self.failure = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        let text = self.window.text();
        let behind = usize::try_from(self.end - taken).unwrap_or(usize::MAX);
        let next = text.get(text.len().wrapping_sub(behind));
        let (Some(byte), Some(&next)) = (buffer.first_mut(), next) else { return Ok(0) };
        *byte = next;
        self.n_taken.set(taken + 1);
        Ok(1)
    }
}

/// The state of reading the document.
struct Trace<'a> {
    records: Records<'a>,
    devices: Devices,
    process: Process,
    /// The number of bytes read from the document.
    n_taken: &'a Cell<u64>,
}

/// What is known about the process whose records are read.
#[derive(Default)]
struct Process {
    /// Its index in the document, from 1.
    place: i64,
    number: Option<i64>,
    kernels: HashMap<i64, Symbol>,
    /// The names of operations, by interface.
    operations: Vec<(String, Vec<String>)>,
    /// The texts of markers, by correlation id.
    markers: HashMap<i64, StringId>,
}

/// A position in the structure of the document.
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

/// A list of objects that is read.
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
    /// Returns the position after a key.
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
            self.trace.records.offset = Some(self.trace.n_taken.get());
            if self.trace.records.is_full() {
                return Err(serde::de::Error::custom("no more records are wanted"));
            }
        }
    }
}

/// A value with its start offset.
struct Placed<'t, S> {
    value: S,
    n_taken: &'t Cell<u64>,
    offset: &'t mut Option<u64>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Placed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        input: D,
    ) -> std::result::Result<S::Value, D::Error> {
        // Its first byte was consumed to see that there is a value.
        *self.offset = Some(self.n_taken.get().saturating_sub(1));
        self.value.deserialize(input)
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

/// The times and ids that all kinds of records have.
const TIMES: [&str; 5] = [
    "start_timestamp",
    "end_timestamp",
    "correlation_id.internal",
    "thread_id",
    "stream_id.handle",
];

impl Trace<'_> {
    /// Reads the next element of a list. Returns false at its end.
    fn element<'de, S: SeqAccess<'de>>(
        &mut self,
        kind: List,
        list: &mut S,
    ) -> std::result::Result<bool, S::Error> {
        let [start, end, correlation, thread, stream] = TIMES;
        let found = match kind {
            List::Agents => {
                let paths = ["id.handle", "type", "logical_node_type_id", "product_name", "name"];
                self.next(&paths, list)?.map(|one| self.agent(&one))
            }
            List::Symbols => {
                let paths = [
                    "kernel_id",
                    "formatted_kernel_name",
                    "kernel_name",
                    "arch_vgpr_count",
                    "accum_vgpr_count",
                ];
                self.next(&paths, list)?.map(|one| self.symbol(&one))
            }
            List::Markers => self.next(&["key", "value"], list)?.map(|one| self.marker(&one)),
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
                self.next(&paths, list)?.map(|one| self.dispatch(&one))
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
                self.next(&paths, list)?.map(|one| self.copy(&one))
            }
            List::Calls => {
                let paths = [start, end, correlation, thread, "kind", "operation"];
                self.next(&paths, list)?.map(|one| self.call(&one))
            }
        };
        Ok(found.is_some())
    }

    /// Returns the members of the next element of a list; also stores its offset.
    fn next<'de, S: SeqAccess<'de>, const N: usize>(
        &mut self,
        paths: &[&str; N],
        list: &mut S,
    ) -> std::result::Result<Option<Fields<N>>, S::Error> {
        let (n_taken, offset) = (self.n_taken, &mut self.records.offset);
        list.next_element_seed(Placed { value: Paths(paths), n_taken, offset })
    }

    fn agent(&mut self, one: &Fields<5>) {
        /// The agent type of devices.
        const DEVICE: i64 = 2;
        if let (Some(agent), Some(DEVICE), Some(device)) =
            (one.integer(0), one.integer(1), one.integer(2))
        {
            let name = one.text(3).filter(|name| !name.is_empty());
            self.devices.add(agent, device, name.or(one.text(4)));
        }
    }

    fn symbol(&mut self, one: &Fields<5>) {
        let name = one.text(1).filter(|name| !name.is_empty()).or(one.text(2));
        if let (Some(number), Some(name)) = (one.integer(0), name) {
            let name = self.records.tables.strings.intern(name);
            let registers = registers(one.integer(3), one.integer(4));
            self.process.kernels.insert(number, Symbol { name, registers });
        }
    }

    fn marker(&mut self, one: &Fields<2>) {
        if let (Some(number), Some(text)) = (one.integer(0), one.text(1)) {
            let text = self.records.tables.strings.intern(text);
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
        let symbol = one.integer(7).and_then(|number| self.process.kernels.get(&number).copied());
        let launch = Launch {
            work_items: [9, 10, 11].map(|place| one.integer(place)),
            block: [12, 13, 14].map(|place| one.integer(place)),
            shared_memory: one.integer(8),
            registers: symbol.and_then(|symbol| symbol.registers),
            ..Launch::default()
        };
        kernel(&activity, &launch, symbol.map(|symbol| symbol.name), &mut self.records);
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
        let named = (!operation.is_empty()).then(|| records.tables.strings.intern(operation));
        let text = one.integer(2).and_then(|number| self.process.markers.get(&number).copied());
        let text = text.filter(|_| kind == EventKind::Annotation);
        let category = records.tables.strings.intern(category);
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

    /// Returns the names of an interface and of its operation.
    fn operation(&self, kind: Option<i64>, operation: Option<i64>) -> (&str, &str) {
        let place = |number: Option<i64>| usize::try_from(number?).ok();
        let known = place(kind).and_then(|place| self.operations.get(place));
        let Some((interface, operations)) = known else { return ("", "") };
        let name = place(operation).and_then(|place| operations.get(place));
        (interface, name.map_or("", String::as_str))
    }
}
