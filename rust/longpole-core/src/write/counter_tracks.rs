//! Writes time series as counter tracks of a Perfetto trace, to be opened together with a trace.
//!
//! Perfetto draws counters as steps: each sample is valid until the next one.

use super::protobuf::Message;
use crate::read::perfetto::fields::{
    COUNTER, COUNTER_SAMPLE, DOUBLE_VALUE, NAME_OF_TRACK, PACKET, SEQUENCE, TIMESTAMP,
    TRACK_DESCRIPTOR, TRACK_EVENT, TRACK_UUID, TYPE, UUID,
};

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
