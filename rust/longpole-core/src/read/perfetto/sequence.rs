//! The state of a packet sequence: interned names and defaults, until it is cleared.

use std::collections::HashMap;

use super::fields::{
    ANNOTATION_NAMES, ANNOTATION_TEXTS, BOOT_TIME, CLOCK_ID, CLOCK_IS_INCREMENTAL, CLOCK_TIME,
    CLOCK_UNIT_NS, CLOCKS, COUNTER_ID, COUNTER_NAME, COUNTER_SPECS, COUNTERS_ID, COUNTERS_OF_EVENT,
    COUNTERS_OF_GPU, DEMANGLED_NAME, DOUBLE_SAMPLE, EVENT_CATEGORIES, EVENT_NAMES,
    FIRST_CLOCK_OF_SEQUENCE, GPU_OF_EVENT, INTEGER_SAMPLE, INTERNED_COUNTERS, INTERNED_GPU,
    INTERNED_ID, INTERNED_NAME, KERNELS, SAMPLES, STAGES, TIMESTAMP_CLOCK, TRACK_EVENT_DEFAULTS,
    TRACK_UUID,
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

// Converts the times of clocks to the clock of the trace.
//
// A snapshot contains the times of several clocks at one moment. The last one before an event is
// used. Clocks from 64 on belong to a sequence, and may count relative to their last time, in
// their own unit.

/// The clocks of a trace, or of a sequence.
#[derive(Default)]
pub(super) struct Clocks {
    of_id: HashMap<u64, Clock>,
}

/// A clock as of the last snapshot.
#[derive(Debug, Clone, Copy)]
struct Clock {
    is_incremental: bool,
    unit_ns: u64,
    /// The last time, in units, for incremental clocks.
    last: u64,
    /// The offset from its times in ns to those of the trace; `None` if unknown.
    offset_ns: Option<i128>,
}

impl Clocks {
    /// Reads the clocks of a snapshot, both global and of a sequence; `None` if it is not a valid
    /// message.
    pub(super) fn snapshot(
        bytes: &[u8],
        of_trace: &mut Self,
        of_sequence: &mut Self,
    ) -> Option<()> {
        let mut found = Vec::new();
        fields(bytes, |field, wire| {
            if let (CLOCKS, Wire::Bytes(bytes)) = (field, wire) {
                found.push(clock(bytes)?);
            }
            Some(())
        })?;
        let is_boot_time = |found: &&(u64, Clock)| found.0 == BOOT_TIME;
        let boot_ns = found.iter().find(is_boot_time).map(|&(_, clock)| i128::from(clock.last));
        // A snapshot without the trace clock relates its clocks through another known one.
        let known = || {
            found.iter().find_map(|&(id, clock)| {
                let offset_ns = of_trace.of_id.get(&id)?.offset_ns?;
                Some(i128::from(clock.last) * i128::from(clock.unit_ns) + offset_ns)
            })
        };
        let trace_ns = boot_ns.or_else(known);
        for (id, mut clock) in found {
            let own_ns = i128::from(clock.last) * i128::from(clock.unit_ns);
            clock.offset_ns = trace_ns.map(|trace_ns| trace_ns - own_ns);
            let clocks =
                if id >= FIRST_CLOCK_OF_SEQUENCE { &mut *of_sequence } else { &mut *of_trace };
            clocks.of_id.insert(id, clock);
        }
        Some(())
    }

    /// Converts a time to ns of the trace, and returns whether the conversion is known; `None` if
    /// it exceeds 64 bits.
    pub(super) fn time_ns(&mut self, id: u64, time: u64) -> Option<(i64, bool)> {
        let Some(clock) = self.of_id.get_mut(&id).filter(|_| id != BOOT_TIME) else {
            return Some((i64::try_from(time).ok()?, id == BOOT_TIME));
        };
        if clock.is_incremental {
            clock.last = clock.last.wrapping_add(time);
        }
        let time = if clock.is_incremental { clock.last } else { time };
        let own_ns = i128::from(time) * i128::from(clock.unit_ns);
        let time_ns = own_ns + clock.offset_ns.unwrap_or(0);
        Some((i64::try_from(time_ns).ok()?, clock.offset_ns.is_some()))
    }
}

fn clock(bytes: &[u8]) -> Option<(u64, Clock)> {
    let (mut id, mut found) =
        (0, Clock { is_incremental: false, unit_ns: 1, last: 0, offset_ns: None });
    fields(bytes, |field, wire| {
        match field {
            CLOCK_ID => id = wire.number()?,
            CLOCK_TIME => found.last = wire.number()?,
            CLOCK_IS_INCREMENTAL => found.is_incremental = wire.number()? != 0,
            CLOCK_UNIT_NS => found.unit_ns = wire.number()?.max(1),
            _ => {}
        }
        Some(())
    })?;
    Some((id, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_a_sequence_counts_on_in_its_unit() {
        // Boot time 5,000 ns corresponds to 10 on clock 64, which counts in units of 100 ns.
        let snapshot = b"\x0a\x05\x08\x06\x10\x88\x27\x0a\x08\x08\x40\x10\x0a\x18\x01\x20\x64";
        let (mut of_trace, mut of_sequence) = (Clocks::default(), Clocks::default());
        Clocks::snapshot(snapshot, &mut of_trace, &mut of_sequence).unwrap();
        assert_eq!(of_sequence.time_ns(64, 1), Some((5_100, true)));
        assert_eq!(of_sequence.time_ns(64, 2), Some((5_300, true)));
        assert_eq!(of_trace.time_ns(BOOT_TIME, 7), Some((7, true)));
        assert_eq!(of_trace.time_ns(3, 7), Some((7, false)));
    }
}
