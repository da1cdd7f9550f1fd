//! Writes several ranks as one Perfetto trace on a common clock, with the path across them.
//!
//! A rank is a process, each of its threads and streams a track. Names are written once a rank
//! and referred to by number. Perfetto wants the slices of a track to lie within one another:
//! an event that crosses the end of another one goes to a second track of the same lane.
//!
//! Limits: complete events only, and no arguments but the number of the call of a collective.

use std::collections::{HashMap, HashSet};

use super::protobuf::Message;
use crate::ids::EventId;
use crate::read::perfetto::fields::{
    CATEGORIES, DEBUG_ANNOTATIONS, EVENT_NAMES, FLOW_IDS, INTEGER, INTERNED, INTERNED_ID,
    INTERNED_NAME, NAME, NAME_ID, NAME_OF_ANNOTATION, NAME_OF_TRACK, NEEDS_STATE, PACKET, PARENT,
    PATH_SEQUENCE, PID, PROCESS, PROCESS_NAME, SEQUENCE, SEQUENCE_FLAGS, SLICE_BEGIN, SLICE_END,
    STATE_CLEARED, TERMINATING_FLOW_IDS, TIMESTAMP, TRACK_DESCRIPTOR, TRACK_EVENT, TRACK_UUID,
    TYPE, UUID,
};
use crate::tables::Tables;

/// How a rank is written.
pub struct MergedRank<'a> {
    /// Its number.
    pub number: i64,
    /// What it is called.
    pub title: &'a str,
    /// What each of its lanes is called.
    pub lanes: &'a [String],
    /// Brings its times to those of the file.
    pub time_ns: &'a dyn Fn(i64) -> i64,
    /// The calls of several ranks that its events take part in.
    pub calls: &'a HashMap<u32, u32>,
}

/// A stretch of the path across ranks, in times of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedSegment {
    /// The rank.
    pub rank: i64,
    /// When it begins.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// What it is.
    pub kind: String,
    /// What it is called.
    pub title: String,
}

/// A rank as packets of a Perfetto trace, in pieces, and how many events could not be drawn:
/// they cross the ends of too many others.
pub fn merged_rank(tables: &Tables, rank: &MergedRank<'_>) -> (Vec<Vec<u8>>, u64) {
    let mut writer = RankWriter::new(tables, rank);
    let mut of_lane: Vec<Vec<EventId>> = vec![Vec::new(); tables.lanes.len()];
    for event in tables.events.ids().filter(|&it| tables.events.end_ns(it).is_some()) {
        of_lane[tables.events.lane(event).row()].push(event);
    }
    for (lane, events) in of_lane.iter_mut().enumerate() {
        let length = |it: EventId| tables.events.duration_ns(it);
        events.sort_unstable_by_key(|&it| {
            (tables.events.start_ns(it), std::cmp::Reverse(length(it)), it)
        });
        writer.lane(lane, events);
    }
    (writer.pieces.finish(), writer.n_left_out)
}

/// The path across ranks as packets: a track for each rank on it, and an arrow from every
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

/// Sequences, tracks and arrows of our own: one block of numbers for each rank.
const PATH_TRACK: u64 = 0x6c6f_6e69_0000_0000;
const PATH_NAME: &str = "critical path across ranks";
const FIRST_FLOW: u64 = 0x6c6f_6e69_0000_0000;
const RANK_TRACKS: u64 = 0x6c6f_6f00_0000_0000;
const TRACKS_OF_RANK: u64 = 1 << 24;

/// The path comes first among the processes; ranks count on from it.
const PATH_PID: u64 = 1;

/// So many tracks a lane may have for events that cross.
const MOST_TRACKS: usize = 32;

/// A piece holds about so many bytes.
const PIECE_BYTES: usize = 1 << 20;

fn described(track: u64, name: &str) -> Message {
    Message::default().number(UUID, track).text(NAME_OF_TRACK, name)
}

fn packet(sequence: u64) -> Message {
    Message::default().number(SEQUENCE, sequence)
}

/// Perfetto knows no times before 0.
fn at(sequence: u64, time_ns: i64) -> Message {
    packet(sequence).number(TIMESTAMP, u64::try_from(time_ns).unwrap_or(0))
}

/// Packets, in pieces that can be handed on one by one.
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
    next_track: u64,
    named: Vec<bool>,
    is_first: bool,
    pieces: Pieces,
    n_left_out: u64,
}

/// A track, and the ends of the slices that are open on it.
struct Track {
    uuid: u64,
    open_ns: Vec<i64>,
}

impl<'a> RankWriter<'a> {
    fn new(tables: &'a Tables, rank: &'a MergedRank<'a>) -> Self {
        let number = rank.number.cast_unsigned();
        let own = RANK_TRACKS + number * TRACKS_OF_RANK;
        let mut writer = Self {
            tables,
            rank,
            sequence: PATH_SEQUENCE + 1 + number,
            next_track: own + 1,
            named: vec![false; tables.strings.len()],
            is_first: true,
            pieces: Pieces::default(),
            n_left_out: 0,
        };
        let process =
            Message::default().number(PID, PATH_PID + 1 + number).text(PROCESS_NAME, rank.title);
        let process = described(own, rank.title).message(PROCESS, &process);
        writer.pieces.push(&packet(writer.sequence).message(TRACK_DESCRIPTOR, &process));
        writer
    }

    fn lane(&mut self, lane: usize, events: &[EventId]) {
        let mut tracks: Vec<Track> = Vec::new();
        for &event in events {
            let (Some(end_ns), start_ns) =
                (self.tables.events.end_ns(event), self.tables.events.start_ns(event))
            else {
                continue;
            };
            let Some(place) = self.room(&mut tracks, lane, start_ns, end_ns) else {
                self.n_left_out += 1;
                continue;
            };
            self.begin(tracks[place].uuid, event);
            tracks[place].open_ns.push(end_ns);
        }
        for track in &mut tracks {
            self.close(track, i64::MAX);
        }
    }

    /// The first track on which an event lies within the open slices.
    fn room(
        &mut self,
        tracks: &mut Vec<Track>,
        lane: usize,
        start_ns: i64,
        end_ns: i64,
    ) -> Option<usize> {
        for (place, track) in tracks.iter_mut().enumerate() {
            self.close(track, start_ns);
            if track.open_ns.last().is_none_or(|&open_ns| end_ns <= open_ns) {
                return Some(place);
            }
        }
        if tracks.len() >= MOST_TRACKS {
            return None;
        }
        tracks.push(Track { uuid: self.track(lane), open_ns: Vec::new() });
        Some(tracks.len() - 1)
    }

    fn track(&mut self, lane: usize) -> u64 {
        let uuid = self.next_track;
        self.next_track += 1;
        let name = self.rank.lanes.get(lane).map_or("", String::as_str);
        let own = RANK_TRACKS + self.rank.number.cast_unsigned() * TRACKS_OF_RANK;
        let track = described(uuid, name).number(PARENT, own);
        self.pieces.push(&packet(self.sequence).message(TRACK_DESCRIPTOR, &track));
        uuid
    }

    /// Ends the slices of a track that are over by a time.
    fn close(&mut self, track: &mut Track, until_ns: i64) {
        while let Some(end_ns) = track.open_ns.pop_if(|end_ns| *end_ns <= until_ns) {
            let end = Message::default().number(TYPE, SLICE_END).number(TRACK_UUID, track.uuid);
            let packet = at(self.sequence, (self.rank.time_ns)(end_ns));
            self.pieces.push(&packet.message(TRACK_EVENT, &end));
        }
    }

    fn begin(&mut self, track: u64, event: EventId) {
        let events = &self.tables.events;
        let time_ns = (self.rank.time_ns)(events.start_ns(event));
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
