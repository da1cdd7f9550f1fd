//! Writes several ranks as one Perfetto trace on a common clock, with the path across them.
//!
//! Each rank is a process, and each of its threads and streams is a track, or several tracks if
//! events cross. Names are written once per rank and referenced by id. Events are written in order
//! of time, so that slices also nest if the clock conversion makes two times equal.
//!
//! Limits: only complete events, and no arguments except the call number of collectives.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::nesting::track_numbers;
use super::protobuf::Message;
use crate::ids::{EventId, LaneId};
use crate::read::perfetto::fields::{
    CATEGORIES, DEBUG_ANNOTATIONS, EVENT_NAMES, FLOW_IDS, INTEGER, INTERNED, INTERNED_ID,
    INTERNED_NAME, NAME, NAME_ID, NAME_OF_ANNOTATION, NAME_OF_TRACK, NEEDS_STATE, PACKET, PARENT,
    PATH_SEQUENCE, PID, PROCESS, PROCESS_NAME, SEQUENCE, SEQUENCE_FLAGS, SLICE_BEGIN, SLICE_END,
    STATE_CLEARED, TERMINATING_FLOW_IDS, TIMESTAMP, TRACK_DESCRIPTOR, TRACK_EVENT, TRACK_UUID,
    TYPE, UUID,
};
use crate::tables::Tables;

/// How to write a rank.
pub struct MergedRank<'a> {
    /// Its number.
    pub number: i64,
    /// Its title.
    pub title: &'a str,
    /// The title of each of its lanes.
    pub lanes: &'a [String],
    /// Converts its times to those of the file.
    pub time_ns: &'a dyn Fn(i64) -> i64,
    /// The cross-rank call of each event that is part of one, by row.
    pub calls: &'a HashMap<u32, u32>,
}

/// A segment of the path across ranks, in times of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedSegment {
    /// The rank.
    pub rank: i64,
    /// Start time.
    pub start_ns: i64,
    /// End time.
    pub end_ns: i64,
    /// Its kind.
    pub kind: String,
    /// Its title.
    pub title: String,
}

/// Returns a rank as packets of a Perfetto trace, in pieces.
pub fn merged_rank(tables: &Tables, rank: &MergedRank<'_>) -> Vec<Vec<u8>> {
    let events = &tables.events;
    let mut spans: Vec<_> =
        events.ids().filter_map(|event| Some((event, events.span(event)?))).collect();
    spans.sort_unstable_by_key(|&(event, (start_ns, end_ns))| (start_ns, Reverse(end_ns), event));
    let numbers = track_numbers(tables, |event| events.span(event).is_some());
    let mut writer = RankWriter::new(tables, rank);
    for (event, span) in spans {
        writer.slice(event, span, numbers[event.row()]);
    }
    writer.pieces.finish()
}

/// Returns the path across ranks as packets: a track for each rank on it, and an arrow from every
/// segment to the next.
pub fn merged_path(segments: &[MergedSegment]) -> Vec<u8> {
    let process = described(PATH_TRACK, "critical path across ranks")
        .message(PROCESS, &Message::default().number(PID, PATH_PID).text(PROCESS_NAME, PATH_NAME));
    let mut pieces = Pieces::default();
    pieces.push(&packet(PATH_SEQUENCE).message(TRACK_DESCRIPTOR, &process));
    let mut known = HashSet::new();
    for (number, segment) in segments.iter().enumerate() {
        let track = PATH_TRACK + 1 + segment.rank.cast_unsigned();
        if known.insert(segment.rank) {
            let name = format!("rank {}", segment.rank);
            let track = described(track, &name).number(PARENT, PATH_TRACK);
            pieces.push(&packet(PATH_SEQUENCE).message(TRACK_DESCRIPTOR, &track));
        }
        let mut begin = Message::default()
            .number(TYPE, SLICE_BEGIN)
            .number(TRACK_UUID, track)
            .text(CATEGORIES, &segment.kind)
            .text(NAME, &segment.title);
        if number > 0 {
            begin = begin.fixed(TERMINATING_FLOW_IDS, FIRST_FLOW + number as u64);
        }
        if number + 1 < segments.len() {
            begin = begin.fixed(FLOW_IDS, FIRST_FLOW + number as u64 + 1);
        }
        pieces.push(&at(PATH_SEQUENCE, segment.start_ns).message(TRACK_EVENT, &begin));
        let end = Message::default().number(TYPE, SLICE_END).number(TRACK_UUID, track);
        pieces.push(&at(PATH_SEQUENCE, segment.end_ns).message(TRACK_EVENT, &end));
    }
    pieces.finish().concat()
}

/// Ids of sequences, tracks and arrows: one block of numbers for each rank.
const PATH_TRACK: u64 = 0x6c6f_6e69_0000_0000;
const PATH_NAME: &str = "critical path across ranks";
const FIRST_FLOW: u64 = 0x6c6f_6e69_0000_0000;
const RANK_TRACKS: u64 = 0x6c6f_6f00_0000_0000;
const TRACKS_OF_RANK: u64 = 1 << 32;

/// The path is the first process; ranks follow it.
const PATH_PID: u64 = 1;

/// Approximate size of a piece in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Returns the track of a rank; the tracks of its lanes follow it.
fn track_of(rank: &MergedRank<'_>) -> u64 {
    RANK_TRACKS + rank.number.cast_unsigned() * TRACKS_OF_RANK
}

fn described(track: u64, name: &str) -> Message {
    Message::default().number(UUID, track).text(NAME_OF_TRACK, name)
}

fn packet(sequence: u64) -> Message {
    Message::default().number(SEQUENCE, sequence)
}

/// Creates a packet with a timestamp. Perfetto has no times before 0.
fn at(sequence: u64, time_ns: i64) -> Message {
    packet(sequence).number(TIMESTAMP, u64::try_from(time_ns).unwrap_or(0))
}

/// Packets in pieces that can be passed on individually.
#[derive(Default)]
struct Pieces {
    done: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl Pieces {
    fn push(&mut self, packet: &Message) {
        self.open.extend(Message::default().message(PACKET, packet).as_bytes());
        if self.open.len() > PIECE_BYTES {
            self.done.push(std::mem::take(&mut self.open));
        }
    }

    fn finish(&mut self) -> Vec<Vec<u8>> {
        self.done.push(std::mem::take(&mut self.open));
        std::mem::take(&mut self.done)
    }
}

struct RankWriter<'a> {
    tables: &'a Tables,
    rank: &'a MergedRank<'a>,
    sequence: u64,
    /// The tracks of each lane, by number.
    tracks: HashMap<(LaneId, u32), u64>,
    named: Vec<bool>,
    is_first: bool,
    pieces: Pieces,
}

impl<'a> RankWriter<'a> {
    fn new(tables: &'a Tables, rank: &'a MergedRank<'a>) -> Self {
        let number = rank.number.cast_unsigned();
        let own = track_of(rank);
        let mut writer = Self {
            tables,
            rank,
            sequence: PATH_SEQUENCE + 1 + number,
            tracks: HashMap::new(),
            named: vec![false; tables.strings.len()],
            is_first: true,
            pieces: Pieces::default(),
        };
        let process =
            Message::default().number(PID, PATH_PID + 1 + number).text(PROCESS_NAME, rank.title);
        let process = described(own, rank.title).message(PROCESS, &process);
        writer.pieces.push(&packet(writer.sequence).message(TRACK_DESCRIPTOR, &process));
        writer
    }

    /// Writes an event as its begin and its end.
    fn slice(&mut self, event: EventId, (start_ns, end_ns): (i64, i64), number: u32) {
        let track = self.track(self.tables.events.lane(event), number);
        self.begin(track, event, start_ns);
        let end = Message::default().number(TYPE, SLICE_END).number(TRACK_UUID, track);
        let packet = at(self.sequence, (self.rank.time_ns)(end_ns));
        self.pieces.push(&packet.message(TRACK_EVENT, &end));
    }

    fn track(&mut self, lane: LaneId, number: u32) -> u64 {
        if let Some(&track) = self.tracks.get(&(lane, number)) {
            return track;
        }
        let track = track_of(self.rank) + 1 + self.tracks.len() as u64;
        self.tracks.insert((lane, number), track);
        let name = self.rank.lanes.get(lane.row()).map_or("", String::as_str);
        let described = described(track, name).number(PARENT, track_of(self.rank));
        self.pieces.push(&packet(self.sequence).message(TRACK_DESCRIPTOR, &described));
        track
    }

    fn begin(&mut self, track: u64, event: EventId, start_ns: i64) {
        let events = &self.tables.events;
        let time_ns = (self.rank.time_ns)(start_ns);
        let flags = if self.is_first { STATE_CLEARED | NEEDS_STATE } else { NEEDS_STATE };
        self.is_first = false;
        let mut packet = at(self.sequence, time_ns).number(SEQUENCE_FLAGS, flags);
        let mut begin = Message::default().number(TYPE, SLICE_BEGIN).number(TRACK_UUID, track);
        if let Some(category) = events.category(event) {
            begin = begin.text(CATEGORIES, self.tables.strings.get(category));
        }
        if let Some(name) = events.name(event) {
            let id = name.row() as u64 + 1;
            if !std::mem::replace(&mut self.named[name.row()], true) {
                let named = Message::default()
                    .number(INTERNED_ID, id)
                    .text(INTERNED_NAME, self.tables.strings.get(name));
                packet = packet.message(INTERNED, &Message::default().message(EVENT_NAMES, &named));
            }
            begin = begin.number(NAME_ID, id);
        }
        if let Some(&call) = u32::try_from(event.row()).ok().and_then(|it| self.rank.calls.get(&it))
        {
            let call = Message::default()
                .text(NAME_OF_ANNOTATION, "call")
                .signed(INTEGER, i64::from(call));
            begin = begin.message(DEBUG_ANNOTATIONS, &call);
        }
        self.pieces.push(&packet.message(TRACK_EVENT, &begin));
    }
}
