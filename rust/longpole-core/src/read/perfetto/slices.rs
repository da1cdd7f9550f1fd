//! Turns packets into table rows.
//!
//! One file, because every type of packet adds to the same tables.

use std::collections::{HashMap, HashSet};

use super::fields::{
    BOOT_TIME, COUNTER_SAMPLE, DURATION, FIRST_CLOCK_OF_SEQUENCE, INSTANT, KIND, NEEDS_STATE,
    OVERLAY_SEQUENCE, PATH_SEQUENCE, SLICE_BEGIN, SLICE_END, STATE_CLEARED, TRACE_SEQUENCE,
};
use super::packet::{Packet, TrackEvent};
use super::sequence::{Clocks, GpuCounters, Sequence};
use super::stages::Stage;
use super::tracks::{Standing, Tracks};
use super::{annotation, packet, sequence, stages};
use crate::diagnostics::Code;
use crate::ids::{EventId, LaneId, StringId};
use crate::names::Names as _;
use crate::read::pairs::Brackets;
use crate::read::rows::{Rows, kept_duration};
use crate::tables::{ArgValue, EventRow, FlowSource, Place};
use crate::time::MAX_TIME_NS;
use crate::vocabulary::{EventKind, agent_number};

/// The tables under construction.
pub(super) struct Slices<'a> {
    pub(super) rows: Rows<'a>,
    /// The offset of the current packet in the file.
    pub(super) offset: u64,
    pub(super) n_packets: u64,
    /// Number of events that repeat the critical path of another file.
    n_of_path: usize,
    /// Findings about the current packet.
    pub(super) said: Vec<(Code, u64)>,
    clocks: Clocks,
    sequences: HashMap<u64, Box<Sequence>>,
    tracks: Tracks,
    brackets: Brackets<u64>,
    /// The row of the track of each event.
    track_of: Vec<u32>,
    /// The device and stream that events on devices record themselves.
    places: HashMap<EventId, OwnPlace>,
    flows: HashSet<u64>,
    arrows: Vec<Arrow>,
    samples: Vec<Sample>,
    marks: Vec<Mark>,
    /// The counters that a sequence describes for each GPU.
    gpu_counters: HashMap<(u64, i64), GpuCounters>,
    /// The header fields.
    pub(super) fields: Vec<(String, String)>,
}

/// The device and the stream that an event records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OwnPlace {
    device: Option<i64>,
    stream: Option<i64>,
    /// The agent of a kernel. Copies of other agents may be on the same tracks.
    agent: Option<i64>,
    /// The hardware queue, used as the stream if none is recorded.
    queue: Option<i64>,
}

impl OwnPlace {
    /// Reads an argument with the place of an event. Returns whether it is also kept as an
    /// argument.
    fn take(&mut self, name: &str, number: Option<i64>, value: ArgValue, rows: &Rows<'_>) -> bool {
        match (name, value) {
            ("queue", _) => self.queue = number,
            ("agent", ArgValue::Text(text)) => {
                self.agent = agent_number(rows.tables.strings.get(text));
            }
            ("device", _) => self.device = number,
            ("stream", _) => self.stream = number,
            _ => {}
        }
        !matches!(name, "queue" | "agent")
    }
}

/// An end of a flow arrow, whose track may be described later.
struct Arrow {
    phase: u8,
    id: u64,
    event: EventId,
}

/// An end of a flow arrow, a part of an asynchronous event, or a metadata statement in Chrome's
/// format, whose track may be described later.
struct Mark {
    phase: u8,
    id: Option<ArgValue>,
    category: Option<StringId>,
    name: Option<StringId>,
    /// The value of a statement.
    value: Option<StringId>,
    track: usize,
    time_ns: i64,
    position: u32,
}

/// A sample of a counter, whose track may be described later.
struct Sample {
    track: usize,
    time_ns: i64,
    value: f64,
    position: u32,
}

impl<'a> Slices<'a> {
    pub(super) fn new(rows: Rows<'a>) -> Self {
        Self {
            rows,
            offset: 0,
            n_packets: 0,
            n_of_path: 0,
            said: Vec::new(),
            clocks: sequence::Clocks::default(),
            sequences: HashMap::new(),
            tracks: Tracks::default(),
            brackets: Brackets::default(),
            track_of: Vec::new(),
            places: HashMap::new(),
            flows: HashSet::new(),
            arrows: Vec::new(),
            samples: Vec::new(),
            marks: Vec::new(),
            gpu_counters: HashMap::new(),
            fields: Vec::new(),
        }
    }

    pub(super) fn say(&mut self, code: Code) {
        self.said.push((code, self.offset));
    }

    /// Whether the file contains only a critical path that longpole drew.
    pub(super) fn is_overlay(&self) -> bool {
        self.n_of_path > 0 && self.n_of_path == self.rows.tables.events.len()
    }

    /// Reads an uncompressed packet.
    pub(super) fn take(&mut self, packet: &Packet<'_>) {
        self.n_packets += 1;
        let mut sequence = self.sequences.remove(&packet.sequence).unwrap_or_default();
        if self.take_of(packet, &mut sequence).is_none() {
            self.say(Code::MalformedMessage);
        }
        self.sequences.insert(packet.sequence, sequence);
        if packet.is_unknown {
            self.say(Code::UnknownPacket);
        }
    }

    fn take_of(&mut self, packet: &Packet<'_>, sequence: &mut Sequence) -> Option<()> {
        if packet.is_behind_lost {
            // The first packet of a sequence also has this flag, although nothing was lost.
            if sequence.is_sound {
                self.say(Code::LostPacket);
            }
            sequence.is_sound = false;
        }
        if packet.flags & STATE_CLEARED != 0 {
            *sequence = Sequence { is_sound: true, ..Sequence::default() };
        }
        if packet.flags & NEEDS_STATE != 0 && !sequence.is_sound {
            self.say(Code::MissingState);
            return Some(());
        }
        if let Some(bytes) = packet.interned {
            sequence.intern(bytes, &mut self.rows)?;
        }
        if let Some(bytes) = packet.defaults {
            sequence.set_defaults(bytes)?;
        }
        if let Some(bytes) = packet.clocks {
            sequence::Clocks::snapshot(bytes, &mut self.clocks, &mut sequence.clocks)?;
        }
        if let Some(bytes) = packet.chrome
            && !packet::take(bytes, &mut self.fields)?
        {
            self.say(Code::UnknownPacket);
        }
        if let Some(bytes) = packet.track {
            self.tracks.describe(bytes, &mut self.rows)?;
        }
        if packet.process.is_some() || packet.thread.is_some() {
            let uuid = track_of_sequence(packet.sequence);
            let of = (packet.process, packet.thread);
            self.tracks.describe_sequence(uuid, of, &mut self.rows)?;
        }
        if let Some(bytes) = packet.event {
            let time_ns = self.time_ns(packet, sequence);
            let event = packet::event_of(bytes)?;
            if let Some(time_ns) = time_ns {
                self.event(&event, packet.sequence, sequence, time_ns)?;
            }
        }
        if let Some(bytes) = packet.stage
            && let Some(time_ns) = self.time_ns(packet, sequence)
        {
            self.stage(&stages::of(bytes)?, packet.sequence, sequence, time_ns);
        }
        if let Some(bytes) = packet.gpu_counters
            && let Some(time_ns) = self.time_ns(packet, sequence)
        {
            self.gpu_samples(bytes, packet.sequence, sequence, time_ns)?;
        }
        Some(())
    }

    /// Returns the time of a packet on the clock of the trace.
    fn time_ns(&mut self, packet: &Packet<'_>, sequence: &mut Sequence) -> Option<i64> {
        let Some(time) = packet.time else {
            self.say(Code::MissingTimestamp);
            return None;
        };
        let clock = packet.clock.or(sequence.clock).unwrap_or(BOOT_TIME);
        let of_sequence = clock >= FIRST_CLOCK_OF_SEQUENCE;
        let clocks = if of_sequence { &mut sequence.clocks } else { &mut self.clocks };
        match clocks.time_ns(clock, time) {
            Some((time_ns, is_known)) if (-MAX_TIME_NS..=MAX_TIME_NS).contains(&time_ns) => {
                if !is_known {
                    self.say(Code::UnknownClock);
                }
                Some(time_ns)
            }
            _ => {
                self.say(Code::BadTimestamp);
                None
            }
        }
    }

    fn event(
        &mut self,
        event: &TrackEvent<'_>,
        number: u64,
        sequence: &Sequence,
        time_ns: i64,
    ) -> Option<()> {
        let uuid = event.track.or(sequence.track).unwrap_or_else(|| track_of_sequence(number));
        let phase = match (event.of_type, event.phase) {
            (SLICE_BEGIN, _) | (_, Some(b'B')) => b'B',
            (SLICE_END, _) | (_, Some(b'E')) => b'E',
            (INSTANT, _) | (_, Some(b'i' | b'I' | b'R')) => b'i',
            (COUNTER_SAMPLE, _) => b'C',
            (_, Some(b'X')) => b'X',
            (_, Some(phase)) if MARKS.contains(&phase) => phase,
            _ => {
                self.say(Code::UnknownPhase);
                return Some(());
            }
        };
        match phase {
            b'E' => {
                let position = self.rows.count(phase);
                self.brackets.push(None, uuid, time_ns, (position, self.offset));
            }
            b'C' => self.sample(event, uuid, time_ns),
            b'B' | b'i' | b'X' => self.slice(event, (uuid, phase, number), sequence, time_ns)?,
            _ => self.mark(event, (uuid, phase), sequence, time_ns)?,
        }
        Some(())
    }

    fn slice(
        &mut self,
        event: &TrackEvent<'_>,
        (uuid, phase, number): (u64, u8, u64),
        sequence: &Sequence,
        time_ns: i64,
    ) -> Option<()> {
        let (category, name) = self.names(event, sequence);
        if name.is_none() {
            self.say(Code::MissingName);
        }
        self.n_of_path += usize::from(number == OVERLAY_SEQUENCE);
        let kind = match phase {
            b'i' => EventKind::Instant,
            _ if matches!(number, OVERLAY_SEQUENCE | PATH_SEQUENCE) => EventKind::Derived,
            _ => category.map_or(EventKind::Other, |it| self.rows.kind(it)),
        };
        let correlation = event.correlation.and_then(|id| id.try_into().ok());
        let is_own = number == TRACE_SEQUENCE;
        let mut own = Arguments { category, is_own, correlation, ..Arguments::of_kind(kind) };
        own.take(event, sequence, &mut self.rows)?;
        let duration_ns = match phase {
            b'X' => self.duration_ns(time_ns, event.duration_us.map(|us| i128::from(us) * 1000)),
            b'i' if own.duration_ns.is_some() => {
                self.duration_ns(time_ns, own.duration_ns.map(i128::from))
            }
            _ => None,
        };
        let (kind, category) = (own.kind, own.category);
        let id = self.push(
            phase,
            uuid,
            EventRow {
                kind,
                category,
                name,
                lane: LaneId::from_row(0),
                start_ns: time_ns,
                duration_ns,
                correlation: own.correlation,
                external_id: own.external_id,
                position: 0,
            },
        );
        if phase == b'B' {
            self.brackets.push(
                Some(id),
                uuid,
                time_ns,
                (self.rows.tables.events.position(id), self.offset),
            );
        }
        self.keep(id, category, kind, &own);
        for &flow in &event.flows {
            let phase = if self.flows.insert(flow) { b's' } else { b't' };
            self.arrows.push(Arrow { phase, id: flow, event: id });
        }
        let last = event.terminating_flows.iter();
        self.arrows.extend(last.map(|&flow| Arrow { phase: b'f', id: flow, event: id }));
        Some(())
    }

    /// Returns the duration to keep for an event that should have one.
    fn duration_ns(&mut self, start_ns: i64, given: Option<i128>) -> Option<i64> {
        let (duration_ns, fault) = match given {
            Some(duration_ns) => kept_duration(start_ns, duration_ns),
            None => (None, Some(Code::MissingDuration)),
        };
        if let Some(fault) = fault {
            self.say(fault);
        }
        duration_ns
    }

    fn names(
        &mut self,
        event: &TrackEvent<'_>,
        sequence: &Sequence,
    ) -> (Option<StringId>, Option<StringId>) {
        let category = match event.category {
            Some(bytes) => Some(self.rows.text(bytes)),
            None => event.category_id.and_then(|id| sequence.categories.get(&id).copied()),
        };
        let name = match event.name {
            Some(bytes) => Some(self.rows.text(bytes)),
            None => event.name_id.and_then(|id| sequence.names.get(&id).copied()),
        };
        (category, name)
    }

    /// Reads a legacy Chrome event that is not a slice.
    fn mark(
        &mut self,
        event: &TrackEvent<'_>,
        (uuid, phase): (u64, u8),
        sequence: &Sequence,
        time_ns: i64,
    ) -> Option<()> {
        let (category, name) = self.names(event, sequence);
        let (mut id, mut value) = (event.id.map(|id| ArgValue::Integer(id.cast_signed())), None);
        for bytes in &event.annotations {
            let annotation = annotation::of(bytes)?;
            let Some(key) = annotation.name(sequence, &mut self.rows) else { continue };
            let given = annotation.value(sequence, &mut self.rows);
            match (self.rows.tables.strings.get(key), given) {
                ("id", Some(_)) => id = given,
                ("name", Some(ArgValue::Text(text))) => value = Some(text),
                _ => {}
            }
        }
        let (track, position) = (self.tracks.row(uuid), self.rows.count(phase));
        self.marks.push(Mark { phase, id, category, name, value, track, time_ns, position });
        Some(())
    }

    fn push(&mut self, phase: u8, uuid: u64, row: EventRow) -> EventId {
        let track = self.tracks.row(uuid);
        self.track_of.push(u32::try_from(track).unwrap_or(u32::MAX));
        self.rows.event(phase, row)
    }

    /// Keeps the requested arguments. On a device, the lane contains its device and stream.
    fn keep(
        &mut self,
        event: EventId,
        category: Option<StringId>,
        kind: EventKind,
        own: &Arguments,
    ) {
        if kind.is_on_device() && !own.is_own {
            let agent = own.place.agent.filter(|_| kind == EventKind::Kernel);
            let place = OwnPlace { agent, ..own.place };
            if place != OwnPlace::default() {
                self.places.insert(event, place);
            }
        }
        for &(key, value) in &own.others {
            let name = self.rows.tables.strings.get(key).to_owned();
            let is_place = kind.is_on_device() && matches!(name.as_str(), "device" | "stream");
            if kind == EventKind::CounterRange && self.rows.keeps_counters() {
                self.rows.counter_of_range(event, category, &name, value);
            } else if own.is_own || !is_place {
                self.rows.argument(event, category, &name, value);
            }
        }
    }

    fn sample(&mut self, event: &TrackEvent<'_>, uuid: u64, time_ns: i64) {
        let position = self.rows.count(b'C');
        let track = self.tracks.row(uuid);
        let value = event.value.unwrap_or(f64::NAN);
        self.samples.push(Sample { track, time_ns, value, position });
    }

    /// Reads a render stage: an activity on a hardware queue of a GPU.
    fn stage(&mut self, stage: &Stage<'_>, number: u64, sequence: &Sequence, time_ns: i64) {
        let (category, name) = stage.names(sequence, &mut self.rows);
        let kind = self.rows.kind(category);
        let mut own = Arguments::of_kind(kind);
        own.take_stage(stage, &mut self.rows);
        let row = EventRow {
            kind,
            category: Some(category),
            name,
            lane: LaneId::from_row(0),
            start_ns: time_ns,
            duration_ns: self.duration_ns(time_ns, stage.duration.map(i128::from)),
            correlation: own.correlation,
            external_id: None,
            position: 0,
        };
        let id = self.push(b'X', track_of_sequence(number), row);
        self.keep(id, Some(category), kind, &own);
    }

    /// Reads samples of GPU counters.
    fn gpu_samples(
        &mut self,
        bytes: &[u8],
        number: u64,
        sequence: &Sequence,
        time_ns: i64,
    ) -> Option<()> {
        let event = sequence::of(bytes)?;
        let gpu = event.gpu.unwrap_or(0);
        if let Some(bytes) = event.described {
            let described = sequence::GpuCounters::of(bytes, Some(gpu), &mut self.rows)?;
            self.gpu_counters.insert((number, gpu), described);
        }
        let counters = match event.counters_id {
            Some(id) => sequence.gpu_counters.get(&id),
            None => self.gpu_counters.get(&(number, gpu)),
        };
        let Some(counters) = counters else {
            self.say(Code::MissingState);
            return Some(());
        };
        let gpu = counters.gpu.unwrap_or(gpu);
        let process = self.rows.tables.strings.intern(&format!("GPU {gpu} Counters"));
        let series = self.rows.tables.strings.intern("value");
        for (counter, value) in event.samples {
            let position = self.rows.count(b'C');
            let name = counters.names.get(&counter).copied();
            self.rows.tables.counters.push(name, series, process, time_ns, value, position);
        }
        Some(())
    }

    /// Pairs begin and end events, and assigns a lane to every event. Returns the findings.
    pub(super) fn finish(&mut self) -> Vec<(Code, u64)> {
        let mut said = std::mem::take(&mut self.said);
        let mut brackets = std::mem::take(&mut self.brackets);
        brackets.close_blocks(&mut self.rows.tables.events);
        brackets.pair(&mut self.rows.tables.events, &mut said);
        let standings = self.tracks.standing(&mut self.rows);
        self.keep_samples(&standings);
        self.keep_marks(&standings);
        let devices = self.devices();
        self.rows.tables.events.reopen_lanes();
        for event in self.rows.tables.events.ids() {
            let track = self.track_of[event.row()] as usize;
            let place = self.place(event, standings[track], devices[track]);
            let lane = self.rows.tables.lanes.intern(place);
            self.rows.tables.events.assign_lane(event, lane);
        }
        // The ends of an arrow get one category, so that other readers join them.
        let mut categories = HashMap::new();
        for arrow in std::mem::take(&mut self.arrows) {
            let standing = standings[self.track_of[arrow.event.row()] as usize];
            let category = self.rows.tables.events.category(arrow.event);
            let source = FlowSource {
                category: *categories.entry(arrow.id).or_insert(category),
                name: None,
                process: standing.process,
                thread: standing.thread,
            };
            let time_ns = self.rows.tables.events.start_ns(arrow.event);
            self.rows.arrow(arrow.phase, arrow.id, source, time_ns);
        }
        said
    }

    /// Turns the samples of counters into rows.
    #[allow(clippy::cast_precision_loss)] // units are powers of two or ten
    fn keep_samples(&mut self, standings: &[Standing]) {
        let value_series = self.rows.tables.strings.intern("value");
        for sample in std::mem::take(&mut self.samples) {
            let track = self.tracks.get_mut(sample.track);
            let value = sample.value * track.unit as f64;
            let value = if track.is_incremental { track.value + value } else { value };
            track.value = value;
            let (name, process) = (track.name, standings[sample.track].process);
            let series = track.series.unwrap_or(value_series);
            let (time_ns, position) = (sample.time_ns, sample.position);
            self.rows.tables.counters.push(name, series, process, time_ns, value, position);
        }
    }

    fn keep_marks(&mut self, standings: &[Standing]) {
        for mark in std::mem::take(&mut self.marks) {
            let Mark { category, name, position, .. } = mark;
            let Standing { process, thread, .. } = standings[mark.track];
            if mark.phase == b'M' {
                self.rows.tables.metadata.push(name, process, thread, mark.value, position);
            } else {
                let source = FlowSource { category, name, process, thread };
                self.rows.arrow_at(position, mark.phase, mark.id, source, mark.time_ns);
            }
        }
    }

    /// Returns the device of each track, if its kernels record an agent and all of them the same.
    fn devices(&self) -> Vec<Option<i64>> {
        let mut found: Vec<Option<Option<i64>>> = vec![None; self.tracks.len()];
        for event in self.rows.tables.events.ids() {
            let Some(agent) = self.places.get(&event).and_then(|place| place.agent) else {
                continue;
            };
            let device = &mut found[self.track_of[event.row()] as usize];
            *device = Some(device.map_or(Some(agent), |known| known.filter(|&it| it == agent)));
        }
        found.into_iter().map(Option::flatten).collect()
    }

    fn place(&self, event: EventId, standing: Standing, agent: Option<i64>) -> Place {
        let Standing { process, thread, device, stream, is_own } = standing;
        if is_own {
            return Place { process, thread, device, stream };
        }
        if !self.rows.tables.events.kind(event).is_on_device() {
            return Place { process, thread, device: None, stream: None };
        }
        let own = self.places.get(&event).copied().unwrap_or_default();
        let device = own.device.or(standing.device).or(agent);
        let stream = own.stream.or(standing.stream).or(own.queue);
        Place { process, thread, device, stream }
    }
}

/// Returns the default track of a sequence.
fn track_of_sequence(sequence: u64) -> u64 {
    sequence | 1 << 63
}

/// The phases of legacy Chrome events that are not slices.
const MARKS: &[u8] = b"stfbneSTpFM";

/// The arguments of an event.
struct Arguments {
    kind: EventKind,
    category: Option<StringId>,
    /// Whether longpole wrote the event, so that its track determines its lane.
    is_own: bool,
    correlation: Option<i64>,
    external_id: Option<i64>,
    /// A duration without an end event.
    duration_ns: Option<i64>,
    place: OwnPlace,
    others: Vec<(StringId, ArgValue)>,
}

impl Arguments {
    fn of_kind(kind: EventKind) -> Self {
        Self {
            kind,
            category: None,
            is_own: false,
            correlation: None,
            external_id: None,
            duration_ns: None,
            place: OwnPlace::default(),
            others: Vec::new(),
        }
    }

    /// Reads the properties of a render stage other than its kind and name.
    fn take_stage(&mut self, stage: &Stage<'_>, rows: &mut Rows<'_>) {
        self.place = OwnPlace { device: stage.gpu, stream: stage.queue, ..OwnPlace::default() };
        for (name, sizes) in ["grid", "block"].into_iter().zip(stage.sizes) {
            if let Some([x, y, z]) = sizes.filter(|_| rows.keeps(name)) {
                let text = rows.tables.strings.intern(&format!("[{x}, {y}, {z}]"));
                self.others.push((rows.tables.strings.intern(name), ArgValue::Text(text)));
            }
        }
        for &(name, bytes) in &stage.extra {
            let Ok(name) = std::str::from_utf8(name).map(stages::known_key) else { continue };
            if !OF_PLACES_AND_LINKS.contains(&name) && !rows.keeps(name) {
                continue;
            }
            match (name, stages::value(name, bytes, rows)) {
                ("correlation", ArgValue::Integer(id)) => self.correlation = Some(id),
                ("stream", ArgValue::Integer(stream)) => self.place.stream = Some(stream),
                ("device", ArgValue::Integer(device)) => self.place.device = Some(device),
                (name, value) if rows.keeps(name) => {
                    self.others.push((rows.tables.strings.intern(name), value));
                }
                _ => {}
            }
        }
        self.place.device = self.place.device.or(Some(0));
    }

    /// Reads the annotations of an event; `None` if one is not a valid message.
    fn take(
        &mut self,
        event: &TrackEvent<'_>,
        sequence: &Sequence,
        rows: &mut Rows<'_>,
    ) -> Option<()> {
        for bytes in &event.annotations {
            let annotation = annotation::of(bytes)?;
            let Some(key) = annotation.name(sequence, rows) else { continue };
            let name = known_key(rows.tables.strings.get(key)).to_owned();
            let is_counter = self.kind == EventKind::CounterRange && rows.keeps_counters();
            let is_known = if self.is_own {
                matches!(name.as_str(), "correlation" | "External id" | KIND | DURATION)
            } else {
                OF_PLACES_AND_LINKS.contains(&name.as_str())
            };
            if !is_known && !is_counter && !rows.keeps(&name) {
                continue;
            }
            let Some(value) = annotation.value(sequence, rows) else { continue };
            let number = match value {
                ArgValue::Integer(number) => Some(number),
                ArgValue::Text(text) => rows.tables.strings.get(text).parse().ok(),
                ArgValue::Float(_) => None,
            };
            let is_kept = match (name.as_str(), value) {
                ("correlation", _) => {
                    self.correlation = number;
                    false
                }
                ("External id", _) => {
                    self.external_id = number;
                    false
                }
                // PyTorch writes no category for synchronization records.
                ("cuda_sync_kind", _) if self.category.is_none() => {
                    let category = rows.tables.strings.intern("cuda_sync");
                    (self.kind, self.category) = (rows.kind(category), Some(category));
                    true
                }
                (KIND, ArgValue::Text(text)) if self.is_own => {
                    self.kind =
                        EventKind::named(rows.tables.strings.get(text)).unwrap_or(self.kind);
                    false
                }
                (DURATION, ArgValue::Integer(ns)) if self.is_own => {
                    self.duration_ns = Some(ns);
                    false
                }
                _ => self.is_own || self.place.take(&name, number, value, rows),
            };
            if is_kept {
                self.others.push((rows.tables.strings.intern(&name), value));
            }
        }
        Some(())
    }
}

/// Arguments that record the lane of an event or its links.
const OF_PLACES_AND_LINKS: &[&str] =
    &["correlation", "External id", "queue", "agent", "device", "stream", "cuda_sync_kind"];

/// Returns Kineto's name for an argument that other writers name differently.
fn known_key(key: &str) -> &str {
    match key {
        "correlation_id" | "corr_id" => "correlation",
        "external id" => "External id",
        "copy_bytes" => "bytes",
        key => key,
    }
}
