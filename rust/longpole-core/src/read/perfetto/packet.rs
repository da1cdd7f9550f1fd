//! Decodes packets, track events and Chrome metadata.

use super::fields::{
    ABOUT_THE_TRACE, CATEGORIES, CATEGORY_IDS, CHROME_EVENTS, CHROME_METADATA, CLOCK_SNAPSHOT,
    COMPRESSED, CORRELATION, DEBUG_ANNOTATIONS, DEFAULTS, DOUBLE_VALUE, FLOW_IDS, GPU_COUNTERS,
    INTEGER_VALUE, INTERNED, LEGACY, LEGACY_DURATION_US, LEGACY_GLOBAL_ID, LEGACY_ID,
    LEGACY_LOCAL_ID, LEGACY_PHASE, METADATA_BOOLEAN, METADATA_INTEGER, METADATA_JSON,
    METADATA_NAME, METADATA_TEXT, NAME, NAME_ID, OLD_FLOW_IDS, OLD_TERMINATING_FLOW_IDS,
    PREVIOUS_DROPPED, PROCESS_DESCRIPTOR, RENDER_STAGE, SEQUENCE, SEQUENCE_FLAGS,
    TERMINATING_FLOW_IDS, THREAD_DESCRIPTOR, TIMESTAMP, TIMESTAMP_CLOCK, TRACK_DESCRIPTOR,
    TRACK_EVENT, TRACK_UUID, TYPE,
};
use crate::read::protobuf::{Wire, fields, variable};
use serde_json::Value;

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

// Decodes track events.

/// The fields of a track event that are read.
#[derive(Default)]
pub(super) struct TrackEvent<'a> {
    pub(super) of_type: u64,
    pub(super) track: Option<u64>,
    pub(super) name: Option<&'a [u8]>,
    pub(super) name_id: Option<u64>,
    pub(super) category: Option<&'a [u8]>,
    pub(super) category_id: Option<u64>,
    pub(super) annotations: Vec<&'a [u8]>,
    pub(super) value: Option<f64>,
    pub(super) flows: Vec<u64>,
    pub(super) terminating_flows: Vec<u64>,
    pub(super) correlation: Option<u64>,
    /// Phase, duration and id of legacy Chrome events.
    pub(super) phase: Option<u8>,
    pub(super) id: Option<u64>,
    pub(super) duration_us: Option<i64>,
}

/// Decodes a track event; `None` if it is not a valid message.
#[allow(clippy::cast_precision_loss)] // a counter is a double in the tables
pub(super) fn event_of(bytes: &[u8]) -> Option<TrackEvent<'_>> {
    let mut event = TrackEvent::default();
    fields(bytes, |field, wire| {
        match (field, wire) {
            (TYPE, _) => event.of_type = wire.number()?,
            (TRACK_UUID, _) => event.track = wire.number(),
            (NAME, Wire::Bytes(bytes)) => event.name = Some(bytes),
            (NAME_ID, _) => event.name_id = wire.number(),
            (CATEGORIES, Wire::Bytes(bytes)) => event.category = event.category.or(Some(bytes)),
            (CATEGORY_IDS, _) => event.category_id = event.category_id.or(first(wire)),
            (DEBUG_ANNOTATIONS, Wire::Bytes(bytes)) => event.annotations.push(bytes),
            (INTEGER_VALUE, Wire::Variable(value)) => {
                event.value = Some(value.cast_signed() as f64);
            }
            (DOUBLE_VALUE, Wire::Eight(bits)) => event.value = Some(f64::from_bits(bits)),
            (FLOW_IDS | OLD_FLOW_IDS, _) => ids(wire, &mut event.flows)?,
            (TERMINATING_FLOW_IDS | OLD_TERMINATING_FLOW_IDS, _) => {
                ids(wire, &mut event.terminating_flows)?;
            }
            (CORRELATION, _) => event.correlation = wire.number(),
            (LEGACY, Wire::Bytes(bytes)) => legacy(bytes, &mut event)?,
            _ => {}
        }
        Some(())
    })?;
    Some(event)
}

/// Returns the first of a list of numbers, packed or not.
fn first(wire: Wire<'_>) -> Option<u64> {
    match wire {
        Wire::Bytes(bytes) => variable(bytes).map(|(value, _)| value),
        wire => wire.number(),
    }
}

/// Reads flow ids: eight bytes each or, in older traces, of variable length; packed or not.
fn ids(wire: Wire<'_>, list: &mut Vec<u64>) -> Option<()> {
    match wire {
        Wire::Bytes(bytes) => {
            let (eights, rest) = bytes.as_chunks::<8>();
            list.extend(eights.iter().map(|&eight| u64::from_le_bytes(eight)));
            rest.is_empty().then_some(())
        }
        wire => wire.number().map(|id| list.push(id)),
    }
}

fn legacy<'a>(bytes: &'a [u8], event: &mut TrackEvent<'a>) -> Option<()> {
    fields(bytes, |field, wire| {
        match field {
            LEGACY_PHASE => event.phase = wire.number().and_then(|phase| phase.try_into().ok()),
            LEGACY_ID | LEGACY_LOCAL_ID | LEGACY_GLOBAL_ID => event.id = wire.number(),
            LEGACY_DURATION_US => event.duration_us = wire.number().map(u64::cast_signed),
            _ => {}
        }
        Some(())
    })
}

// Reads Chrome metadata as header fields.
//
// Traces that longpole writes in this format contain the header fields of the original trace.

/// Reads the fields from a bundle of Chrome events. Returns whether the bundle contains nothing
/// else; `None` if it is not a valid message.
pub(super) fn take(bytes: &[u8], found: &mut Vec<(String, String)>) -> Option<bool> {
    let mut is_all = true;
    fields(bytes, |field, wire| {
        match (field, wire) {
            (CHROME_METADATA, Wire::Bytes(bytes)) => field_of(bytes, found)?,
            _ => is_all = false,
        }
        Some(())
    })?;
    Some(is_all)
}

/// Reads a name and its value as JSON, if there is one; `None` if it is not a valid message.
fn field_of(bytes: &[u8], found: &mut Vec<(String, String)>) -> Option<()> {
    let (mut name, mut value) = (String::new(), None);
    fields(bytes, |field, wire| {
        let text = || Some(String::from_utf8_lossy(wire.bytes()?).into_owned());
        match field {
            METADATA_NAME => name = text()?,
            METADATA_TEXT => value = Some(Value::from(text()?).to_string()),
            METADATA_BOOLEAN => value = Some((wire.number()? != 0).to_string()),
            METADATA_INTEGER => value = Some(wire.number()?.cast_signed().to_string()),
            METADATA_JSON => value = text().filter(|text| is_json(text)),
            _ => {}
        }
        Some(())
    })?;
    found.extend(value.map(|value| (name, value)));
    Some(())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
