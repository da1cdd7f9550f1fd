//! Decodes track events.

use super::fields::{
    CATEGORIES, CATEGORY_IDS, CORRELATION, DEBUG_ANNOTATIONS, DOUBLE_VALUE, FLOW_IDS,
    INTEGER_VALUE, LEGACY, LEGACY_DURATION_US, LEGACY_GLOBAL_ID, LEGACY_ID, LEGACY_LOCAL_ID,
    LEGACY_PHASE, NAME, NAME_ID, OLD_FLOW_IDS, OLD_TERMINATING_FLOW_IDS, TERMINATING_FLOW_IDS,
    TRACK_UUID, TYPE,
};
use crate::read::protobuf::{Wire, fields, variable};

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
pub(super) fn of(bytes: &[u8]) -> Option<TrackEvent<'_>> {
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
