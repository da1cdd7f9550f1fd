//! Decodes packets.

use super::fields::{
    ABOUT_THE_TRACE, CHROME_EVENTS, CLOCK_SNAPSHOT, COMPRESSED, DEFAULTS, GPU_COUNTERS, INTERNED,
    PREVIOUS_DROPPED, PROCESS_DESCRIPTOR, RENDER_STAGE, SEQUENCE, SEQUENCE_FLAGS,
    THREAD_DESCRIPTOR, TIMESTAMP, TIMESTAMP_CLOCK, TRACK_DESCRIPTOR, TRACK_EVENT,
};
use crate::read::protobuf::{Wire, fields};

/// The fields of a packet that are read.
#[derive(Default)]
pub(super) struct Packet<'a> {
    pub(super) time: Option<u64>,
    pub(super) clock: Option<u64>,
    pub(super) sequence: u64,
    pub(super) flags: u64,
    pub(super) is_behind_lost: bool,
    pub(super) interned: Option<&'a [u8]>,
    pub(super) defaults: Option<&'a [u8]>,
    pub(super) clocks: Option<&'a [u8]>,
    pub(super) compressed: Option<&'a [u8]>,
    pub(super) track: Option<&'a [u8]>,
    pub(super) process: Option<&'a [u8]>,
    pub(super) thread: Option<&'a [u8]>,
    pub(super) event: Option<&'a [u8]>,
    pub(super) stage: Option<&'a [u8]>,
    pub(super) gpu_counters: Option<&'a [u8]>,
    /// Chrome metadata, as header fields.
    pub(super) chrome: Option<&'a [u8]>,
    /// Whether it contains a field that is not read.
    pub(super) is_unknown: bool,
}

/// Decodes a packet; `None` if it is not a valid message.
pub(super) fn of(bytes: &[u8]) -> Option<Packet<'_>> {
    let mut packet = Packet::default();
    fields(bytes, |field, wire| {
        match (field, wire) {
            (TIMESTAMP, _) => packet.time = wire.number(),
            (TIMESTAMP_CLOCK, _) => packet.clock = wire.number(),
            (SEQUENCE, _) => packet.sequence = wire.number()?,
            (SEQUENCE_FLAGS, _) => packet.flags = wire.number()?,
            (PREVIOUS_DROPPED, _) => packet.is_behind_lost = wire.number()? != 0,
            (INTERNED, Wire::Bytes(bytes)) => packet.interned = Some(bytes),
            (DEFAULTS, Wire::Bytes(bytes)) => packet.defaults = Some(bytes),
            (CLOCK_SNAPSHOT, Wire::Bytes(bytes)) => packet.clocks = Some(bytes),
            (COMPRESSED, Wire::Bytes(bytes)) => packet.compressed = Some(bytes),
            (TRACK_DESCRIPTOR, Wire::Bytes(bytes)) => packet.track = Some(bytes),
            (PROCESS_DESCRIPTOR, Wire::Bytes(bytes)) => packet.process = Some(bytes),
            (THREAD_DESCRIPTOR, Wire::Bytes(bytes)) => packet.thread = Some(bytes),
            (TRACK_EVENT, Wire::Bytes(bytes)) => packet.event = Some(bytes),
            (RENDER_STAGE, Wire::Bytes(bytes)) => packet.stage = Some(bytes),
            (GPU_COUNTERS, Wire::Bytes(bytes)) => packet.gpu_counters = Some(bytes),
            (CHROME_EVENTS, Wire::Bytes(bytes)) => packet.chrome = Some(bytes),
            (0, _) => return None,
            (field, _) => packet.is_unknown |= !ABOUT_THE_TRACE.contains(&field),
        }
        Some(())
    })?;
    Some(packet)
}
