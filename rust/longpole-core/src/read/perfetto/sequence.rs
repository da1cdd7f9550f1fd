//! The state of a packet sequence: interned names and defaults, until it is cleared.

use std::collections::HashMap;

use super::clocks::Clocks;
use super::fields::{
    ANNOTATION_NAMES, ANNOTATION_TEXTS, COUNTER_ID, COUNTER_NAME, COUNTER_SPECS, COUNTERS_ID,
    COUNTERS_OF_EVENT, COUNTERS_OF_GPU, DEMANGLED_NAME, DOUBLE_SAMPLE, EVENT_CATEGORIES,
    EVENT_NAMES, GPU_OF_EVENT, INTEGER_SAMPLE, INTERNED_COUNTERS, INTERNED_GPU, INTERNED_ID,
    INTERNED_NAME, KERNELS, SAMPLES, STAGES, TIMESTAMP_CLOCK, TRACK_EVENT_DEFAULTS, TRACK_UUID,
};
use crate::ids::StringId;
use crate::read::protobuf::{Wire, fields};
use crate::read::rows::Rows;

/// The state of a sequence.
#[derive(Default)]
pub(super) struct Sequence {
    /// Whether interned ids still have their meaning, because no packet was lost.
    pub(super) is_sound: bool,
    pub(super) categories: HashMap<u64, StringId>,
    pub(super) names: HashMap<u64, StringId>,
    pub(super) annotation_names: HashMap<u64, StringId>,
    pub(super) texts: HashMap<u64, StringId>,
    /// The stages and queues of a GPU.
    pub(super) stages: HashMap<u64, StringId>,
    /// GPU kernels.
    pub(super) kernels: HashMap<u64, StringId>,
    pub(super) gpu_counters: HashMap<u64, GpuCounters>,
    pub(super) clocks: Clocks,
    pub(super) clock: Option<u64>,
    pub(super) track: Option<u64>,
}

impl Sequence {
    /// Reads interned names and their ids; `None` if they are not a valid message.
    pub(super) fn intern(&mut self, bytes: &[u8], rows: &mut Rows<'_>) -> Option<()> {
        fields(bytes, |field, wire| {
            let bytes = wire.bytes();
            let names = match field {
                EVENT_CATEGORIES => &mut self.categories,
                EVENT_NAMES => &mut self.names,
                ANNOTATION_NAMES => &mut self.annotation_names,
                ANNOTATION_TEXTS => &mut self.texts,
                STAGES => &mut self.stages,
                KERNELS => &mut self.kernels,
                COUNTERS_OF_GPU => {
                    let (number, counters) = GpuCounters::interned(bytes?, rows)?;
                    self.gpu_counters.insert(number, counters);
                    return Some(());
                }
                _ => return Some(()),
            };
            let (number, name) = numbered(bytes?, field == KERNELS)?;
            names.insert(number, rows.text(name));
            Some(())
        })
    }

    /// Reads the defaults for later packets; `None` if they are not a valid message.
    pub(super) fn set_defaults(&mut self, bytes: &[u8]) -> Option<()> {
        fields(bytes, |field, wire| {
            match (field, wire) {
                (TIMESTAMP_CLOCK, _) => self.clock = wire.number(),
                (TRACK_EVENT_DEFAULTS, Wire::Bytes(bytes)) => fields(bytes, |field, wire| {
                    if field == TRACK_UUID {
                        self.track = wire.number();
                    }
                    Some(())
                })?,
                _ => {}
            }
            Some(())
        })
    }
}

/// Returns an id and its name or string; for a kernel, the demangled name is preferred.
fn numbered(bytes: &[u8], is_kernel: bool) -> Option<(u64, &[u8])> {
    let (mut number, mut name) = (0, &[][..]);
    fields(bytes, |field, wire| {
        match (field, wire) {
            (INTERNED_ID, _) => number = wire.number()?,
            (INTERNED_NAME, Wire::Bytes(bytes)) if name.is_empty() => name = bytes,
            (DEMANGLED_NAME, Wire::Bytes(bytes)) if is_kernel && !bytes.is_empty() => name = bytes,
            _ => {}
        }
        Some(())
    })?;
    Some((number, name))
}

// GPU counters: descriptions and samples.

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
