//! Writes a critical path as a Perfetto trace, to be opened together with the original trace.
//!
//! Segments of a path never overlap, so each is a slice on the track of its lane, and arrows
//! connect them in order. Only the few message types needed for this are encoded.

use super::protobuf::Message;
use crate::names::Names;
use crate::path::{Path, Segment};
use crate::read::perfetto::fields::{
    CATEGORIES, COUNTER, COUNTER_SAMPLE, DEBUG_ANNOTATIONS, DOUBLE_VALUE, FLOW_IDS, INTEGER, NAME,
    NAME_OF_ANNOTATION, NAME_OF_TRACK, OVERLAY_SEQUENCE, PACKET, SEQUENCE, SLICE_BEGIN, SLICE_END,
    TERMINATING_FLOW_IDS, TEXT, TIMESTAMP, TRACK_DESCRIPTOR, TRACK_EVENT, TRACK_UUID, TYPE, UUID,
};
use crate::tables::{NO_INTEGER, Place, Tables};

/// Returns the critical path as a Perfetto trace that can be combined with the original trace.
///
/// Each lane on the path is a track, and each segment is a slice. An arrow leads from every segment
/// to the next. The arguments of a slice are its event (by position in the event list of the file),
/// its evidence, and the slack of that event.
///
/// Field numbers are those of Perfetto's `protos/perfetto/trace`. Perfetto has no times before 0;
/// such segments begin at 0.
pub fn perfetto(tables: &Tables, path: &Path, slack_ns: &[i64]) -> Vec<u8> {
    let mut packets = descriptor(NOBODY, "critical path: time without an event");
    let mut lanes: Vec<_> =
        path.segments.iter().filter_map(|segment| lane(segment, tables)).collect();
    lanes.sort_unstable();
    lanes.dedup();
    for lane in lanes {
        let name = format!("critical path: {}", lane_name(tables.lanes.places()[lane], tables));
        packets = with_packet(packets, &packet_of_track(track_of(lane), &name));
    }
    let mut arrow = 0;
    for (number, segment) in path.segments.iter().enumerate() {
        let is_last = number + 1 == path.segments.len();
        let track = lane(segment, tables).map_or(NOBODY, track_of);
        let begin = begin(segment, track, tables, slack_ns);
        let begin = if number > 0 { begin.fixed(TERMINATING_FLOW_IDS, arrow) } else { begin };
        arrow = number as u64 + 1;
        let begin = if is_last { begin } else { begin.fixed(FLOW_IDS, arrow) };
        packets = with_packet(packets, &packet_of_event(segment.start_ns, &begin));
        let end = Message::default().number(TYPE, SLICE_END).number(TRACK_UUID, track);
        packets = with_packet(packets, &packet_of_event(segment.end_ns, &end));
    }
    packets.into_bytes()
}

/// The track of segments without an event. The tracks of lanes follow it; the high bits keep them
/// apart from those of the original trace.
const NOBODY: u64 = 0x6c6f_6e67_0000_0000;

fn track_of(lane: usize) -> u64 {
    NOBODY + 1 + lane as u64
}

fn lane(segment: &Segment, tables: &Tables) -> Option<usize> {
    segment.event.map(|event| tables.events.lane(event).row())
}

fn lane_name(place: Place, tables: &Tables) -> String {
    if let (Some(device), Some(stream)) = (place.device, place.stream) {
        return format!("device {device}, stream {stream}");
    }
    let [process, thread] = [place.process, place.thread].map(|id| tables.strings.get(id));
    format!("process {process}, thread {thread}")
}

fn begin(segment: &Segment, track: u64, tables: &Tables, slack_ns: &[i64]) -> Message {
    let events = &tables.events;
    let name = segment.event.and_then(|event| events.name(event));
    let kind = segment.kind.name();
    let title =
        name.map_or(kind.to_owned(), |name| format!("{kind}: {}", tables.strings.get(name)));
    let mut begin = Message::default()
        .number(TYPE, SLICE_BEGIN)
        .number(TRACK_UUID, track)
        .text(CATEGORIES, kind)
        .text(NAME, &title)
        .message(DEBUG_ANNOTATIONS, &annotation("evidence").text(TEXT, segment.evidence.name()));
    if let Some(event) = segment.event {
        let position = annotation("position").signed(INTEGER, events.position(event).into());
        begin = begin.message(DEBUG_ANNOTATIONS, &position);
        if let Some(&slack) = slack_ns.get(event.row()).filter(|&&slack| slack != NO_INTEGER) {
            let slack = annotation("slack_ns").signed(INTEGER, slack);
            begin = begin.message(DEBUG_ANNOTATIONS, &slack);
        }
    }
    begin
}

fn annotation(name: &str) -> Message {
    Message::default().text(NAME_OF_ANNOTATION, name)
}

fn descriptor(track: u64, name: &str) -> Message {
    with_packet(Message::default(), &packet_of_track(track, name))
}

fn packet_of_track(track: u64, name: &str) -> Message {
    let described = Message::default().number(UUID, track).text(NAME_OF_TRACK, name);
    Message::default().number(SEQUENCE, OVERLAY_SEQUENCE).message(TRACK_DESCRIPTOR, &described)
}

fn packet_of_event(time_ns: i64, event: &Message) -> Message {
    Message::default()
        .number(TIMESTAMP, u64::try_from(time_ns).unwrap_or(0))
        .number(SEQUENCE, OVERLAY_SEQUENCE)
        .message(TRACK_EVENT, event)
}

fn with_packet(packets: Message, packet: &Message) -> Message {
    packets.message(PACKET, packet)
}

/// A number that changes over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// The name of the counter.
    pub name: String,
    /// Times in ns, ascending, and values.
    pub samples: Vec<(i64, f64)>,
}

/// Returns the counters as packets of a Perfetto trace, which can be appended to another trace.
///
/// Field numbers are those of Perfetto's `protos/perfetto/trace`. Perfetto has no times before 0;
/// such samples are moved to 0.
pub fn counter_tracks(counters: &[Counter]) -> Vec<u8> {
    let mut packets = Message::default();
    for (counter, track) in counters.iter().zip(FIRST_TRACK..) {
        let described = Message::default()
            .number(UUID, track)
            .text(NAME_OF_TRACK, &counter.name)
            .message(COUNTER, &Message::default());
        packets = packets.message(PACKET, &packet().message(TRACK_DESCRIPTOR, &described));
        for &(time_ns, value) in &counter.samples {
            let event = Message::default()
                .number(TYPE, COUNTER_SAMPLE)
                .number(TRACK_UUID, track)
                .fixed(DOUBLE_VALUE, value.to_bits());
            let at = packet().number(TIMESTAMP, u64::try_from(time_ns).unwrap_or(0));
            packets = packets.message(PACKET, &at.message(TRACK_EVENT, &event));
        }
    }
    packets.into_bytes()
}

/// Sequence and tracks that differ from those of a critical path.
const OUR_SEQUENCE: u64 = 0x10_9b01f;
const FIRST_TRACK: u64 = 0x6c6f_6e68_0000_0000;

fn packet() -> Message {
    Message::default().number(SEQUENCE, OUR_SEQUENCE)
}
