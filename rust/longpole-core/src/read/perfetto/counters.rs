//! GPU counters: descriptions and samples.

use std::collections::HashMap;

use super::fields::{
    COUNTER_ID, COUNTER_NAME, COUNTER_SPECS, COUNTERS_ID, COUNTERS_OF_EVENT, DOUBLE_SAMPLE,
    GPU_OF_EVENT, INTEGER_SAMPLE, INTERNED_COUNTERS, INTERNED_GPU, INTERNED_ID, SAMPLES,
};
use crate::ids::StringId;
use crate::read::protobuf::{Wire, fields};
use crate::read::rows::Rows;

/// The names of the counters of a GPU.
#[derive(Default)]
pub(super) struct GpuCounters {
    pub(super) gpu: Option<i64>,
    pub(super) names: HashMap<u64, StringId>,
}

impl GpuCounters {
    /// Decodes a description; `None` if it is not a valid message.
    pub(super) fn of(bytes: &[u8], gpu: Option<i64>, rows: &mut Rows<'_>) -> Option<Self> {
        let mut names = HashMap::new();
        fields(bytes, |field, wire| {
            if let (COUNTER_SPECS, Wire::Bytes(bytes)) = (field, wire) {
                let (mut number, mut name) = (0, &[][..]);
                fields(bytes, |field, wire| {
                    match (field, wire) {
                        (COUNTER_ID, _) => number = wire.number()?,
                        (COUNTER_NAME, Wire::Bytes(bytes)) => name = bytes,
                        _ => {}
                    }
                    Some(())
                })?;
                names.insert(number, rows.text(name));
            }
            Some(())
        })?;
        Some(Self { gpu, names })
    }

    /// Decodes an interned description and its id; `None` if it is not a valid message.
    pub(super) fn interned(bytes: &[u8], rows: &mut Rows<'_>) -> Option<(u64, Self)> {
        let (mut number, mut gpu, mut described) = (0, None, &[][..]);
        fields(bytes, |field, wire| {
            match (field, wire) {
                (INTERNED_ID, _) => number = wire.number()?,
                (INTERNED_GPU, _) => gpu = wire.number().map(u64::cast_signed),
                (INTERNED_COUNTERS, Wire::Bytes(bytes)) => described = bytes,
                _ => {}
            }
            Some(())
        })?;
        Some((number, Self::of(described, gpu, rows)?))
    }
}

/// Samples taken at one time, by counter id.
#[derive(Default)]
pub(super) struct GpuSamples<'a> {
    pub(super) gpu: Option<i64>,
    pub(super) counters_id: Option<u64>,
    pub(super) described: Option<&'a [u8]>,
    pub(super) samples: Vec<(u64, f64)>,
}

/// Decodes samples; `None` if they are not a valid message.
pub(super) fn of(bytes: &[u8]) -> Option<GpuSamples<'_>> {
    let mut found = GpuSamples::default();
    fields(bytes, |field, wire| {
        match (field, wire) {
            (GPU_OF_EVENT, _) => found.gpu = wire.number().map(u64::cast_signed),
            (COUNTERS_ID, _) => found.counters_id = wire.number(),
            (COUNTERS_OF_EVENT, Wire::Bytes(bytes)) => found.described = Some(bytes),
            (SAMPLES, Wire::Bytes(bytes)) => found.samples.push(sample(bytes)?),
            _ => {}
        }
        Some(())
    })?;
    Some(found)
}

#[allow(clippy::cast_precision_loss)] // a counter is a double in the tables
fn sample(bytes: &[u8]) -> Option<(u64, f64)> {
    let (mut counter, mut value) = (0, f64::NAN);
    fields(bytes, |field, wire| {
        match (field, wire) {
            (COUNTER_ID, _) => counter = wire.number()?,
            (INTEGER_SAMPLE, Wire::Variable(number)) => value = number.cast_signed() as f64,
            (DOUBLE_SAMPLE, Wire::Eight(bits)) => value = f64::from_bits(bits),
            _ => {}
        }
        Some(())
    })?;
    Some((counter, value))
}
