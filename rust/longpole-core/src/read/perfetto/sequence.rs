//! The state of a packet sequence: interned names and defaults, until it is cleared.

use std::collections::HashMap;

use super::clocks::Clocks;
use super::counters::GpuCounters;
use super::fields::{
    ANNOTATION_NAMES, ANNOTATION_TEXTS, COUNTERS_OF_GPU, DEMANGLED_NAME, EVENT_CATEGORIES,
    EVENT_NAMES, INTERNED_ID, INTERNED_NAME, KERNELS, STAGES, TIMESTAMP_CLOCK,
    TRACK_EVENT_DEFAULTS, TRACK_UUID,
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
