//! Writes a whole trace as a Perfetto trace, which reads back as the same tables.
//!
//! An event is a slice on a track of its lane. An event that ends before it begins is an instant
//! with its duration as an argument. A track is described before its first event, with the process
//! and thread ids of the trace, and the device and stream. Arrows, asynchronous events and metadata
//! statements are written like those of Chrome's own writer. Each string is written once, until the
//! interning state is cleared.
//!
//! Packets are written in table order, one at a time. Only arguments that were kept are written, as
//! in [`document`](super::document).

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde_json::json;

use super::document::fields_of;
use super::nesting::{UNFINISHED, track_numbers};
use super::protobuf::Message;
use crate::ids::{EventId, LaneId, StringId};
use crate::names::Names;
use crate::read::Field;
use crate::read::perfetto::fields::{
    ANNOTATION_NAME_ID, ANNOTATION_NAMES, ANNOTATION_TEXTS, BIND_TO_ENCLOSING, BOOT_TIME,
    CATEGORY_IDS, CHROME_EVENTS, CHROME_METADATA, CLOCK_ID, CLOCK_SNAPSHOT, CLOCK_TIME, CLOCKS,
    COUNTER, COUNTER_SAMPLE, DEBUG_ANNOTATIONS, DEFAULTS, DESCRIPTION, DOUBLE, DOUBLE_VALUE,
    DURATION, EVENT_CATEGORIES, EVENT_NAMES, FIRST_CLOCK_OF_SEQUENCE, INSTANT, INTEGER, INTERNED,
    INTERNED_ID, INTERNED_NAME, KIND, LEGACY, LEGACY_ID, LEGACY_PHASE, METADATA_JSON,
    METADATA_NAME, NAME_ID, NAME_OF_TRACK, NEEDS_STATE, PACKET, PARENT, PID, PROCESS, PROCESS_NAME,
    SEQUENCE, SEQUENCE_FLAGS, SLICE_BEGIN, SLICE_END, STATE_CLEARED, TEXT, TEXT_ID, THREAD,
    THREAD_NAME, TID, TIMESTAMP, TIMESTAMP_CLOCK, TRACE_SEQUENCE, TRACK_DESCRIPTOR, TRACK_EVENT,
    TRACK_UUID, TYPE, UUID,
};
use crate::tables::{ArgValue, EventKind, FlowTable, Place, Tables};

/// Writes the tables of a trace as a Perfetto trace. Returns the number of events, ends of arrows,
/// samples and statements. Elements at positions that `keeps` rejects are left out. The rank is
/// written if the trace has none.
///
/// # Errors
///
/// Returns an error if `out` cannot be written.
pub fn whole(
    tables: &Tables,
    rank: Option<u64>,
    keeps: &dyn Fn(u32) -> bool,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut writer = Writer::new(tables, keeps, out);
    writer.clear()?;
    writer.header(rank)?;
    writer.events()?;
    writer.arrows(&tables.flows)?;
    writer.arrows(&tables.asyncs)?;
    writer.counters()?;
    writer.statements()?;
    Ok(writer.n_written)
}

/// Track ids that differ from those of a path opened together with the trace.
const FIRST_TRACK: u64 = 0x6c6f_6e70_0000_0000;

/// Maximum size of the interned strings, and the additional size counted for each.
const MOST_TEXT_BYTES: usize = 8 << 20;
const BYTES_OF_ENTRY: usize = 32;

/// Offset for string ids, which are numbered separately from numeric ids.
const TEXT_IDS: u64 = 1 << 62;

/// The content of a track.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Track {
    Process(StringId),
    Lane(LaneId, u32),
    /// A thread without events.
    Thread(StringId, StringId),
    /// Name, series and process.
    Counter(u32, u32, u32),
}

struct Writer<'a> {
    tables: &'a Tables,
    keeps: &'a dyn Fn(u32) -> bool,
    out: &'a mut dyn Write,
    n_written: u64,
    /// The shift that makes all times non-negative.
    shift_ns: i64,
    tracks: HashMap<Track, u64>,
    threads: HashMap<(StringId, StringId), u64>,
    /// The names of processes and threads in the trace.
    titles: HashMap<(StringId, Option<StringId>), StringId>,
    /// The interned ids of strings and argument names, by field.
    known: HashSet<(Field, u64)>,
    n_known_bytes: usize,
    keys: HashMap<&'a str, u64>,
}

/// An event under construction, and the strings that it interns first.
#[derive(Default)]
struct Draft {
    event: Message,
    interned: Message,
}

impl<'a> Writer<'a> {
    fn new(tables: &'a Tables, keeps: &'a dyn Fn(u32) -> bool, out: &'a mut dyn Write) -> Self {
        Self {
            tables,
            keeps,
            out,
            n_written: 0,
            shift_ns: first_ns(tables).min(0).saturating_neg(),
            tracks: HashMap::new(),
            threads: HashMap::new(),
            titles: titles(tables),
            known: HashSet::new(),
            n_known_bytes: 0,
            keys: HashMap::new(),
        }
    }

    fn packet(&mut self, content: Message) -> io::Result<()> {
        let packet = content.number(SEQUENCE, TRACE_SEQUENCE);
        self.out.write_all(Message::default().message(PACKET, &packet).as_bytes())
    }

    /// Clears the interned ids. Perfetto has no times before 0, so a clock with an offset is used.
    fn clear(&mut self) -> io::Result<()> {
        self.known.clear();
        self.n_known_bytes = 0;
        let mut packet = Message::default().number(SEQUENCE_FLAGS, STATE_CLEARED);
        if self.shift_ns > 0 {
            let clock = |id, time| Message::default().number(CLOCK_ID, id).number(CLOCK_TIME, time);
            let snapshot = Message::default()
                .message(CLOCKS, &clock(BOOT_TIME, 0))
                .message(CLOCKS, &clock(FIRST_CLOCK_OF_SEQUENCE, self.shift_ns.cast_unsigned()));
            let own = Message::default().number(TIMESTAMP_CLOCK, FIRST_CLOCK_OF_SEQUENCE);
            packet = packet.message(CLOCK_SNAPSHOT, &snapshot).message(DEFAULTS, &own);
        }
        self.packet(packet)
    }

    fn header(&mut self, rank: Option<u64>) -> io::Result<()> {
        for (name, value) in fields_of(self.tables, rank) {
            let field = Message::default().text(METADATA_NAME, &name).text(METADATA_JSON, &value);
            let bundle = Message::default().message(CHROME_METADATA, &field);
            self.packet(Message::default().message(CHROME_EVENTS, &bundle))?;
        }
        Ok(())
    }

    fn events(&mut self) -> io::Result<()> {
        let (tables, keeps) = (self.tables, self.keeps);
        let keeps = |event: EventId| keeps(tables.events.position(event));
        let numbers = track_numbers(tables, keeps);
        for event in tables.events.ids().filter(|&event| keeps(event)) {
            self.event(event, numbers[event.row()])?;
        }
        Ok(())
    }

    fn event(&mut self, event: EventId, number: u32) -> io::Result<()> {
        let events = &self.tables.events;
        let has_end = events.end_ns(event).is_some();
        let backwards_ns = events.duration_ns(event).filter(|_| !has_end);
        let is_instant =
            backwards_ns.is_some() || (events.kind(event) == EventKind::Instant && !has_end);
        let track = self.lane(events.lane(event), number)?;
        let mut draft = self.draft(if is_instant { INSTANT } else { SLICE_BEGIN }, track)?;
        self.named(&mut draft, events.category(event), events.name(event));
        if let Some(ns) = backwards_ns {
            self.argument(&mut draft, DURATION, ArgValue::Integer(ns));
        }
        self.arguments(&mut draft, event, is_instant);
        self.send(&draft, events.start_ns(event))?;
        self.n_written += 1;
        match events.end_ns(event) {
            Some(end_ns) if !is_instant => {
                let end = Message::default().number(TYPE, SLICE_END).number(TRACK_UUID, track);
                self.send(&Draft { event: end, ..Draft::default() }, end_ns)
            }
            _ => Ok(()),
        }
    }

    fn arguments(&mut self, draft: &mut Draft, event: EventId, is_instant: bool) {
        let events = &self.tables.events;
        let given = [
            ("External id", events.external_id(event)),
            ("correlation", events.correlation(event)),
        ];
        for (key, number) in given {
            if let Some(number) = number {
                self.argument(draft, key, ArgValue::Integer(number));
            }
        }
        let (kind, category) = (events.kind(event), events.category(event));
        let text = category.map_or("", |category| self.tables.strings.get(category));
        let known = if is_instant { EventKind::Instant } else { EventKind::of_category(text) };
        if kind != known {
            self.annotate(draft, KIND, |annotation, _, _| annotation.text(TEXT, kind.name()));
        }
        let table = self.tables.args.of(category);
        if let Some((table, row)) = table.and_then(|table| Some((table, table.row_of(event)?))) {
            for column in &table.columns {
                if let Some(value) = column.values.get(row) {
                    self.argument(draft, &column.key, value);
                }
            }
        }
    }

    fn argument(&mut self, draft: &mut Draft, key: &'a str, value: ArgValue) {
        self.annotate(draft, key, |annotation, writer, draft| match value {
            ArgValue::Integer(value) => annotation.signed(INTEGER, value),
            ArgValue::Float(value) => annotation.fixed(DOUBLE, value.to_bits()),
            ArgValue::Text(text) => {
                annotation.number(TEXT_ID, writer.text(draft, ANNOTATION_TEXTS, text))
            }
        });
    }

    fn annotate(
        &mut self,
        draft: &mut Draft,
        key: &'a str,
        value: impl FnOnce(Message, &mut Self, &mut Draft) -> Message,
    ) {
        let next = self.keys.len() as u64 + 1;
        let number = *self.keys.entry(key).or_insert(next);
        self.intern(draft, ANNOTATION_NAMES, number, key);
        let annotation = Message::default().number(ANNOTATION_NAME_ID, number);
        let annotation = value(annotation, self, draft);
        draft.event = std::mem::take(&mut draft.event).message(DEBUG_ANNOTATIONS, &annotation);
    }

    /// Writes the ends of arrows, or parts of asynchronous events.
    fn arrows(&mut self, flows: &FlowTable) -> io::Result<()> {
        let keeps = self.keeps;
        for row in (0..flows.len()).filter(|&row| keeps(flows.position.row(row))) {
            let source = flows.source(row);
            let track = self.thread(source.process, source.thread)?;
            let mut draft = self.draft(0, track)?;
            self.named(&mut draft, source.category, source.name);
            let mut legacy = legacy(flows.phase[row]).number(BIND_TO_ENCLOSING, 1);
            match flows.id.get(row) {
                Some(ArgValue::Integer(id)) => legacy = legacy.signed(LEGACY_ID, id),
                Some(id) => {
                    if let ArgValue::Text(text) = id {
                        legacy = legacy.number(LEGACY_ID, TEXT_IDS | text.row() as u64);
                    }
                    self.argument(&mut draft, "id", id);
                }
                None => {}
            }
            draft.event = draft.event.message(LEGACY, &legacy);
            self.send(&draft, flows.time_ns(row))?;
            self.n_written += 1;
        }
        Ok(())
    }

    fn counters(&mut self) -> io::Result<()> {
        let counters = &self.tables.counters;
        for (row, &time_ns) in counters.time_ns.iter().enumerate() {
            if !(self.keeps)(counters.position[row]) {
                continue;
            }
            let (name, series) = (counters.name[row], counters.series[row]);
            let track = self.counter(name, series, counters.process[row])?;
            let mut draft = self.draft(COUNTER_SAMPLE, track)?;
            draft.event = draft.event.fixed(DOUBLE_VALUE, counters.value[row].to_bits());
            self.send(&draft, time_ns)?;
            self.n_written += 1;
        }
        Ok(())
    }

    fn statements(&mut self) -> io::Result<()> {
        let metadata = &self.tables.metadata;
        for row in 0..metadata.len() {
            let [name, process, thread, value] = metadata.statement(row).map(StringId::from_column);
            let (Some(process), Some(thread)) = (process, thread) else { continue };
            let track = self.thread(process, thread)?;
            let mut draft = self.draft(0, track)?;
            self.named(&mut draft, None, name);
            if let Some(value) = value {
                self.argument(&mut draft, "name", ArgValue::Text(value));
            }
            draft.event = draft.event.message(LEGACY, &legacy(b'M'));
            self.send(&draft, -self.shift_ns)?;
            self.n_written += 1;
        }
        Ok(())
    }

    fn draft(&mut self, of_type: u64, track: u64) -> io::Result<Draft> {
        if self.n_known_bytes > MOST_TEXT_BYTES {
            self.clear()?;
        }
        let event = Message::default().number(TRACK_UUID, track);
        let event = if of_type > 0 { event.number(TYPE, of_type) } else { event };
        Ok(Draft { event, ..Draft::default() })
    }

    fn named(&mut self, draft: &mut Draft, category: Option<StringId>, name: Option<StringId>) {
        let given = [(CATEGORY_IDS, EVENT_CATEGORIES, category), (NAME_ID, EVENT_NAMES, name)];
        for (field, list, text) in given {
            if let Some(text) = text {
                let number = self.text(draft, list, text);
                draft.event = std::mem::take(&mut draft.event).number(field, number);
            }
        }
    }

    /// Returns the interned id of a string.
    fn text(&mut self, draft: &mut Draft, list: Field, text: StringId) -> u64 {
        let number = text.row() as u64 + 1;
        self.intern(draft, list, number, self.tables.strings.get(text));
        number
    }

    fn intern(&mut self, draft: &mut Draft, list: Field, number: u64, text: &str) {
        if self.known.insert((list, number)) {
            self.n_known_bytes += text.len() + BYTES_OF_ENTRY;
            let named = Message::default().number(INTERNED_ID, number).text(INTERNED_NAME, text);
            draft.interned = std::mem::take(&mut draft.interned).message(list, &named);
        }
    }

    fn send(&mut self, draft: &Draft, time_ns: i64) -> io::Result<()> {
        let time = time_ns.saturating_add(self.shift_ns).cast_unsigned();
        let packet = Message::default().number(TIMESTAMP, time).number(SEQUENCE_FLAGS, NEEDS_STATE);
        let has_texts = !draft.interned.as_bytes().is_empty();
        let packet = if has_texts { packet.message(INTERNED, &draft.interned) } else { packet };
        self.packet(packet.message(TRACK_EVENT, &draft.event))
    }

    /// Returns the track of a lane: of a thread or a stream.
    fn lane(&mut self, lane: LaneId, number: u32) -> io::Result<u64> {
        if let Some(&track) = self.tracks.get(&Track::Lane(lane, number)) {
            return Ok(track);
        }
        let place = self.tables.lanes.place(lane);
        let is_first = number == 0 && !self.threads.contains_key(&(place.process, place.thread));
        let track = self.place(Track::Lane(lane, number), place, is_first)?;
        if number != UNFINISHED {
            self.threads.entry((place.process, place.thread)).or_insert(track);
        }
        Ok(track)
    }

    /// Returns the track of a thread or a stream, by its ids in the trace.
    fn thread(&mut self, process: StringId, thread: StringId) -> io::Result<u64> {
        if let Some(&track) = self.threads.get(&(process, thread)) {
            return Ok(track);
        }
        let place = Place { process, thread, device: None, stream: None };
        let track = self.place(Track::Thread(process, thread), place, true)?;
        self.threads.insert((process, thread), track);
        Ok(track)
    }

    fn place(&mut self, key: Track, place: Place, is_first: bool) -> io::Result<u64> {
        let parent = self.process(place.process)?;
        let [process, thread] = [place.process, place.thread].map(|id| self.tables.strings.get(id));
        let title = self.titles.get(&(place.process, Some(place.thread)));
        let title = title.map_or(thread, |&title| self.tables.strings.get(title));
        let mut own = json!({"process": process, "thread": thread});
        for (name, number) in [("device", place.device), ("stream", place.stream)] {
            if let Some(number) = number {
                own[name] = number.into();
            }
        }
        let described =
            Message::default().number(PARENT, parent).text(DESCRIPTION, &own.to_string());
        let pid = process_number(process).filter(|_| is_first && place.stream.is_none());
        let described = match pid.zip(thread.parse::<u32>().ok()) {
            Some((pid, tid)) => {
                let of = Message::default().number(PID, pid).number(TID, tid.into());
                described.message(THREAD, &of.text(THREAD_NAME, title))
            }
            None => described.text(NAME_OF_TRACK, &title_of(place, title)),
        };
        self.describe(key, described)
    }

    fn process(&mut self, process: StringId) -> io::Result<u64> {
        if let Some(&track) = self.tracks.get(&Track::Process(process)) {
            return Ok(track);
        }
        let text = self.tables.strings.get(process);
        let title = self.titles.get(&(process, None)).map(|&title| self.tables.strings.get(title));
        let title = title.map_or_else(|| format!("process {text}"), str::to_owned);
        let described = match process_number(text) {
            Some(pid) => {
                let of = Message::default().number(PID, pid).text(PROCESS_NAME, &title);
                Message::default().message(PROCESS, &of)
            }
            None => Message::default().text(NAME_OF_TRACK, &title),
        };
        self.describe(Track::Process(process), described)
    }

    fn counter(&mut self, name: u32, series: u32, process: u32) -> io::Result<u64> {
        let key = Track::Counter(name, series, process);
        if let Some(&track) = self.tracks.get(&key) {
            return Ok(track);
        }
        let [name, series, process] = [name, series, process].map(StringId::from_column);
        let text = |id: Option<StringId>| id.map_or("", |id| self.tables.strings.get(id));
        let own = json!({"process": text(process), "thread": "", "series": text(series)});
        let mut described = Message::default()
            .message(COUNTER, &Message::default())
            .text(DESCRIPTION, &own.to_string());
        if name.is_some() {
            described = described.text(NAME_OF_TRACK, text(name));
        }
        if let Some(process) = process {
            described = described.number(PARENT, self.process(process)?);
        }
        self.describe(key, described)
    }

    fn describe(&mut self, key: Track, described: Message) -> io::Result<u64> {
        let track = FIRST_TRACK + self.tracks.len() as u64;
        self.tracks.insert(key, track);
        let described = described.number(UUID, track);
        self.packet(Message::default().message(TRACK_DESCRIPTOR, &described))?;
        Ok(track)
    }
}

/// Returns the earliest time in the tables.
fn first_ns(tables: &Tables) -> i64 {
    let events = tables.events.starts_ns().iter().copied();
    let counters = tables.counters.time_ns.iter().copied();
    let arrows = [&tables.flows, &tables.asyncs];
    let arrows =
        arrows.into_iter().flat_map(|flows| (0..flows.len()).map(|row| flows.time_ns(row)));
    events.chain(counters).chain(arrows).min().unwrap_or(0)
}

/// Returns the names of processes and threads in the trace; the last one counts.
fn titles(tables: &Tables) -> HashMap<(StringId, Option<StringId>), StringId> {
    let metadata = &tables.metadata;
    let named = (0..metadata.len()).filter_map(|row| {
        let [name, process, thread, value] = metadata.statement(row).map(StringId::from_column);
        let of = match tables.strings.get(name?) {
            "process_name" => (process?, None),
            "thread_name" => (process?, Some(thread?)),
            _ => return None,
        };
        Some((of, value?))
    });
    named.collect()
}

/// Returns a number that Perfetto accepts as a process id; 0 is its idle process.
fn process_number(text: &str) -> Option<u64> {
    text.parse::<i32>().ok().filter(|&number| number > 0).map(|number| number.unsigned_abs().into())
}

/// Returns the name of a stream, in a form that readers recognize.
fn title_of(place: Place, title: &str) -> String {
    match (place.device, place.stream) {
        (Some(device), Some(stream)) => format!("device {device}, stream {stream}"),
        _ => title.to_owned(),
    }
}

fn legacy(phase: u8) -> Message {
    Message::default().number(LEGACY_PHASE, phase.into())
}
