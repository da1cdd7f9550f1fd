//! Converts the times of clocks to the clock of the trace.
//!
//! A snapshot contains the times of several clocks at one moment. The last one before an event is
//! used. Clocks from 64 on belong to a sequence, and may count relative to their last time, in
//! their own unit.

use std::collections::HashMap;

use super::fields::{
    BOOT_TIME, CLOCK_ID, CLOCK_IS_INCREMENTAL, CLOCK_TIME, CLOCK_UNIT_NS, CLOCKS,
    FIRST_CLOCK_OF_SEQUENCE,
};
use crate::read::protobuf::{Wire, fields};

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
